"""Several workers under one mission, and stores that may have forgotten: no unit is spent twice."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

import counterfoil as cf
from counterfoil.coordinator import mission_head
from counterfoil.coordinator.audit import audit
from counterfoil.coordinator.book import Book
from counterfoil.coordinator.worker import Worker
from counterfoil.mission import canonical_state_bytes
from counterfoil.operation.events import FORGOTTEN
from counterfoil.operation.replies import Status
from counterfoil.store.memory import MemoryStore
from counterfoil.testing.books import VirtualClock

from .governing import CONTRACT, Desk, commands_of, grant_in, money, opened, operation_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def desk() -> Desk:
    return Desk()


def test_four_workers_spend_one_budget_to_the_last_unit_and_not_beyond(
    tmp_path: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mission_head, "SNAPSHOT_LINES", 20)
    change = desk.declare()
    with ExitStack() as stack:
        books = [stack.enter_context(opened(tmp_path / "e.db")) for _ in range(4)]
        grant_in(books[0])
        codes: list[str] = []

        def work(number: int) -> None:
            grant = books[number].mission.run("r").granted("g")
            for turn in range(6):
                try:
                    books[number].perform(
                        change, f"o-{number}-{turn}", under=grant, resource="doc", reserve="5"
                    )
                except cf.Refused as refusal:
                    codes.append(refusal.code)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert codes == ["grant_limit_exceeded"] * 4
        assert len(desk.calls) == 20
        assert {money(book) for book in books} == {("100", "0")}
        assert len({canonical_state_bytes(book.mission.state) for book in books}) == 1
        assert list(audit(books[0].store)) == []


def test_threads_of_one_book_share_its_state(tmp_path: Path, desk: Desk) -> None:
    change = desk.declare()
    with opened(tmp_path / "e.db") as book:
        grant = grant_in(book)

        def work(number: int) -> None:
            for turn in range(5):
                name = f"o-{number}-{turn}"
                book.perform(change, name, under=grant, resource="doc", reserve="1")

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert money(book) == ("20", "0")


def test_a_retry_that_waits_for_another_worker_reserves_and_can_be_cancelled(
    tmp_path: Path, desk: Desk
) -> None:
    desk.script = ["refuse"]
    change = desk.declare()
    with opened(tmp_path / "e.db") as first, opened(tmp_path / "e.db", patience=0.1) as second:
        grant = grant_in(first)
        first.perform(change, "o-1", under=grant, resource="doc", reserve="10")
        outcome = second.retry("o-1")
        assert (outcome.status, outcome.why.code) == (Status.UNKNOWN, "in_flight")
        assert money(second) == ("0", "10")
        looked = second.people.look("o-1")
        second.people.cancel(looked, by="ann", evidence="not wanted any more")
        assert money(second) == ("0", "0")
        assert operation_of(second, "o-1")["disposition"] == "CONFIRMED_NOT_APPLIED"
    assert len(desk.calls) == 1


def test_in_a_store_that_may_have_forgotten_money_is_held_for_what_may_have_been_sent(
    desk: Desk,
) -> None:
    clock = VirtualClock()
    store = MemoryStore(clock.now_us)
    store.suspicion = "an older copy"
    change: Any = desk.declare(final_by="answer")
    with Book(store, Worker(None), clock, mission=CONTRACT, patience=1) as book:
        grant = grant_in(book)
        options: Any = {"under": grant, "resource": "doc", "reserve": "10"}
        assert book.perform(change, "o-1", **options).status is Status.UNKNOWN
        assert (money(book), desk.calls) == (("0", "10"), [])
        book.people.worker_dead(FORGOTTEN, by="ann", evidence="all hosts were reinstalled")
        assert book.resume("o-1").status is Status.COMMITTED
        assert money(book) == ("10", "0")
        assert commands_of(book)[2:] == [
            "admit", "dispatch", "settle", "retry", "dispatch", "settle",
        ]  # fmt: skip
