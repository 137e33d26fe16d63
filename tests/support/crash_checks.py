"""What must hold of a database after a crash, read by itself and judged by the reader."""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import apsw

from counterfoil.coordinator.export import lines
from counterfoil.reader.verdict import Decision, Verdict, judge_bytes
from counterfoil.store.chain import GENESIS, link_of, payload_digest
from counterfoil.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from pathlib import Path

    from counterfoil.store.chain import LogEntry

NAMESPACE = "default"


def log_of(path: Path) -> list[LogEntry]:
    """Return the whole log, its chain verified from the first entry to the last (I9)."""
    if path.stat().st_size == 0:
        return []
    with closing(SqliteStore(path, create=False, now_us=lambda: time.time_ns() // 1000)) as store:
        entries = list(store.log())
    before = GENESIS
    for place, entry in enumerate(entries, 1):
        assert entry.seq == place, "the log has a gap"
        assert entry.payload is not None
        assert entry.digest == payload_digest(entry.payload), "a payload is not what was stored"
        before = link_of(before, entry)
        assert entry.chained == before, "the chain is broken"
    return entries


def kinds_of(path: Path) -> list[str]:
    """Return the kinds of the events in the log, in order."""
    return [entry.kind for entry in log_of(path)]


def dispatches_in(path: Path) -> int:
    """Return how many dispatches are committed, read over a connection of its own."""
    with closing(apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        db.set_busy_timeout(5000)
        return int(db.execute("SELECT count(*) FROM log WHERE kind = 'dispatched'").get)


def trails_of(path: Path) -> list[dict[str, Any]]:
    """Export every trail of the database; the reader must allow each (I11)."""
    with closing(SqliteStore(path, create=False, now_us=lambda: time.time_ns() // 1000)) as store:
        exported = list(lines(store, NAMESPACE, None, ()))
    for line in exported:
        verdict = judge_bytes(line.encode())
        assert isinstance(verdict, Verdict), verdict
        assert verdict.decision is Decision.ALLOW, verdict
    return [json.loads(line) for line in exported]
