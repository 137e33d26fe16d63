"""Compensation: a new governed operation; both trails stay; what the target shows is read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import counterfoil as cf
from counterfoil.coordinator.export import lines
from counterfoil.operation.replies import Status
from counterfoil.reader.verdict import Decision, Verdict, judge_bytes

from .governing import Desk, commands_of, grant_in, money, opened, operation_of

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


@pytest.fixture
def change(desk: Desk) -> Any:
    return desk.declare(final_by="answer")


@pytest.fixture
def undo(book: cf.Book, change: Any, grant: Grant) -> Callable[..., Any]:
    """Make o-1, and return what undoes it under a new id."""
    book.perform(change, "o-1", under=grant, resource="doc", reserve="10")

    def compensate(new_id: str = "undo", original: str = "o-1", **more: Any) -> Any:
        options = {"under": grant, "resource": "doc", "reserve": "5", **more}
        return book.compensate(original, change, new_id, **options)

    return compensate


def test_a_compensation_is_a_second_operation_with_its_own_cost_and_both_stay(
    book: cf.Book, undo: Callable[..., Any]
) -> None:
    assert undo(value=0).status is Status.COMMITTED
    assert money(book) == ("15", "0")
    assert operation_of(book, "undo")["compensates"] == "o-1"
    assert operation_of(book, "o-1")["disposition"] == "CONFIRMED_APPLIED"
    trails = list(lines(book.store, "default", None, ()))
    for trail in trails:
        verdict = judge_bytes(trail.encode())
        assert isinstance(verdict, Verdict)
        assert verdict.decision is Decision.ALLOW
    assert [json.loads(trail).get("compensates") for trail in trails] == [None, "o-1"]


def test_a_second_compensation_is_refused(
    book: cf.Book, desk: Desk, undo: Callable[..., Any]
) -> None:
    undo()
    with pytest.raises(cf.Refused) as caught:
        undo("undo again")
    assert caught.value.code == "already_compensated"
    assert len(desk.calls) == 2
    assert money(book) == ("15", "0")


def test_the_same_compensation_again_answers_from_the_book(
    desk: Desk, undo: Callable[..., Any]
) -> None:
    undo()
    assert undo().replayed
    assert len(desk.calls) == 2


def test_one_that_left_no_effect_makes_room_for_another(
    book: cf.Book, desk: Desk, undo: Callable[..., Any]
) -> None:
    desk.script = ["refuse"]
    assert undo().status is Status.NOT_RUN
    assert undo("undo again").status is Status.COMMITTED


@pytest.mark.parametrize(
    ("said", "code"), [("lose after", "original_not_applied"), ("refuse", "original_not_applied")]
)
def test_what_is_unknown_or_was_never_applied_is_not_compensated(
    book: cf.Book, desk: Desk, change: Any, grant: Grant, said: str, code: str
) -> None:
    desk.script, desk.answers = [said], False
    options: Any = {"under": grant, "resource": "doc"}
    book.perform(change, "o-1", **options)
    with pytest.raises(cf.Refused) as caught:
        book.compensate("o-1", change, "undo", **options)
    assert caught.value.code == code
    assert len(desk.calls) == 1


def test_what_was_never_begun_is_not_compensated(undo: Callable[..., Any]) -> None:
    with pytest.raises(cf.Refused) as caught:
        undo("undo", original="o-2")
    assert caught.value.code == "operation_unknown"


def test_what_is_disputed_is_not_compensated(
    book: cf.Book, desk: Desk, undo: Callable[..., Any]
) -> None:
    people = book.people
    people.relay(people.look("o-1"), cf.absent(final=True), by="ann", evidence="it is gone")
    with pytest.raises(cf.Refused) as caught:
        undo()
    assert caught.value.code == "original_unsettled"
    assert len(desk.calls) == 1


def test_a_compensation_needs_a_mission(tmp_path: Path, change: Any) -> None:
    with cf.open(tmp_path / "plain.db", create=True) as book:
        book.perform(change, "o-1")
        with pytest.raises(cf.BadInput, match="mission=contract"):
            book.compensate("o-1", change, "undo")


# --- what the target shows -----------------------------------------------------------------------


def test_what_the_target_shows_afterwards_is_read_and_recorded(
    book: cf.Book, desk: Desk, undo: Callable[..., Any]
) -> None:
    seen: list[int] = []

    def look(attempt: cf.Attempt) -> object:
        seen.append(len(desk.calls))
        return {"balance": "0", "by": attempt.operation_id}

    outcome = undo(verify=look)
    assert seen == [2], "it is read after the call, not before"
    assert json.loads(outcome.verified.answer) == {"balance": "0", "by": "undo"}
    assert book.outcome("undo").verified == outcome.verified
    assert [entry.kind for entry in book.store.log()][-1] == "verified"
    assert undo(verify=look).verified == outcome.verified
    assert seen == [2], "an answer is not asked for twice"


def test_an_owners_answer_is_recorded_as_it_was_given(undo: Callable[..., Any]) -> None:
    outcome = undo(verify=lambda _: cf.present({"balance": "3"}))
    assert json.loads(outcome.verified.answer) == {"result": "present", "value": {"balance": "3"}}


def test_a_look_that_fails_is_recorded_and_may_be_made_again(undo: Callable[..., Any]) -> None:
    def fail(_: cf.Attempt) -> object:
        raise ConnectionResetError

    outcome = undo(verify=fail)
    assert outcome.status is Status.COMMITTED
    assert outcome.verified == (None, "it raised ConnectionResetError")
    assert undo(verify=lambda _: True).verified.answer == "true"


def test_nothing_is_verified_before_it_committed(desk: Desk, undo: Callable[..., Any]) -> None:
    desk.script = ["refuse"]
    outcome = undo(verify=lambda _: pytest.fail("it did not commit"))
    assert outcome.verified is None


def test_the_compensation_is_one_command_of_its_own(
    book: cf.Book, undo: Callable[..., Any]
) -> None:
    undo()
    assert commands_of(book)[-3:] == ["compensate", "dispatch", "settle"]
