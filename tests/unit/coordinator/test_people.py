"""What a person may decide, and what is refused to a person too."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import counterfoil as cf
from counterfoil.coordinator.export import lines
from counterfoil.reader.verdict import judge_bytes

from .conftest import Service, declare

if TYPE_CHECKING:
    from collections.abc import Callable

WHO = {"by": "ops@example.com", "evidence": "INC-204"}


def trail(book: cf.Book) -> dict[str, object]:
    (text,) = lines(book.store, book.namespace, None, ())
    judged = judge_bytes(text.encode())
    assert getattr(judged, "decision", None) == "allow", judged
    found: dict[str, object] = json.loads(text)
    return found


def unknown(book: cf.Book, service: Service, **promises: object) -> cf.Effect[..., object]:
    """Leave operation o-1 unknown, at an owner that cannot be asked."""
    service.script = ["lose"]
    effect = declare(service, asks=False, **promises)
    assert book.perform(effect, "o-1", reserve="10").status == "unknown"
    return effect


def test_a_relayed_present_answer_settles_and_names_who_and_why(
    book: cf.Book, service: Service
) -> None:
    effect = unknown(book, service)
    looked = book.people.look("o-1")
    outcome = book.people.relay(looked, cf.present(effect_id="e-9", cost="3"), **WHO)
    assert (outcome.status, outcome.cost) == ("committed", "3")
    assert book.perform(effect, "o-1", reserve="10").replayed
    (answer,) = trail(book)["reconciliations"]  # type: ignore[misc]
    assert (answer["by"], answer["evidence"]) == ("ops@example.com", "INC-204")


def test_the_owners_final_word_may_be_relayed(book: cf.Book, service: Service) -> None:
    unknown(book, service)
    outcome = book.people.relay(book.people.look("o-1"), cf.absent(final=True), **WHO)
    assert (outcome.status, outcome.why.code) == ("not_run", "settled_by_person")
    assert trail(book)["reservation"]["charged"] is False  # type: ignore[index]


def test_an_absent_answer_that_is_not_final_is_a_note_and_settles_nothing(
    book: cf.Book, service: Service
) -> None:
    unknown(book, service)
    outcome = book.people.relay(book.people.look("o-1"), cf.absent(), **WHO)
    assert outcome.status == "unknown"
    assert trail(book)["reconciliations"][0]["final"] is False  # type: ignore[index]


def test_a_question_that_began_before_the_time_to_settle_had_passed_is_no_final_answer(
    book: cf.Book, service: Service
) -> None:
    unknown(book, service, settles_within="1h")
    outcome = book.people.relay(book.people.look("o-1"), cf.absent(), **WHO)
    assert outcome.status == "unknown"


@pytest.mark.parametrize("decide", ["relay", "close", "correct"])
def test_a_stale_decision_is_refused(book: cf.Book, service: Service, decide: str) -> None:
    unknown(book, service)
    looked = book.people.look("o-1")
    book.people.relay(looked, cf.absent(), **WHO)
    people = book.people
    acts: dict[str, Callable[[], object]] = {
        "relay": lambda: people.relay(looked, cf.present(), **WHO),
        "close": lambda: people.close(looked, says="gone", **WHO),
        "correct": lambda: people.correct(looked, cf.Status.NOT_RUN, **WHO),
    }
    with pytest.raises(cf.Refused) as caught:
        acts[decide]()
    assert caught.value.code == "stale_decision"


def test_closing_is_local_and_the_trail_stays_unknown_and_charged(
    book: cf.Book, service: Service
) -> None:
    effect = unknown(book, service)
    closed = book.people.close(book.people.look("o-1"), says="written off", **WHO)
    assert (closed.status, closed.why.code) == ("unknown", "closed_by_person")
    assert book.perform(effect, "o-1", reserve="10").why.code == "closed_by_person"
    assert len(service.calls) == 1
    found = trail(book)
    assert found["reported"] == {"outcome": "unknown"}
    assert found["reservation"]["charged"] is True  # type: ignore[index]


def test_a_settlement_that_turns_out_wrong_is_disputed_at_once_and_corrected(
    book: cf.Book, service: Service
) -> None:
    effect = unknown(book, service)
    book.people.relay(book.people.look("o-1"), cf.absent(final=True), **WHO)
    wrong = book.people.relay(book.people.look("o-1"), cf.present(effect_id="e-1"), **WHO)
    assert (wrong.status, wrong.why.code) == ("unknown", "disputed")
    with pytest.raises(cf.Refused):
        book.retry("o-1")
    right = book.people.correct(book.people.look("o-1"), cf.Status.COMMITTED, cost="10", **WHO)
    assert (right.status, right.cost) == ("committed", "10")
    assert book.perform(effect, "o-1", reserve="10").status == "committed"
    found = trail(book)
    answers: Any = found["reconciliations"]
    assert [a["result"] for a in answers] == ["absent", "present"]
    assert found["reported"] == {"outcome": "committed"}


def test_a_decision_names_who_and_on_what(book: cf.Book, service: Service) -> None:
    unknown(book, service)
    with pytest.raises(cf.BadInput, match="evidence"):
        book.people.relay(book.people.look("o-1"), cf.present(), by="ops", evidence=" ")


def test_an_unsettled_operation_is_not_corrected(book: cf.Book, service: Service) -> None:
    unknown(book, service)
    with pytest.raises(cf.Refused, match="relay"):
        book.people.correct(book.people.look("o-1"), cf.Status.NOT_RUN, **WHO)


def test_a_worker_that_nobody_knows_cannot_be_declared_dead(book: cf.Book) -> None:
    with pytest.raises(cf.Refused) as caught:
        book.people.worker_dead("w-nobody", **WHO)
    assert caught.value.code == "worker_unknown"


def test_an_owner_that_knows_no_keys_is_asked_first_and_old_effects_are_no_answer(
    book: cf.Book, service: Service
) -> None:
    old = cf.present(effect_id="from-last-year")
    service.script = ["lose before"]
    service.answers = [old, old, old]
    effect = declare(service, knows_keys=False)
    outcome = book.perform(effect, "o-1")
    assert outcome.status == "unknown"
    assert (service.questions > 1, len(service.calls)) == (True, 1)
    service.answers = [cf.present(effect_id="new-one")]
    assert book.perform(effect, "o-1").status == "committed"
    assert trail(book)["ownerEffects"] == [{"id": "new-one"}]


def test_what_the_owner_confirmed_is_not_tried_again_after_a_correction(
    book: cf.Book, service: Service
) -> None:
    book.perform(declare(service), "o-1")
    book.people.correct(book.people.look("o-1"), cf.Status.NOT_RUN, **WHO)
    before = sum(1 for _ in book.store.log())
    with pytest.raises(cf.Refused) as caught:
        book.retry("o-1")
    assert caught.value.code == "not_retryable"
    assert sum(1 for _ in book.store.log()) == before
    assert len(service.calls) == 1


def test_what_was_recorded_and_never_dispatched_can_be_cancelled(
    book: cf.Book, service: Service
) -> None:
    service.answers = [cf.unknown()] * 9
    effect = declare(service, knows_keys=False)
    assert book.perform(effect, "o-1").status == "unknown"
    outcome = book.people.cancel(book.people.look("o-1"), **WHO)
    assert (outcome.status, outcome.attempts) == ("not_run", 0)
    assert service.calls == []
    assert trail(book)["reported"] == {"outcome": "not_run"}
