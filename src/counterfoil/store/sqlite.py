"""The store on SQLite, through apsw: operations and their log."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from counterfoil.errors import KeyInUse, StoreCorrupt
from counterfoil.operation.commands import Appended, Claimed, Moved
from counterfoil.operation.events import Event, from_payload
from counterfoil.operation.history import fold
from counterfoil.operation.identity import StreamId
from counterfoil.store import forks
from counterfoil.store.chain import LogEntry, payload_digest
from counterfoil.store.port import Row, WorkerRecord
from counterfoil.store.sqlite_engine import PAGE, engine_is_safe
from counterfoil.store.sqlite_missions import SqliteMissions
from counterfoil.store.stamping import NOTHING_YET, Head, head_after, row_of, stamp

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from counterfoil.operation.events import NewEvent
    from counterfoil.operation.history import History
    from counterfoil.store.mission_log import Beside

__all__ = ["SqliteStore", "engine_is_safe"]

_ENTRY = (
    "SELECT l.seq, COALESCE(o.namespace, m.namespace), COALESCE(o.tenant, ''),"
    " COALESCE(o.operation_id, m.mission_id), l.n, l.event_id, l.kind, l.version,"
    " l.at_us, l.worker, l.token, l.digest, l.payload, l.chained"
    " FROM log l LEFT JOIN operations o ON o.id = l.operation"
    " LEFT JOIN missions m ON m.id = l.mission"
)
_EVENTS = (
    "SELECT n, at_us, worker, token, kind, payload, digest FROM log WHERE operation = ("
    "SELECT id FROM operations WHERE namespace = ? AND tenant = ? AND operation_id = ?) ORDER BY n"
)


class SqliteStore(SqliteMissions):
    """The port over one SQLite file. ``now_us`` is the wall clock in microseconds.

    Raises ``StoreError`` with what to do next for a file that cannot be used.
    """

    # --- the port --------------------------------------------------------------------------------

    def load(self, stream: StreamId) -> History | None:
        """Return an operation's history, or None."""
        events = self.events(stream)
        return fold(events) if events else None

    def events(self, stream: StreamId) -> Sequence[Event]:
        """Return an operation's stream, in order; empty if there is none."""
        names = (stream.namespace, stream.tenant, stream.operation_id)
        return [self._event(*row) for row in self._rows(_EVENTS, names)]

    def _event(
        self,
        n: int,
        at_us: int,
        worker: str,
        token: int | None,
        kind: str,
        text: str,
        digest: bytes,
    ) -> Event:
        try:
            if payload_digest(text) != digest:
                raise StoreCorrupt(f"{self.path} is damaged: an event was changed; run audit")
            return Event(n, at_us, worker, token, from_payload(kind, json.loads(text)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreCorrupt(f"{self.path} is damaged: an event cannot be read") from error

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
        """Append all in one durable transaction, if the stream is still ``before``."""
        with self._lock:
            result = self._durably(lambda: self._write(stream, before, events, claim, by, beside))
            if isinstance(result, Appended):
                self._note_stored(by)
                if beside is not None:
                    beside.stored()
            return result

    def _write(
        self,
        stream: StreamId,
        before: History | None,
        events: Sequence[NewEvent],
        claim: str | None,
        by: WorkerRecord,
        beside: Beside | None,
    ) -> Appended | Moved | Claimed:
        db = self._db
        names = (stream.namespace, stream.tenant, stream.operation_id)
        row = db.execute(
            "SELECT id, version FROM operations"
            " WHERE namespace = ? AND tenant = ? AND operation_id = ?",
            names,
        ).fetchone()
        place = before.n if before is not None else 0
        if (row[1] if row is not None else 0) != place:
            return self._moved(stream, row, place, events)
        head = self._last()
        entries, history = stamp(stream, before, events, head, self._now_us(), self._token_base)
        now = row_of(stream, history)
        if row is None:
            self._check_key(now.owner, history.opened.key, stream)
            db.execute(
                "INSERT INTO operations VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*names, now.owner, now.action, history.opened.key, now.status, now.reason,
                 now.held, now.opened_at_us, now.changed_at_us, now.version),
            )  # fmt: skip
            operation = db.last_insert_rowid()
        else:
            operation = int(row[0])
            db.execute(
                "UPDATE operations SET status = ?, reason = ?, held = ?, changed_at_us = ?,"
                " version = ? WHERE id = ?",
                (now.status, now.reason, now.held, now.changed_at_us, now.version, operation),
            )
        if claim is not None:
            holder = self._claim(now.owner, claim, operation)
            if holder is not None:
                return Claimed(holder)
        self._know(by)
        self._insert(entries, operation, None)
        if beside is not None and not self._write_beside(beside, head_after(entries), by):
            return Moved()
        return Appended(history)

    def _check_key(self, owner: str, key: str, stream: StreamId) -> None:
        """A key stands for one operation; an id that only the key still finds was lost."""
        found = self._db.execute(
            "SELECT namespace, tenant, operation_id FROM operations WHERE owner = ? AND key = ?",
            (owner, key),
        ).fetchone()
        if found is None:
            return
        if tuple(found) == tuple(stream):
            raise StoreCorrupt(
                f"{self.path} is damaged: operation {stream.operation_id!r} is lost from its "
                "index; restore a backup"
            )
        raise KeyInUse(key, str(found[2]))

    def _moved(
        self, stream: StreamId, row: object, place: int, events: Sequence[NewEvent]
    ) -> Appended | Moved:
        """Tell a stream that somebody moved from our own append whose acknowledgement was lost."""
        if row is not None:
            found = self._db.execute(
                "SELECT event_id FROM log WHERE operation = ? AND n = ?",
                (row[0], place + 1),  # type: ignore[index]
            ).fetchone()
            if found is not None and found[0] == events[0].event_id:
                history = self.load(stream)
                assert history is not None
                return Appended(history)
            if found is None and place and len(self.events(stream)) == place:
                raise StoreCorrupt(
                    f"{self.path} is damaged: the row of {stream.operation_id!r} disagrees with "
                    "its events; run audit"
                )
        return Moved()

    def _claim(self, owner: str, effect_id: str, operation: int) -> str | None:
        """Make the effect this operation's own; return the id of another that has it."""
        db = self._db
        found = db.execute(
            "SELECT c.operation, o.operation_id FROM claims c JOIN operations o"
            " ON o.id = c.operation WHERE c.owner = ? AND c.effect_id = ?",
            (owner, effect_id),
        ).fetchone()
        if found is None:
            db.execute("INSERT INTO claims VALUES (?, ?, ?)", (owner, effect_id, operation))
            return None
        return None if found[0] == operation else str(found[1])

    def streams(self, namespace: str) -> Iterator[StreamId]:
        """Yield every operation of a namespace in the order in which they were opened."""
        last = 0
        while True:
            rows = self._rows(
                "SELECT id, tenant, operation_id FROM operations"
                " WHERE namespace = ? AND id > ? ORDER BY id LIMIT ?",
                (namespace, last, PAGE),
            )
            for last, tenant, operation_id in rows:  # noqa: B007 - the next page begins after it
                yield StreamId(namespace, tenant, operation_id)
            if len(rows) < PAGE:
                return

    def unsettled(self, namespace: str, limit: int) -> Sequence[Row]:
        """Return operations that are not settled, those changed longest ago first."""
        rows = self._rows(
            "SELECT tenant, operation_id, owner, action, status, reason, held, opened_at_us,"
            " changed_at_us, version FROM operations WHERE namespace = ?"
            " AND status IN ('unknown', 'disputed') AND status = 'unknown'"
            " ORDER BY changed_at_us LIMIT ?",
            (namespace, limit),
        )
        return [Row(StreamId(namespace, row[0], row[1]), *row[2:]) for row in rows]

    def rows(self) -> Iterator[Row]:
        """Yield the row of every operation of every namespace."""
        last = 0
        while True:
            rows = self._rows(
                "SELECT id, namespace, tenant, operation_id, owner, action, status, reason, held,"
                " opened_at_us, changed_at_us, version FROM operations WHERE id > ?"
                " ORDER BY id LIMIT ?",
                (last, PAGE),
            )
            for row in rows:
                last = row[0]
                yield Row(StreamId(*row[1:4]), *row[4:])
            if len(rows) < PAGE:
                return

    def worker(self, worker: str) -> WorkerRecord | None:
        """Return what is known of a worker."""
        rows = self._rows(
            "SELECT worker, host, boot, lock, pid FROM workers WHERE worker = ?", (worker,)
        )
        return WorkerRecord(*rows[0]) if rows else None

    def log(self, after_seq: int = 0) -> Iterator[LogEntry]:
        """Yield the whole log in the store's order."""
        while True:
            rows = self._rows(_ENTRY + " WHERE l.seq > ? ORDER BY l.seq LIMIT ?", (after_seq, PAGE))
            for row in rows:
                entry = LogEntry(*row)
                after_seq = entry.seq
                yield entry
            if len(rows) < PAGE:
                return

    @property
    def suspect(self) -> str | None:
        """Why the store may have forgotten operations; None where it may not."""
        return self._suspect

    def accept_gap(self, by: str, evidence: str) -> None:
        """End the suspicion, on a person's word, which is kept."""
        with self._lock, self._as_store_errors(), self._db:
            why = self._suspect
            if why is None:
                return
            self._db.execute(
                "INSERT INTO gaps VALUES (?, ?, ?, ?)", (self._now_us(), why, by, evidence)
            )
            self._db.execute("UPDATE store SET suspect = NULL")
        self._suspect = None
        last = self._rows("SELECT seq, at_us, chained FROM log ORDER BY seq DESC LIMIT 1", ())
        if self._witness is not None:
            self._witness.restart(self._store_id, Head(*last[0]) if last else NOTHING_YET)

    def close(self) -> None:
        """Let go of the file; appended events stay durable."""
        with self._lock:
            stands = self._failed is None and self._is_in_place()
            if self._witness is not None and self._head is not None and stands:
                self._witness.note(self._store_id, self._head, now=True)
            self._db.close()
            forks.closed(self._file)
