"""A mission's lines in the log of a store: with an operation's events, or alone; both engines."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING

import apsw
import pytest

from counterfoil.errors import StoreError
from counterfoil.operation.commands import Appended, Claimed, Moved
from counterfoil.store.chain import GENESIS, link_of
from counterfoil.store.memory import MemoryStore
from counterfoil.store.mission_log import Left, Line, Snapshot, mission_stream
from counterfoil.store.sqlite import SqliteStore
from counterfoil.store.witness import Witness

from .test_stores import BY, CONFIRMED, DISPATCHED, OPENED, STREAM, new, start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from counterfoil.store.port import Store

MISSION = mission_stream("ns", "m")


class Said:
    """Lines for version ``version``; what the store told it and asked of it is kept."""

    def __init__(self, version: int, *payloads: str, fails: Exception | None = None) -> None:
        self.stream = MISSION
        self.version, self.payloads, self.fails = version, payloads, fails
        self.snapshot: Snapshot | None = None
        self.left: Sequence[Left] = ()
        self.at_us: list[int] = []
        self.durable = 0

    def lines(self, version: int, at_us: int) -> Sequence[Line] | None:
        self.at_us.append(at_us)
        if self.fails is not None:
            raise self.fails
        if version != self.version:
            return None
        return [Line(os.urandom(16), "commanded", payload) for payload in self.payloads]

    def stored(self) -> None:
        self.durable += 1


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Store]]:
    made: list[Store] = []

    def build(now_us: Callable[[], int] = lambda: 1_000) -> Store:
        if request.param == "memory":
            made.append(MemoryStore(now_us))
        else:
            made.append(SqliteStore(tmp_path / "e.db", create=True, now_us=now_us))
        return made[-1]

    yield build
    for store in made:
        store.close()


def kinds(store: Store) -> list[str]:
    return [entry.kind for entry in store.log()]


def test_lines_alone_are_appended_in_order_and_read_back(make: Callable[..., Store]) -> None:
    store = make()
    first, second = Said(0, "1", "2"), Said(2, "3")
    assert store.command(first, by=BY)
    assert store.command(second, by=BY)
    assert [(line.n, line.payload) for line in store.mission_lines(MISSION, 0)] == [
        (1, "1"),
        (2, "2"),
        (3, "3"),
    ]
    assert [line.n for line in store.mission_lines(MISSION, 2)] == [3]
    assert (store.version(MISSION), list(store.missions())) == (3, [MISSION])
    assert (first.durable, second.durable) == (1, 1)


def test_a_mission_that_moved_takes_nothing(make: Callable[..., Store]) -> None:
    store = make()
    store.command(Said(0, "1"), by=BY)
    stale = Said(0, "2")
    assert not store.command(stale, by=BY)
    assert (store.version(MISSION), stale.durable) == (1, 0)


def test_lines_beside_an_operation_are_stored_with_it_and_stamped_after_it(
    make: Callable[..., Store],
) -> None:
    store = make()
    said = Said(0, "1", "2")
    done = store.append(STREAM, None, new(OPENED, DISPATCHED), claim=None, by=BY, beside=said)
    assert isinstance(done, Appended)
    entries = list(store.log())
    assert [entry.kind for entry in entries] == ["opened", "dispatched", "commanded", "commanded"]
    assert [entry.at_us for entry in entries] == [1_000, 1_001, 1_002, 1_003]
    assert said.at_us == [1_002]
    assert said.durable == 1


def test_the_chain_runs_through_both_and_names_no_mission_like_an_operation(
    make: Callable[..., Store],
) -> None:
    store = make()
    store.command(Said(0, "1"), by=BY)
    store.append(STREAM, None, new(OPENED, DISPATCHED), claim=None, by=BY, beside=Said(1, "2"))
    before = GENESIS
    for place, entry in enumerate(store.log(), 1):
        assert (entry.seq, entry.chained) == (place, link_of(before, entry))
        before = entry.chained
    assert {entry.tenant for entry in store.log() if entry.kind == "commanded"} == {""}
    assert list(store.streams("ns")) == [STREAM]
    assert [row.stream for row in store.rows()] == [STREAM]


@pytest.mark.parametrize("moved", ["mission", "operation"])
def test_where_either_moved_neither_is_stored(make: Callable[..., Store], moved: str) -> None:
    store = make()
    history = start(store)
    store.command(Said(0, "1"), by=BY)
    before = kinds(store)
    said = Said(0 if moved == "mission" else 1, "2")
    expected = None if moved == "operation" else history
    events = new(CONFIRMED)
    assert store.append(STREAM, expected, events, claim=None, by=BY, beside=said) == Moved()
    assert (kinds(store), said.durable) == (before, 0)
    assert store.load(STREAM) == history


def test_what_a_refusal_raises_undoes_the_whole_and_goes_on_up(
    make: Callable[..., Store],
) -> None:
    store = make()
    said = Said(0, fails=LookupError("no"))
    with pytest.raises(LookupError):
        store.append(STREAM, None, new(OPENED, DISPATCHED), claim="e-1", by=BY, beside=said)
    assert (kinds(store), store.load(STREAM), said.durable) == ([], None, 0)
    assert start(store).n == 2
    other = STREAM._replace(operation_id="o-2")
    claimed = store.append(other, start(store, other), new(CONFIRMED), claim="e-1", by=BY)
    assert isinstance(claimed, Appended), "an undone claim is nobody's"


def test_an_effect_of_another_operation_stores_no_line(make: Callable[..., Store]) -> None:
    store = make()
    other = STREAM._replace(operation_id="o-2")
    first, second = start(store), start(store, other)
    store.append(STREAM, first, new(CONFIRMED), claim="e", by=BY)
    said = Said(0, "1")
    done = store.append(other, second, new(CONFIRMED), claim="e", by=BY, beside=said)
    assert done == Claimed("o-1")
    assert store.version(MISSION) == 0


def test_no_lines_are_nothing(make: Callable[..., Store]) -> None:
    store = make()
    done = store.append(STREAM, None, new(OPENED, DISPATCHED), claim=None, by=BY, beside=Said(0))
    assert isinstance(done, Appended)
    assert store.version(MISSION) == 0


def test_a_snapshot_and_what_left_are_found_again(make: Callable[..., Store]) -> None:
    store = make()
    said = Said(0, "1")
    said.snapshot = Snapshot(1, b"state", b"")
    said.left = [Left("o-1", ("ok",), 1, b"body", b"digest")]
    store.command(said, by=BY)
    kept = store.snapshot(MISSION)
    assert kept is not None
    assert kept[:2] == (1, b"state")
    left = store.left(MISSION, "o-1")
    assert left is not None
    assert (left.n, left.body, left.digest) == (1, b"body", b"digest")
    found = store.left_with_approval(MISSION, "ok")
    assert found is not None
    assert found.operation_id == "o-1"
    assert store.left(MISSION, "o-2") is None
    assert store.left_with_approval(MISSION, "no") is None
    elsewhere = mission_stream("ns", "another")
    assert store.snapshot(elsewhere) is None
    assert store.left(elsewhere, "o-1") is None


def test_stamps_of_lines_only_grow(make: Callable[..., Store]) -> None:
    clock = itertools.chain([50, 10, 90], itertools.repeat(90))
    store = make(lambda: next(clock))
    for version in range(3):
        store.command(Said(version, "x"), by=BY)
    assert [line.at_us for line in store.mission_lines(MISSION, 0)] == [50, 51, 90]


# --- SQLite alone --------------------------------------------------------------------------------


def test_a_transaction_that_was_undone_leaves_no_head_for_the_witness(tmp_path: Path) -> None:
    path = tmp_path / "e.db"

    def opened(*, create: bool) -> SqliteStore:
        witness = Witness(tmp_path / "witness")
        return SqliteStore(path, create=create, now_us=lambda: 1_000, witness=witness)

    store = opened(create=True)
    start(store)
    assert not store.command(Said(7, "1"), by=BY)
    with pytest.raises(LookupError):
        store.command(Said(0, fails=LookupError("no")), by=BY)
    store.close()
    again = opened(create=False)
    assert again.suspect is None
    again.close()


@pytest.mark.parametrize(
    "damage",
    ["UPDATE log SET payload = '9' WHERE mission = 1 AND n = 2", "DELETE FROM log WHERE n = 2"],
)
def test_a_line_that_was_changed_or_lost_is_not_read(tmp_path: Path, damage: str) -> None:
    store = SqliteStore(tmp_path / "e.db", create=True, now_us=lambda: 1_000)
    store.command(Said(0, "1", "2", "3"), by=BY)
    db = apsw.Connection(str(tmp_path / "e.db"))
    db.execute(damage)
    db.close()
    with pytest.raises(StoreError, match="line 2 of mission 'm'"):
        list(store.mission_lines(MISSION, 0))
    store.close()
