"""A store that forgets when its process ends: for tests, simulations and trying an effect."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

from counterfoil.errors import KeyInUse
from counterfoil.operation.commands import Appended, Claimed, Moved
from counterfoil.operation.events import Event, from_payload
from counterfoil.operation.history import fold
from counterfoil.store.stamping import NOTHING_YET, Head, row_of, stamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from counterfoil.operation.events import NewEvent
    from counterfoil.operation.history import History
    from counterfoil.operation.identity import StreamId
    from counterfoil.store.chain import LogEntry
    from counterfoil.store.port import Row, WorkerRecord


class MemoryStore:
    """The port over lists. ``now_us`` is the wall clock in microseconds."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._lock = threading.Lock()
        self._log: list[LogEntry] = []
        self._streams: dict[StreamId, list[LogEntry]] = {}
        self._rows: dict[StreamId, Row] = {}
        self._claims: dict[tuple[str, str], StreamId] = {}
        self._keys: dict[tuple[str, str], StreamId] = {}
        self._workers: dict[str, WorkerRecord] = {}
        self.suspicion: str | None = None

    def load(self, stream: StreamId) -> History | None:
        """Return an operation's history, or None."""
        events = self.events(stream)
        return fold(events) if events else None

    def events(self, stream: StreamId) -> Sequence[Event]:
        """Return an operation's stream, in order."""
        with self._lock:
            return [event_of(entry) for entry in self._streams.get(stream, ())]

    def append(
        self,
        stream: StreamId,
        before: History | None,
        events: Sequence[NewEvent],
        *,
        claim: str | None,
        by: WorkerRecord,
    ) -> Appended | Moved | Claimed:
        """Append all of ``events`` at once, if the stream is still ``before``."""
        with self._lock:
            place = before.n if before is not None else 0
            stored = self._streams.get(stream, [])
            if len(stored) != place:
                if len(stored) > place and stored[place].event_id == events[0].event_id:
                    return Appended(fold([event_of(entry) for entry in stored]))
                return Moved()
            last = self._log[-1] if self._log else None
            head = Head(last.seq, last.at_us, last.chained) if last else NOTHING_YET
            entries, history = stamp(stream, before, events, head, self._now_us(), 0)
            keyed = (history.opened.owner, history.opened.key)
            keeper = self._keys.get(keyed, stream)
            if keeper != stream:
                raise KeyInUse(history.opened.key, keeper.operation_id)
            if claim is not None:
                claimed = (history.opened.owner, claim)
                holder = self._claims.setdefault(claimed, stream)
                if holder != stream:
                    return Claimed(holder.operation_id)
            self._keys[keyed] = stream
            self._workers[by.worker] = by
            self._log += entries
            self._streams.setdefault(stream, []).extend(entries)
            self._rows[stream] = row_of(stream, history)
            return Appended(history)

    def streams(self, namespace: str) -> Iterator[StreamId]:
        """Yield every operation of a namespace in the order in which they were opened."""
        with self._lock:
            found = [stream for stream in self._streams if stream.namespace == namespace]
        yield from found

    def unsettled(self, namespace: str, limit: int) -> Sequence[Row]:
        """Return operations that are not settled, those changed longest ago first."""
        with self._lock:
            rows = [
                row
                for row in self._rows.values()
                if row.stream.namespace == namespace and row.status == "unknown"
            ]
        return sorted(rows, key=lambda row: row.changed_at_us)[:limit]

    def rows(self) -> Iterator[Row]:
        """Yield the row of every operation."""
        with self._lock:
            found = list(self._rows.values())
        yield from found

    def worker(self, worker: str) -> WorkerRecord | None:
        """Return what is known of a worker."""
        return self._workers.get(worker)

    def log(self, after_seq: int = 0) -> Iterator[LogEntry]:
        """Yield the whole log in the store's order."""
        with self._lock:
            entries = self._log[after_seq:]
        yield from entries

    @property
    def suspect(self) -> str | None:
        """Why the store may have forgotten operations; None where it may not."""
        return self.suspicion

    def accept_gap(self, by: str, evidence: str) -> None:
        """End the suspicion, on a person's word."""
        del by, evidence
        self.suspicion = None

    def close(self) -> None:
        """Nothing to let go of."""


def event_of(entry: LogEntry) -> Event:
    """Return the event of a log entry that still has its payload."""
    body = from_payload(entry.kind, json.loads(entry.payload or "{}"))
    return Event(entry.n, entry.at_us, entry.worker, entry.token, body)
