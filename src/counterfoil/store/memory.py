"""A store that forgets when its process ends: for tests, simulations and trying an effect."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

from counterfoil.errors import KeyInUse
from counterfoil.operation.commands import Appended, Claimed, Moved
from counterfoil.operation.events import Event, from_payload
from counterfoil.operation.history import fold
from counterfoil.store.mission_log import StoredLine
from counterfoil.store.stamping import NOTHING_YET, Head, head_after, row_of, stamp, stamp_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from counterfoil.operation.events import NewEvent
    from counterfoil.operation.history import History
    from counterfoil.operation.identity import StreamId
    from counterfoil.store.chain import LogEntry
    from counterfoil.store.mission_log import Beside, Left, Snapshot
    from counterfoil.store.port import Row, WorkerRecord


class MemoryStore:
    """The port over lists. ``now_us`` is the wall clock in microseconds."""

    def __init__(self, now_us: Callable[[], int]) -> None:
        self._now_us = now_us
        self._lock = threading.RLock()
        self._log: list[LogEntry] = []
        self._streams: dict[StreamId, list[LogEntry]] = {}
        self._rows: dict[StreamId, Row] = {}
        self._claims: dict[tuple[str, str], StreamId] = {}
        self._keys: dict[tuple[str, str], StreamId] = {}
        self._workers: dict[str, WorkerRecord] = {}
        self._missions: dict[StreamId, list[LogEntry]] = {}
        self._snapshots: dict[StreamId, Snapshot] = {}
        self._left: dict[tuple[StreamId, str], Left] = {}
        self._left_approvals: dict[tuple[StreamId, str], str] = {}
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
        beside: Beside | None = None,
    ) -> Appended | Moved | Claimed:
        """Append all of ``events`` at once, if the stream is still ``before``."""
        with self._lock:
            place = before.n if before is not None else 0
            stored = self._streams.get(stream, [])
            if len(stored) != place:
                if len(stored) > place and stored[place].event_id == events[0].event_id:
                    return Appended(fold([event_of(entry) for entry in stored]))
                return Moved()
            entries, history = stamp(stream, before, events, self._head(), self._now_us(), 0)
            keyed = (history.opened.owner, history.opened.key)
            keeper = self._keys.get(keyed, stream)
            if keeper != stream:
                raise KeyInUse(history.opened.key, keeper.operation_id)
            if claim is not None:
                claimed = (history.opened.owner, claim)
                holder = self._claims.get(claimed, stream)
                if holder != stream:
                    return Claimed(holder.operation_id)
            said: list[LogEntry] | None = []
            if beside is not None:
                said = self._said(beside, head_after(entries), by)
            if said is None:
                return Moved()
            if claim is not None:
                self._claims[history.opened.owner, claim] = stream
            self._keys[keyed] = stream
            self._workers[by.worker] = by
            self._log += entries
            self._streams.setdefault(stream, []).extend(entries)
            self._rows[stream] = row_of(stream, history)
            if beside is not None:
                self._keep_said(beside, said)
            return Appended(history)

    def _head(self) -> Head:
        return head_after(self._log) if self._log else NOTHING_YET

    def _said(self, beside: Beside, head: Head, by: WorkerRecord) -> list[LogEntry] | None:
        version = len(self._missions.get(beside.stream, ()))
        lines = beside.lines(version, head.at_us + 1)
        if lines is None:
            return None
        return stamp_lines(beside.stream, version, lines, head, by.worker)

    def _keep_said(self, beside: Beside, said: list[LogEntry]) -> None:
        self._log += said
        self._missions.setdefault(beside.stream, []).extend(said)
        if beside.snapshot is not None:
            self._keep(beside.stream, beside.snapshot, beside.left)
        beside.stored()

    def command(self, beside: Beside, *, by: WorkerRecord) -> bool:
        """Append a mission's lines alone. False: it had moved, nothing was stored."""
        with self._lock:
            head = self._head()
            at_us = max(self._now_us() - 1, head.at_us)
            said = self._said(beside, head._replace(at_us=at_us), by)
            if said is None:
                return False
            self._workers[by.worker] = by
            self._keep_said(beside, said)
            return True

    def missions(self) -> Iterator[StreamId]:
        """Yield the streams of all missions."""
        with self._lock:
            found = list(self._missions)
        yield from found

    def version(self, stream: StreamId) -> int:
        """Return how many lines a mission has."""
        with self._lock:
            return len(self._missions.get(stream, ()))

    def mission_lines(self, stream: StreamId, after_n: int) -> Iterator[StoredLine]:
        """Yield a mission's lines after a place."""
        with self._lock:
            entries = self._missions.get(stream, [])[after_n:]
        for entry in entries:
            yield StoredLine(entry.n, entry.at_us, entry.kind, entry.payload or "")

    def snapshot(self, stream: StreamId) -> Snapshot | None:
        """Return the last snapshot that was kept."""
        with self._lock:
            return self._snapshots.get(stream)

    def left(self, stream: StreamId, operation_id: str) -> Left | None:
        """Return an operation that has left the live state."""
        with self._lock:
            return self._left.get((stream, operation_id))

    def left_with_approval(self, stream: StreamId, approval_id: str) -> Left | None:
        """Return the operation that left the live state with this approval."""
        with self._lock:
            operation_id = self._left_approvals.get((stream, approval_id))
            return None if operation_id is None else self._left.get((stream, operation_id))

    def _keep(self, stream: StreamId, snapshot: Snapshot, left: Sequence[Left]) -> None:
        self._snapshots[stream] = snapshot
        for each in left:
            self._left[stream, each.operation_id] = each
            for approval_id in each.approval_ids:
                self._left_approvals[stream, approval_id] = each.operation_id

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
