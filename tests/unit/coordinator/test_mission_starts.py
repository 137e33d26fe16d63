"""A mission is rebuilt from the log; snapshots shorten that and are never believed over it."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import apsw
import pytest

import counterfoil as cf
from counterfoil.coordinator import effects, mission_head
from counterfoil.coordinator.audit import audit
from counterfoil.coordinator.book import Book
from counterfoil.coordinator.clock import SystemClock
from counterfoil.coordinator.mission_head import rebuilt
from counterfoil.coordinator.worker import Worker
from counterfoil.mission import canonical_state_bytes
from counterfoil.operation.replies import Status
from counterfoil.store.chain import payload_digest
from counterfoil.store.memory import MemoryStore
from counterfoil.store.sqlite import SqliteStore

from .governing import CONTRACT, FOREVER_MS, Desk, commands_of, grant_in, money, opened

if TYPE_CHECKING:
    from pathlib import Path

    from counterfoil.coordinator.governed import Grant


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots every few lines."""
    monkeypatch.setattr(mission_head, "SNAPSHOT_LINES", 5)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def carry(book: cf.Book, change: Any, grant: Grant, names: range) -> None:
    for number in names:
        book.perform(change, f"o-{number}", under=grant, resource="doc", reserve="0.5")


@pytest.fixture
def path(tmp_path: Path, desk: Desk) -> Path:
    """A database in which ten operations are settled and one is unknown; most have left."""
    where = tmp_path / "e.db"
    with opened(where) as book:
        grant, change = grant_in(book), desk.declare(final_by="answer")
        carry(book, change, grant, range(3))
        desk.script, desk.answers = ["lose after"], False
        carry(book, change, grant, range(3, 4))
        carry(book, change, grant, range(4, 11))
        desk.answers = True
    return where


def change_in(path: Path, sql: str) -> None:
    db = apsw.Connection(str(path))
    db.execute(sql)
    assert db.changes() > 0
    db.close()


def faults_of(path: Path) -> list[str]:
    with closing(SqliteStore(path, create=False, now_us=SystemClock().now_us)) as store:
        return [fault.code for fault in audit(store)]


def state_bytes(path: Path) -> bytes:
    with opened(path) as book:
        return canonical_state_bytes(book.mission.state)


def test_operations_at_rest_leave_the_live_state_and_the_money_stays(path: Path) -> None:
    with opened(path) as book:
        live = set(book.mission.state["operations"])  # type: ignore[call-overload]
        assert "o-3" in live
        assert len(live) < 5
        assert money(book) == ("5", "0.5")


def test_a_start_from_a_snapshot_leads_to_the_bytes_that_the_whole_log_leads_to(
    path: Path,
) -> None:
    with opened(path) as book:
        assert book.missions.current is not None
        assert book.missions.current.at.snapshot_n > 0
        whole = rebuilt(book.store, book.missions.current.stream)
        assert canonical_state_bytes(whole.state) == canonical_state_bytes(book.mission.state)
        assert whole.state.parts == book.mission.state.parts


def test_a_start_folds_only_what_came_after_the_snapshot(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folds: list[int] = []
    one = mission_head.folded
    monkeypatch.setattr(
        mission_head, "folded", lambda *given: folds.append(given[1].n) or one(*given)
    )
    state_bytes(path)
    assert len(folds) < 10


@pytest.mark.parametrize(
    "damage",
    [
        """UPDATE missions SET
           snapshot = CAST(replace(snapshot, '"spent":"', '"spent":"9') AS BLOB)""",
        "UPDATE missions SET snapshot = zeroblob(40)",
        "UPDATE missions SET snapshot = NULL",
        "UPDATE missions SET snapshot_n = snapshot_n - 1",
        "UPDATE missions SET snapshot_n = 100000",
        "UPDATE missions SET snapshot_n = NULL, snapshot = NULL",
    ],
)  # fmt: skip
def test_a_snapshot_that_the_log_does_not_vouch_for_is_not_believed(
    path: Path, desk: Desk, damage: str
) -> None:
    before = state_bytes(path)
    change_in(path, damage)
    assert faults_of(path) == ["snapshot_disagrees"][: "snapshot = NULL" not in damage]
    assert state_bytes(path) == before
    with opened(path) as book:
        grant = book.mission.run("r").granted("g")
        assert book.resume("o-3").status is Status.COMMITTED
        change: Any = effects.registered("change")
        carry(book, change, grant, range(20, 24))
        assert money(book) == ("7.5", "0")
        assert list(audit(book.store)) == []


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE missions_left SET body = zeroblob(40) WHERE operation_id = 'o-1'",
        """UPDATE missions_left SET
           body = CAST(replace(body, 'CONFIRMED_APPLIED', 'CONFIRMED_NOT_APPLIED') AS BLOB)""",
        "UPDATE missions_left SET n = 100000",
    ],
)  # fmt: skip
def test_what_left_and_was_damaged_is_found_in_the_log_again(
    path: Path, desk: Desk, damage: str
) -> None:
    change_in(path, damage)
    assert set(faults_of(path)) == {"left_disagrees"}
    with opened(path) as book:
        grant = book.mission.run("r").granted("g")
        change: Any = cf.coordinator.effects.registered("change")  # type: ignore[attr-defined]
        outcome = book.compensate("o-1", change, "undo", under=grant, resource="doc", reserve="1")
        assert outcome.status is Status.COMMITTED
        assert list(audit(book.store)) == []


def test_an_operation_that_left_comes_back_for_a_correction(path: Path) -> None:
    with opened(path) as book:
        people = book.people
        people.correct(people.look("o-1"), Status.NOT_RUN, by="ann", evidence="R-9")
        assert commands_of(book)[-1] == "correct"
        assert money(book) == ("4.5", "0.5")
    before = state_bytes(path)
    assert state_bytes(path) == before


def test_a_line_that_was_changed_stops_the_mission(path: Path) -> None:
    change_in(path, "UPDATE log SET payload = replace(payload, '0.5', '0.1') WHERE mission = 1")
    change_in(path, "UPDATE missions SET snapshot = NULL")
    with pytest.raises(cf.StoreError, match="run audit"):
        opened(path)
    assert "mission_unreadable" in faults_of(path)


def test_a_time_that_is_not_its_stamp_is_a_fault(path: Path) -> None:
    db = apsw.Connection(str(path))
    n, payload = db.execute("SELECT n, payload FROM log WHERE kind = 'commanded' LIMIT 1").get
    now = json.loads(payload)["now"]
    changed = payload.replace(now, str(int(now) - 1))
    digest = payload_digest(changed)
    db.execute(
        "UPDATE log SET payload = ?, digest = ? WHERE mission = 1 AND n = ?", (changed, digest, n)
    )
    db.close()
    assert "mission_time" in faults_of(path)


def test_a_second_process_follows_over_the_snapshots_of_the_first(
    tmp_path: Path, desk: Desk
) -> None:
    change = desk.declare()
    with opened(tmp_path / "e.db") as one, opened(tmp_path / "e.db") as two:
        grant = grant_in(one)
        carry(one, change, grant, range(3))
        assert money(two) == ("1.5", "0")
        carry(one, change, grant, range(3, 20))
        carry(two, change, two.mission.run("r").granted("g"), range(20, 23))
        carry(one, change, grant, range(23, 25))
        assert money(one) == money(two) == ("12.5", "0")
        assert canonical_state_bytes(one.mission.state) == canonical_state_bytes(two.mission.state)
        assert list(audit(one.store)) == []


def test_an_approval_that_left_with_its_operation_is_still_known(
    tmp_path: Path, desk: Desk
) -> None:
    with opened(tmp_path / "e.db") as book:
        grant, change = grant_in(book), desk.declare()

        def approve() -> None:
            digest = book.mission.digest_of(change, resource="doc")
            book.mission.approve(
                "ok", operation_id="o-0", action_digest=digest, max_amount="1", approver="boss",
                expires_at=FOREVER_MS,
            )  # fmt: skip

        approve()
        carry(book, change, grant, range(6))
        assert "ok" not in book.mission.state["approvals"]  # type: ignore[operator]
        with pytest.raises(cf.Refused) as caught:
            approve()
        assert caught.value.code == "approval_exists"


def test_a_store_in_memory_keeps_a_mission_too(desk: Desk) -> None:
    clock = SystemClock()
    store = MemoryStore(clock.now_us)
    change = desk.declare()
    with Book(store, Worker(None), clock, mission=CONTRACT) as book:
        grant = grant_in(book)
        carry(book, change, grant, range(12))
        before = canonical_state_bytes(book.mission.state)
        with Book(store, Worker(None), clock, mission=CONTRACT) as again:
            assert canonical_state_bytes(again.mission.state) == before
            assert money(again) == ("6", "0")
        assert list(audit(store)) == []
