"""The port: the same tests over every engine."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw
import pytest

from counterfoil.errors import KeyInUse, StoreCorrupt, StoreNotFound, StoreTooNew, StoreUnsafe
from counterfoil.operation.commands import Appended, Claimed, Moved
from counterfoil.operation.events import (
    Answered,
    Dispatched,
    Event,
    Excluded,
    Leased,
    NewEvent,
    Opened,
    Reopened,
    Replied,
    Settled,
)
from counterfoil.operation.identity import StreamId
from counterfoil.operation.replies import Code, Refusal, ReplyKind, Result, Status
from counterfoil.store.chain import GENESIS, link_of, payload_digest
from counterfoil.store.file_checks import file_system_of
from counterfoil.store.memory import MemoryStore
from counterfoil.store.port import Store, WorkerRecord
from counterfoil.store.sqlite import SqliteStore, engine_is_safe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from counterfoil.operation.history import History

BY = WorkerRecord("w-1", "host", "boot", "w-1.lock", 1)
STREAM = StreamId("ns", "acme", "o-1")
OPENED = Opened("act", "own", "k", "sha256:" + "0" * 64, "{}", None, {"deduplicates": True})
DISPATCHED = Dispatched(1, "k", 60.0, None, "first_attempt")
CONFIRMED = Replied(1, ReplyKind.CONFIRMED, effect_id="e-1", value='{"a":1}')


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


def new(*bodies: Any) -> tuple[NewEvent, ...]:
    return tuple(
        NewEvent(os.urandom(16), "w-1", body, None, isinstance(body, Dispatched)) for body in bodies
    )


def start(store: Store, stream: StreamId = STREAM) -> History:
    opened = OPENED._replace(key=f"k-{stream.operation_id}")
    result = store.append(stream, None, new(opened, DISPATCHED), claim=None, by=BY)
    assert isinstance(result, Appended)
    return result.history


def test_what_was_appended_is_loaded_again(make: Callable[..., Store]) -> None:
    store = make()
    assert store.load(STREAM) is None
    history = start(store)
    done = store.append(
        STREAM,
        history,
        new(CONFIRMED, Settled(Status.COMMITTED, Code.CONFIRMED, "x", "2.5")),
        claim="e-1",
        by=BY,
    )
    assert isinstance(done, Appended)
    assert store.load(STREAM) == done.history
    assert [event.n for event in store.events(STREAM)] == [1, 2, 3, 4]
    assert store.worker("w-1") == BY


def test_every_body_comes_back_as_it_was_appended(make: Callable[..., Store]) -> None:
    store = make()
    bodies = (
        OPENED,
        DISPATCHED,
        Replied(1, ReplyKind.TIMEOUT, detail="x", ended=False),
        Leased(5.0),
        Excluded("w-0", "its lock is free", "ops", "ticket"),
        Answered("k", Result.ABSENT, 3, 7, says_final=True, fence=4, basis="final_answer"),
        Dispatched(2, "k", 60.0, 3.5, "nothing_in_doubt", redelivery=True),
        Replied(2, ReplyKind.NO_EFFECT, Refusal.DEFINITE, "no", cost="1"),
        Settled(Status.NOT_RUN, Code.REFUSED, "x"),
        Reopened("ops"),
    )
    store.append(STREAM, None, new(*bodies), claim=None, by=BY)
    assert [event.body for event in store.events(STREAM)] == list(bodies)


def test_a_stream_that_moved_takes_nothing(make: Callable[..., Store]) -> None:
    store = make()
    history = start(store)
    assert store.append(STREAM, None, new(OPENED), claim=None, by=BY) == Moved()
    store.append(STREAM, history, new(CONFIRMED), claim=None, by=BY)
    assert store.append(STREAM, history, new(CONFIRMED), claim=None, by=BY) == Moved()
    assert len(store.events(STREAM)) == 3


def test_the_same_event_ids_appended_twice_are_one_append(make: Callable[..., Store]) -> None:
    store = make()
    events = new(OPENED, DISPATCHED)
    first = store.append(STREAM, None, events, claim=None, by=BY)
    assert store.append(STREAM, None, events, claim=None, by=BY) == first
    assert len(store.events(STREAM)) == 2


def test_an_effect_belongs_to_one_operation(make: Callable[..., Store]) -> None:
    store = make()
    other = StreamId("ns", "acme", "o-2")
    first, second = start(store), start(store, other)
    assert isinstance(store.append(STREAM, first, new(CONFIRMED), claim="e", by=BY), Appended)
    assert store.append(other, second, new(CONFIRMED), claim="e", by=BY) == Claimed("o-1")
    assert len(store.events(other)) == 2


def test_stamps_and_tokens_only_grow_even_if_the_clock_stands_or_goes_back(
    make: Callable[..., Store],
) -> None:
    clock = iter([50, 50, 10, 10, 90, 90])
    store = make(lambda: next(clock))
    for number in range(3):
        start(store, StreamId("ns", "acme", f"o-{number}"))
    entries = list(store.log())
    stamps = [entry.at_us for entry in entries]
    tokens = [entry.token for entry in entries if entry.token is not None]
    assert stamps == sorted(set(stamps))
    assert tokens == sorted(set(tokens))
    assert len(tokens) == 3


def test_the_log_is_one_chain_over_payload_digests(make: Callable[..., Store]) -> None:
    store = make()
    for number in range(3):
        start(store, StreamId("ns", "acme", f"o-{number}"))
    before = GENESIS
    for place, entry in enumerate(store.log(), 1):
        assert entry.seq == place
        assert entry.payload is not None
        assert entry.digest == payload_digest(entry.payload)
        before = link_of(before, entry)
        assert entry.chained == before


def test_what_is_not_settled_is_listed_oldest_first(make: Callable[..., Store]) -> None:
    ticks = itertools.count(1_000, 1_000)
    store = make(lambda: next(ticks))
    histories = [start(store, StreamId("ns", "acme", f"o-{n}")) for n in range(3)]
    settled = new(CONFIRMED, Settled(Status.COMMITTED, Code.CONFIRMED, "x"))
    store.append(StreamId("ns", "acme", "o-1"), histories[1], settled, claim=None, by=BY)
    assert [row.stream.operation_id for row in store.unsettled("ns", 10)] == ["o-0", "o-2"]
    assert [s.operation_id for s in store.streams("ns")] == ["o-0", "o-1", "o-2"]
    assert list(store.streams("elsewhere")) == []


# --- SQLite alone --------------------------------------------------------------------------------


def test_a_database_outlives_its_store(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "e.db", create=True, now_us=lambda: 1)
    history = start(store)
    store.close()
    again = SqliteStore(tmp_path / "e.db", create=False, now_us=lambda: 1)
    assert again.load(STREAM) == history
    again.close()


def test_the_file_is_private_and_the_engine_syncs_each_commit(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "e.db", create=True, now_us=lambda: 1)
    assert (tmp_path / "e.db").stat().st_mode & 0o777 == 0o600
    assert store._db.pragma("synchronous") == 2
    assert store._db.pragma("journal_mode") == "wal"
    store.close()


@pytest.mark.parametrize(
    ("version", "safe"),
    [
        ((3, 40, 1), False),
        ((3, 44, 5), False),
        ((3, 44, 6), True),
        ((3, 45, 0), False),
        ((3, 50, 6), False),
        ((3, 50, 7), True),
        ((3, 51, 2), False),
        ((3, 51, 3), True),
        ((3, 54, 1), True),
    ],
)
def test_engines_that_can_corrupt_their_log_are_told_apart(
    version: tuple[int, ...], safe: bool
) -> None:
    assert engine_is_safe(version) is safe


def test_a_database_that_is_not_there_is_not_made_by_the_way(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFound, match="create=True"):
        SqliteStore(tmp_path / "e.db", create=False, now_us=lambda: 1)
    assert list(tmp_path.iterdir()) == []


def test_a_database_of_a_later_program_is_refused(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "e.db", create=True, now_us=lambda: 1).close()
    with apsw.Connection(str(tmp_path / "e.db")) as db:
        db.execute("UPDATE store SET least_writer = 9")
        db.execute("PRAGMA user_version = 9")
    with pytest.raises(StoreTooNew, match="upgrade"):
        SqliteStore(tmp_path / "e.db", create=False, now_us=lambda: 1)


@pytest.mark.parametrize("content", [b"", b"not a database at all, just text\n" * 40])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "e.db").write_bytes(content)
    with pytest.raises(StoreCorrupt):
        SqliteStore(tmp_path / "e.db", create=False, now_us=lambda: 1)
    assert (tmp_path / "e.db").read_bytes() == content


def test_somebody_elses_database_is_refused_and_left_as_it_was(tmp_path: Path) -> None:
    with apsw.Connection(str(tmp_path / "e.db")) as db:
        db.execute("CREATE TABLE theirs (x)")
    for create in (False, True):
        with pytest.raises(StoreCorrupt, match="no database of Counterfoil"):
            SqliteStore(tmp_path / "e.db", create=create, now_us=lambda: 1)


def test_a_network_file_system_is_told_by_the_longest_mount(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/sda1 rw\n"
        "2 1 0:50 / /srv/share\\040one rw - nfs4 host:/share rw\n"
    )
    assert file_system_of(Path("/srv/share one/deep"), mounts) == "nfs4"
    assert file_system_of(Path("/srv/other"), mounts) == "ext4"


def test_a_database_on_a_network_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 0 0:9 / {tmp_path} rw - nfs host:/x rw\n")
    monkeypatch.setattr("counterfoil.store.file_checks.MOUNTS", mounts)
    with pytest.raises(StoreUnsafe, match="local disk"):
        SqliteStore(tmp_path / "e.db", create=True, now_us=lambda: 1)
    assert not (tmp_path / "e.db").exists()


def test_events_are_values(make: Callable[..., Store]) -> None:
    store = make()
    start(store)
    event = store.events(STREAM)[0]
    assert event == Event(1, event.at_us, "w-1", None, OPENED._replace(key="k-o-1"))


def test_a_key_stands_for_one_operation(make: Callable[..., Store]) -> None:
    store = make()
    start(store)
    with pytest.raises(KeyInUse, match="'o-1'"):
        store.append(
            StreamId("ns", "acme", "o-2"),
            None,
            new(OPENED._replace(key="k-o-1"), DISPATCHED),
            claim=None,
            by=BY,
        )
    assert store.load(StreamId("ns", "acme", "o-2")) is None
