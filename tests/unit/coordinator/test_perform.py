"""`perform` through the public face, on a real SQLite file."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

import counterfoil as cf
from counterfoil.coordinator.export import lines
from counterfoil.reader.verdict import judge_bytes

from .conftest import Service, declare

if TYPE_CHECKING:
    from pathlib import Path


def trail(book: cf.Book) -> dict[str, object]:
    """Return the one exported trail, judged on the way."""
    (text,) = lines(book.store, book.namespace, None, ())
    judged = judge_bytes(text.encode())
    assert getattr(judged, "decision", None) == "allow", judged
    found: dict[str, object] = json.loads(text)
    return found


def test_a_confirmed_call_is_committed_with_its_value(book: cf.Book, service: Service) -> None:
    outcome = book.perform(declare(service), "o-1", amount="12.50")
    assert outcome.status == "committed"
    assert outcome.value == {"id": f"e-{service.calls[0]}"}
    assert (outcome.attempts, outcome.replayed, outcome.why.code) == (1, False, "confirmed")
    assert trail(book)["reported"] == {"outcome": "committed"}


def test_the_same_id_again_sends_and_asks_nothing(book: cf.Book, service: Service) -> None:
    effect = declare(service)
    first = book.perform(effect, "o-1", amount="1")
    second = book.perform(effect, "o-1", amount="1")
    assert second.replayed
    assert second.value == first.value
    assert second.first_at == first.first_at
    assert (len(service.calls), service.questions) == (1, 0)


def test_equal_arguments_are_the_same_operation_however_they_are_written(
    book: cf.Book, service: Service
) -> None:
    effect = declare(service)
    book.perform(effect, "o-1", note={"a": 1, "b": 2.0})
    assert book.perform(effect, "o-1", note={"b": 2, "a": 1.0}).replayed


@pytest.mark.parametrize(
    ("changed", "members"),
    [
        ({"amount": "2"}, ("arguments.amount",)),
        ({"amount": "1", "note": "x"}, ("arguments.note",)),
        ({"amount": "1", "preconditions": {"revision": 1}}, ("preconditions",)),
        ({"amount": "1", "key": "mine"}, ("key",)),
    ],
)
def test_the_same_id_with_something_else_is_refused_by_name_and_never_by_value(
    book: cf.Book, service: Service, changed: dict[str, object], members: tuple[str, ...]
) -> None:
    effect = declare(service)
    book.perform(effect, "o-1", amount="1")
    with pytest.raises(cf.OperationConflict) as caught:
        book.perform(effect, "o-1", **changed)
    assert caught.value.members == members
    assert "'2'" not in str(caught.value)
    assert len(service.calls) == 1


def test_the_same_id_under_another_action_or_owner_is_refused(
    book: cf.Book, service: Service
) -> None:
    book.perform(declare(service), "o-1")
    other = cf.effect("other", owner=cf.Owner("elsewhere"))(lambda attempt: None)
    with pytest.raises(cf.OperationConflict) as caught:
        book.perform(other, "o-1")
    assert caught.value.members[:2] == ("action", "owner")


def test_a_lost_reply_is_asked_about_and_found(book: cf.Book, service: Service) -> None:
    service.script = ["lose"]
    outcome = book.perform(declare(service), "o-1")
    assert (outcome.status, outcome.why.code) == ("committed", "found_at_owner")
    assert (service.count, len(service.calls)) == (1, 1)
    assert trail(book)["ownerEffects"] == [{"id": f"e-{service.calls[0]}"}]


def test_a_final_absent_answer_permits_a_resend(book: cf.Book, service: Service) -> None:
    service.script = ["lose before"]
    outcome = book.perform(declare(service, final_by="answer"), "o-1")
    assert (outcome.status, outcome.attempts, service.count) == ("committed", 2, 1)
    assert service.calls[0] == service.calls[1]
    trail(book)


def test_a_final_answer_of_an_owner_that_does_not_promise_it_permits_nothing(
    book: cf.Book, service: Service
) -> None:
    service.script = ["lose before"]
    outcome = book.perform(declare(service), "o-1")
    assert (outcome.status, outcome.why.code) == ("unknown", "absent_not_final")
    assert (len(service.calls), service.count) == (1, 0)
    assert trail(book)["reported"] == {"outcome": "unknown"}


def test_an_absent_answer_in_a_partial_view_is_never_final(book: cf.Book, service: Service) -> None:
    service.script = ["lose"]
    service.answers = [cf.absent(final=True, partial=True)]
    outcome = book.perform(declare(service, final_by="answer"), "o-1", patience=30)
    assert (outcome.status, service.count, len(service.calls)) == ("committed", 1, 1)


def test_an_absent_answer_is_believed_once_the_owner_must_have_settled(
    book: cf.Book, service: Service
) -> None:
    service.script = ["lose before"]
    outcome = book.perform(declare(service, settles_within="60ms"), "o-1", patience=30)
    assert (outcome.status, outcome.attempts, service.count) == ("committed", 2, 1)
    answers: Any = trail(book)["reconciliations"]
    absents = [a for a in answers if a["result"] == "absent"]
    assert [a["final"] for a in absents][-1] is True
    assert all(a["final"] is False for a in absents[:-1])


def test_attempts_that_never_arrive_end_as_not_run(tmp_path: Path, service: Service) -> None:
    service.script = ["lose before"] * 5
    with cf.open(tmp_path / "e.db", create=True, attempts_max=2) as book:
        outcome = book.perform(declare(service, final_by="answer"), "o-1")
        assert (outcome.status, outcome.attempts) == ("not_run", 2)
        assert outcome.why.code == "absent_at_owner"
        trail(book)


def test_an_owner_that_cannot_be_asked_leaves_it_unknown_and_is_never_sent_again(
    book: cf.Book, service: Service
) -> None:
    service.script = ["lose"]
    effect = declare(service, asks=False)
    for _ in range(2):
        outcome = book.perform(effect, "o-1", reserve="10")
        assert (outcome.status, outcome.why.code) == ("unknown", "owner_cannot_be_asked")
    assert (service.count, len(service.calls)) == (1, 1)
    assert trail(book)["reservation"]["charged"] is True  # type: ignore[index]


def test_an_owner_that_deduplicates_is_sent_the_same_key_again(
    book: cf.Book, service: Service
) -> None:
    service.script = ["lose before"]
    effect = declare(service, asks=False, deduplicates=True, key_retention="forever")
    outcome = book.perform(effect, "o-1")
    assert (outcome.status, outcome.attempts) == ("committed", 2)
    assert service.calls[0] == service.calls[1]
    trail(book)


def test_a_limited_retention_without_its_bounds_permits_no_resend(
    book: cf.Book, service: Service
) -> None:
    service.script = ["lose before"]
    effect = declare(service, asks=False, deduplicates=True, key_retention="24h")
    assert book.perform(effect, "o-1").status == "unknown"
    assert len(service.calls) == 1


def test_a_refusal_settles_as_not_run_and_a_retry_may_follow(
    book: cf.Book, service: Service
) -> None:
    service.script = ["refuse"]
    effect = declare(service)
    refused = book.perform(effect, "o-1")
    assert (refused.status, refused.why.code) == ("not_run", "refused")
    assert "not_allowed" in refused.why.text
    with pytest.raises(cf.NotRun):
        refused.raise_for_status()
    assert book.perform(effect, "o-1").status == "not_run"
    again = book.retry("o-1", by="ops")
    assert (again.status, again.attempts) == ("committed", 2)
    assert service.calls[0] == service.calls[1]
    trail(book)


def test_a_spent_key_is_not_used_for_the_retry(book: cf.Book, service: Service) -> None:
    service.script = ["refuse"]
    book.perform(declare(service, replays_refusals=True), "o-1")
    book.retry("o-1")
    assert service.calls[1] == service.calls[0] + ".2"
    trail(book)


def test_only_an_operation_that_left_nothing_can_be_tried_again(
    book: cf.Book, service: Service
) -> None:
    book.perform(declare(service), "o-1")
    with pytest.raises(cf.Refused) as caught:
        book.retry("o-1")
    assert caught.value.code == "not_retryable"
    assert len(service.calls) == 1


@pytest.mark.parametrize("raised", [ConnectionRefusedError("x"), ValueError("x"), KeyError("x")])
def test_whatever_a_function_raises_is_unknown(
    book: cf.Book, service: Service, raised: Exception
) -> None:
    @cf.effect("raises", owner=cf.Owner("s"))
    def raises(attempt: cf.Attempt) -> None:
        service.calls.append(attempt.key)
        raise raised

    assert book.perform(raises, "o-1").status == "unknown"
    assert len(service.calls) == 1


def test_a_refusal_raised_out_of_a_timeout_is_unknown(book: cf.Book) -> None:
    @cf.effect("raises", owner=cf.Owner("s"))
    def raises(attempt: cf.Attempt) -> None:
        try:
            raise TimeoutError
        except TimeoutError as error:
            raise cf.NoEffect("gone") from error

    outcome = book.perform(raises, "o-1")
    assert outcome.status == "unknown"


def test_a_returned_http_response_is_unknown_and_says_what_to_do(book: cf.Book) -> None:
    class Response:
        status_code = 200
        headers: dict[str, str] = {}  # noqa: RUF012

    @cf.effect("responds", owner=cf.Owner("s"))
    def responds(attempt: cf.Attempt) -> object:
        return Response()

    assert book.perform(responds, "o-1").status == "unknown"
    attempt = trail(book)["attempts"][0]  # type: ignore[index]
    assert "read its status" in attempt["detail"]


def test_an_interrupt_is_recorded_as_unknown_and_goes_on_up(
    book: cf.Book, service: Service
) -> None:
    interrupts = [KeyboardInterrupt()]

    @cf.effect("interrupted", owner=cf.Owner("s", final_by="answer"))
    def interrupted(attempt: cf.Attempt) -> object:
        if interrupts:
            raise interrupts.pop()
        return service.call(attempt)

    interrupted.reconcile(service.find)
    with pytest.raises(KeyboardInterrupt):
        book.perform(interrupted, "o-1")
    assert book.outcome("o-1").status == "unknown"
    assert book.perform(interrupted, "o-1").status == "committed"
    assert service.count == 1
    trail(book)


def test_a_call_past_its_deadline_has_not_ended_and_nothing_is_sent_again(
    book: cf.Book, service: Service
) -> None:
    may_return = threading.Event()

    @cf.effect("slow", owner=cf.Owner("s", final_by="answer"), deadline="50ms")
    def slow(attempt: cf.Attempt) -> object:
        service.calls.append(attempt.key)
        may_return.wait(10)
        return "done"

    slow.reconcile(lambda attempt: cf.absent(final=True))
    outcome = book.perform(slow, "o-1")
    assert (outcome.status, outcome.why.code) == ("unknown", "call_still_running")
    assert len(service.calls) == 1
    may_return.set()
    settled = book.perform(slow, "o-1", patience=10)
    assert (settled.status, settled.value, settled.attempts) == ("committed", "done", 1)
    trail(book)


def test_two_threads_make_one_attempt(book: cf.Book, service: Service) -> None:
    inside, go_on = threading.Event(), threading.Event()

    @cf.effect("shared", owner=cf.Owner("s"))
    def shared(attempt: cf.Attempt) -> object:
        inside.set()
        go_on.wait(10)
        return service.call(attempt)

    outcomes: list[cf.Outcome[object]] = []
    first = threading.Thread(target=lambda: outcomes.append(book.perform(shared, "o-1")))
    first.start()
    assert inside.wait(10)
    with pytest.raises(cf.OperationInFlight):
        book.perform(shared, "o-1", wait_if_in_flight=False)
    second = threading.Thread(
        target=lambda: outcomes.append(book.perform(shared, "o-1", patience=10))
    )
    second.start()
    go_on.set()
    first.join()
    second.join()
    assert [o.status for o in outcomes] == ["committed", "committed"]
    assert sorted(o.replayed for o in outcomes) == [False, True]
    assert len(service.calls) == 1


def test_an_effect_that_another_operation_has_is_parked(book: cf.Book) -> None:
    @cf.effect("create", owner=cf.Owner("s"))
    def create(attempt: cf.Attempt) -> object:
        return cf.applied({"n": attempt.number}, effect_id="the-only-one")

    assert book.perform(create, "o-1").status == "committed"
    second = book.perform(create, "o-2")
    assert (second.status, second.why.code) == ("unknown", "effect_claimed")
    assert "'o-1'" in second.why.text
    assert book.perform(create, "o-2").why.code == "effect_claimed"


def test_a_value_that_json_cannot_carry_is_given_once_and_named_as_missing(
    book: cf.Book,
) -> None:
    @cf.effect("returns", owner=cf.Owner("s"))
    def returns(attempt: cf.Attempt) -> object:
        return {1, 2}

    assert book.perform(returns, "o-1").value == {1, 2}
    again = book.perform(returns, "o-1")
    assert again.status == "committed"
    with pytest.raises(cf.ValueMissing, match="unencodable"):
        _ = again.value


def test_costs_are_kept_with_the_settlement(book: cf.Book, service: Service) -> None:
    @cf.effect("pay", owner=cf.Owner("s"))
    def pay(attempt: cf.Attempt) -> object:
        return cf.applied("ok", cost="12.50")

    assert book.perform(pay, "o-1", reserve="20").cost == "12.5"
    assert book.perform(pay, "o-1", reserve="20").cost == "12.5"


def test_the_class_form_of_the_seed_is_an_effect(book: cf.Book, service: Service) -> None:
    @cf.effect("write", owner=cf.Owner("s", final_by="answer"))
    class Write:
        def execute(self, operation: cf.Operation, attempt: cf.Attempt) -> object:
            assert operation.arguments == {"value": 1}
            return service.call(attempt)

        def reconcile(self, operation: cf.Operation, attempt: cf.Attempt) -> object:
            return service.find(attempt)

    service.script = ["lose before"]
    outcome = book.perform(Write, "o-1", value=1, preconditions={"revision": 1})
    assert (outcome.status, outcome.attempts) == ("committed", 2)


def test_an_outcome_is_no_truth_value(book: cf.Book, service: Service) -> None:
    with pytest.raises(TypeError, match=r"\.status"):
        bool(book.perform(declare(service), "o-1"))


def test_tenants_and_namespaces_keep_operations_and_keys_apart(
    tmp_path: Path, service: Service
) -> None:
    effect = declare(service)
    for namespace in ("staging", "production"):
        with cf.open(tmp_path / "e.db", create=True, namespace=namespace) as book:
            for tenant in ("acme", "globex"):
                assert not book.perform(effect, "o-1", tenant=tenant).replayed
    assert len(set(service.calls)) == 4


@pytest.mark.parametrize("library", ["urllib", "requests"])
def test_a_refusal_read_from_an_http_error_is_a_refusal(book: cf.Book, library: str) -> None:
    import urllib.error
    from email.message import Message

    class RequestsError(OSError):
        class response:  # noqa: N801
            status_code = 409

    def fail() -> None:
        if library == "urllib":
            raise urllib.error.HTTPError("http://owner", 409, "no", Message(), None)
        raise RequestsError

    @cf.effect("refused", owner=cf.Owner("s"))
    def refused(attempt: cf.Attempt) -> None:
        try:
            fail()
        except OSError as error:
            raise cf.NoEffect("not_allowed") from error

    outcome = book.perform(refused, "o-1")
    assert (outcome.status, outcome.why.code) == ("not_run", "refused")
