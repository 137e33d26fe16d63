"""Operations under a mission: authority and money in the same transaction as the trail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import counterfoil as cf
from counterfoil.operation.replies import Answer, Result, Status

from .governing import (
    CONTRACT,
    FOREVER_MS,
    Desk,
    attempt_of,
    commands_of,
    grant_in,
    money,
    opened,
    operation_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from counterfoil.coordinator.governed import Grant


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def book(tmp_path: Path) -> Iterator[cf.Book]:
    with opened(tmp_path / "effects.db") as made:
        yield made


@pytest.fixture
def grant(book: cf.Book) -> Grant:
    return grant_in(book)


def perform(book: cf.Book, change: Any, grant: Grant, name: str = "o-1", **more: Any) -> Any:
    options = {"under": grant, "resource": "doc", "reserve": "10", **more}
    return book.perform(change, name, **options)


def log_length(book: cf.Book) -> int:
    return sum(1 for _ in book.store.log())


# --- money ---------------------------------------------------------------------------------------


def test_a_committed_operation_spends_what_the_owner_said_it_cost(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    desk.script = ["commit:3"]
    outcome = perform(book, desk.declare(final_by="answer"), grant)
    assert outcome.status is Status.COMMITTED
    assert book.mission.money == ("100", "3", "0", "97")


def test_without_a_cost_what_was_reserved_is_spent(book: cf.Book, desk: Desk, grant: Grant) -> None:
    perform(book, desk.declare(), grant)
    assert money(book) == ("10", "0")


def test_without_a_reservation_nothing_is_held(book: cf.Book, desk: Desk, grant: Grant) -> None:
    perform(book, desk.declare(), grant, reserve=None)
    assert money(book) == ("0", "0")


@pytest.mark.parametrize(("said", "spent"), [("refuse", "0"), ("refuse:0.5", "0.5")])
def test_a_refused_operation_spends_only_what_the_refusal_cost(
    book: cf.Book, desk: Desk, grant: Grant, said: str, spent: str
) -> None:
    desk.script = [said]
    assert perform(book, desk.declare(), grant).status is Status.NOT_RUN
    assert money(book) == (spent, "0")


def test_an_unknown_operation_keeps_its_money_held_until_it_is_known(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    desk.script, desk.answers = ["lose after:4"], False
    change = desk.declare(final_by="answer")
    assert perform(book, change, grant).status is Status.UNKNOWN
    assert money(book) == ("0", "10")
    assert operation_of(book, "o-1")["disposition"] == "UNKNOWN"
    desk.answers = True
    assert book.resume("o-1").status is Status.COMMITTED
    assert money(book) == ("4", "0")


def test_a_cost_above_the_reservation_is_recorded_and_nothing_is_admitted_any_more(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    desk.script = ["commit:120"]
    change = desk.declare()
    assert perform(book, change, grant).status is Status.COMMITTED
    assert book.mission.money == ("100", "120", "0", "-20")
    with pytest.raises(cf.Refused) as caught:
        perform(book, change, grant, "o-2", reserve="0")
    assert caught.value.code == "grant_limit_exceeded"
    assert len(desk.calls) == 1


def test_an_operation_performed_again_is_charged_once(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    change = desk.declare()
    perform(book, change, grant)
    before = log_length(book)
    assert perform(book, change, grant).replayed
    assert (money(book), log_length(book)) == (("10", "0"), before)


def test_what_was_cancelled_before_its_dispatch_is_free_again(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    desk.answers = False  # an owner that knows no keys is asked first, and does not answer
    change = desk.declare(knows_keys=False)
    assert perform(book, change, grant).status is Status.UNKNOWN
    assert (money(book), desk.calls) == (("0", "10"), [])
    looked = book.people.look("o-1")
    outcome = book.people.cancel(looked, by="ann", evidence="not wanted any more")
    assert outcome.status is Status.NOT_RUN
    assert money(book) == ("0", "0")
    assert operation_of(book, "o-1")["disposition"] == "NOT_DISPATCHED"


def test_what_was_dispatched_cannot_be_cancelled(book: cf.Book, desk: Desk, grant: Grant) -> None:
    desk.script, desk.answers = ["lose after"], False
    perform(book, desk.declare(final_by="answer"), grant)
    with pytest.raises(cf.Refused) as caught:
        book.people.cancel(book.people.look("o-1"), by="ann", evidence="x")
    assert caught.value.code == "dispatched"
    assert money(book) == ("0", "10")


# --- one transaction -----------------------------------------------------------------------------


def test_the_commands_lie_in_the_log_beside_the_events_that_they_belong_to(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    before = log_length(book)
    perform(book, desk.declare(), grant)
    kinds = [entry.kind for entry in book.store.log(before)]
    assert kinds == [
        "opened", "dispatched", "commanded", "commanded",
        "replied", "settled", "commanded",
    ]  # fmt: skip
    assert commands_of(book)[-3:] == ["admit", "dispatch", "settle"]


def test_the_time_of_a_command_is_the_stamp_of_the_store(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    perform(book, desk.declare(), grant)
    last = [entry for entry in book.store.log() if entry.kind == "commanded"][-1]
    assert book.mission.state["now"] == str(last.at_us // 1000)


@pytest.mark.parametrize(
    ("before", "options", "code"),
    [
        (None, {"reserve": "100.01"}, "grant_limit_exceeded"),
        (None, {"resource": "elsewhere"}, "resource_not_allowed"),
        (None, {"resource": "sheet"}, "resource_not_allowed"),
        (None, {"node": "task"}, "node_unknown"),
        (lambda book, _: book.mission.stop("enough", by="boss"), {}, "mission_stopped"),
        (lambda _, grant: grant.revoke("over"), {}, "grant_revoked"),
        (lambda _, grant: grant.run.finish("FAILED"), {}, "run_closed"),
        (lambda _, grant: grant.run.claim("another"), {"run": "old"}, "stale_epoch"),
    ],
)
def test_a_refusal_sends_nothing_and_stores_nothing(
    book: cf.Book,
    desk: Desk,
    grant: Grant,
    before: Callable[[cf.Book, Grant], object] | None,
    options: dict[str, Any],
    code: str,
) -> None:
    if before is not None:
        before(book, grant)
    if options.pop("run", None):
        book.missions.epochs.clear()  # as in a process that was replaced
    length = log_length(book)
    with pytest.raises(cf.Refused) as caught:
        perform(book, desk.declare(), grant, **options)
    assert caught.value.code == code
    assert (desk.calls, log_length(book)) == ([], length)
    with pytest.raises(cf.Refused, match="no operation 'o-1'"):
        book.outcome("o-1")


@pytest.mark.parametrize(
    ("contract", "terms", "code"),
    [
        ({"deadline": "1000"}, None, "deadline_passed"),
        ({"budget": "9"}, {}, "budget_exceeded"),
        ({"actions": []}, {}, "action_not_allowed"),
        ({"requiresApproval": True}, {}, "approval_missing"),
        ({}, {"expires_at": 1000}, "grant_expired"),
        ({}, {"not_before": FOREVER_MS - 1}, "grant_not_yet_valid"),
        ({}, {"actions": []}, "action_not_allowed"),
        ({}, {"limit": "9.99"}, "grant_limit_exceeded"),
    ],
)
def test_contract_and_grant_bound_what_may_be_sent(
    tmp_path: Path, desk: Desk, contract: dict[str, Any], terms: dict[str, Any] | None, code: str
) -> None:
    with opened(tmp_path / "e.db", {**CONTRACT, **contract}) as book:
        with pytest.raises(cf.Refused) as caught:
            perform(book, desk.declare(), grant_in(book, **(terms or {})))
        assert caught.value.code == code
        assert desk.calls == []


# --- attempts ------------------------------------------------------------------------------------


def test_a_resend_after_a_believed_absent_answer_is_a_retry_with_its_own_reservation(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    desk.script = ["lose before", "commit:2"]
    outcome = perform(book, desk.declare(final_by="answer"), grant)
    assert (outcome.status, outcome.attempts) == (Status.COMMITTED, 2)
    assert commands_of(book)[2:] == ["admit", "dispatch", "settle", "retry", "dispatch", "settle"]
    assert money(book) == ("2", "0")
    assert attempt_of(book, "o-1#1")["effect"] == "CONFIRMED_NOT_APPLIED"


def test_a_redelivery_to_an_owner_that_deduplicates_reserves_nothing_more(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    desk.script = ["lose after", "commit:2"]
    change = desk.declare(asks=False, deduplicates=True, key_retention="forever")
    outcome = perform(book, change, grant)
    assert (outcome.status, outcome.attempts) == (Status.COMMITTED, 2)
    assert commands_of(book)[2:] == ["admit", "dispatch", "redeliver", "settle"]
    assert operation_of(book, "o-1")["attempts"] == ["o-1#1"]


def test_the_contract_bounds_the_attempts_and_the_answer_that_was_seen_is_kept(
    tmp_path: Path, desk: Desk
) -> None:
    desk.script = ["lose before", "commit"]
    with opened(tmp_path / "e.db", {**CONTRACT, "maxAttempts": "1"}) as book:
        outcome = perform(book, desk.declare(final_by="answer"), grant_in(book))
        assert (outcome.status, outcome.why.code) == (Status.NOT_RUN, "absent_at_owner")
        assert (len(desk.calls), money(book)) == (1, ("0", "0"))


def test_authority_that_ended_during_a_call_permits_no_second_attempt(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    desk.script, desk.meanwhile = ["lose before"], lambda: grant.revoke("over")
    outcome = perform(book, desk.declare(final_by="answer"), grant)
    assert (outcome.status, len(desk.calls)) == (Status.NOT_RUN, 1)
    assert money(book) == ("0", "0")


def test_authority_that_ended_during_a_call_does_not_suppress_what_it_did(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    def end() -> None:
        book.mission.stop("enough", by="boss")
        grant.run.claim("another")

    desk.script, desk.meanwhile = ["commit:3"], end
    assert perform(book, desk.declare(), grant).status is Status.COMMITTED
    assert money(book) == ("3", "0")


def test_a_redelivery_that_is_not_allowed_leaves_the_operation_unknown_and_held(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    desk.script = ["lose after", "commit"]
    desk.meanwhile = lambda: book.mission.stop("enough", by="boss")
    change = desk.declare(asks=False, deduplicates=True, key_retention="forever")
    outcome = perform(book, change, grant)
    assert (outcome.status, len(desk.calls)) == (Status.UNKNOWN, 1)
    assert money(book) == ("0", "10")


def test_a_refused_operation_is_retried_under_the_same_authority(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    desk.script = ["refuse:1", "commit:3"]
    perform(book, desk.declare(), grant)
    assert book.retry("o-1", by="ann").status is Status.COMMITTED
    assert commands_of(book)[-3:] == ["retry", "dispatch", "settle"]
    assert money(book) == ("4", "0")


def test_a_retry_that_is_not_allowed_stores_nothing(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    desk.script = ["refuse"]
    perform(book, desk.declare(), grant)
    grant.revoke("over")
    before = log_length(book)
    with pytest.raises(cf.Refused) as caught:
        book.retry("o-1")
    assert (caught.value.code, log_length(book)) == ("grant_revoked", before)
    assert book.outcome("o-1").status is Status.NOT_RUN


# --- people --------------------------------------------------------------------------------------


@pytest.fixture
def unknown(book: cf.Book, desk: Desk, grant: Grant) -> cf.Book:
    desk.script = ["lose after"]
    assert perform(book, desk.declare(asks=False), grant).status is Status.UNKNOWN
    return book


def test_a_relayed_answer_is_a_review_with_its_evidence(unknown: cf.Book) -> None:
    looked = unknown.people.look("o-1")
    unknown.people.relay(looked, Answer(Result.PRESENT, cost="7"), by="ann", evidence="R-7")
    (review,) = attempt_of(unknown, "o-1#1")["reviews"]
    assert (review["reviewer"], review["decision"], review["evidence"]) == ("ann", "APPLIED", "R-7")
    assert money(unknown) == ("7", "0")


def test_a_review_that_finds_nothing_out_keeps_the_money_held(unknown: cf.Book) -> None:
    looked = unknown.people.look("o-1")
    outcome = unknown.mission.review(looked, "STILL_UNKNOWN", reviewer="ann", evidence="no receipt")
    assert outcome.status is Status.UNKNOWN
    assert money(unknown) == ("0", "10")
    assert operation_of(unknown, "o-1")["underReview"]


@pytest.mark.parametrize(
    ("decision", "status", "spent"),
    [("APPLIED", Status.COMMITTED, "6"), ("NOT_APPLIED", Status.NOT_RUN, "6")],
)
def test_a_review_settles_trail_and_mission_together(
    unknown: cf.Book, decision: str, status: Status, spent: str
) -> None:
    outcome = unknown.mission.review(
        unknown.people.look("o-1"), decision, reviewer="ann", evidence="R-7", actual_cost="6"
    )
    assert outcome.status is status
    assert money(unknown) == (spent, "0")


def test_closing_without_an_answer_keeps_the_money_held(unknown: cf.Book) -> None:
    unknown.people.close(unknown.people.look("o-1"), says="lost", by="ann", evidence="no trace")
    assert money(unknown) == ("0", "10")


def test_a_correction_of_what_was_closed_settles_it(unknown: cf.Book) -> None:
    people = unknown.people
    people.close(people.look("o-1"), says="lost", by="ann", evidence="no trace")
    looked = people.look("o-1")
    people.correct(looked, Status.COMMITTED, by="bob", evidence="R-8", cost="9")
    assert money(unknown) == ("9", "0")


def test_a_correction_moves_what_was_spent_and_keeps_the_old_answer(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    desk.script = ["commit:3"]
    perform(book, desk.declare(), grant)
    looked = book.people.look("o-1")
    book.people.correct(looked, Status.NOT_RUN, by="ann", evidence="the receipt was another's")
    assert money(book) == ("0", "0")
    (old,) = attempt_of(book, "o-1#1")["corrections"]
    assert (old["effect"], old["actualCost"], old["by"]) == ("CONFIRMED_APPLIED", "3", "ann")
