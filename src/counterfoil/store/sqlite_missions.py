"""A mission's tables in SQLite: its lines in the log, its head, and what is derived from them."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from counterfoil.errors import StoreCorrupt
from counterfoil.operation.commands import Moved
from counterfoil.store.chain import payload_digest
from counterfoil.store.mission_log import Left, Snapshot, StoredLine, mission_stream
from counterfoil.store.sqlite_engine import PAGE, SqliteEngine
from counterfoil.store.stamping import stamp_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from counterfoil.operation.identity import StreamId
    from counterfoil.store.mission_log import Beside
    from counterfoil.store.port import WorkerRecord
    from counterfoil.store.stamping import Head

_LEFT = (
    "SELECT l.operation_id, l.n, l.body, l.digest FROM missions m"
    " JOIN missions_left l ON l.mission = m.id"
    " WHERE m.namespace = ? AND m.mission_id = ? AND l.operation_id = ?"
)
_LEFT_WITH_APPROVAL = (
    "SELECT l.operation_id, l.n, l.body, l.digest FROM missions m"
    " JOIN missions_left_approvals a ON a.mission = m.id"
    " JOIN missions_left l ON l.mission = m.id AND l.operation_id = a.operation_id"
    " WHERE m.namespace = ? AND m.mission_id = ? AND a.approval_id = ?"
)


class SqliteMissions(SqliteEngine):
    """The part of the port that keeps missions (``store.mission_log.MissionStore``)."""

    def command(self, beside: Beside, *, by: WorkerRecord) -> bool:
        """Append a mission's lines alone. False: it had moved, nothing was stored."""

        def write() -> Moved | None:
            head = self._last()
            # As an operation's events are stamped: after the last, and not before the clock.
            head = head._replace(at_us=max(self._now_us() - 1, head.at_us))
            self._know(by)
            return None if self._write_beside(beside, head, by) else Moved()

        with self._lock:
            if isinstance(self._durably(write), Moved):
                return False
            self._note_stored(by)
            beside.stored()
            return True

    def _write_beside(self, beside: Beside, head: Head, by: WorkerRecord) -> bool:
        """Write a mission's lines within the transaction; False where it is not as expected."""
        db, stream = self._db, beside.stream
        found = self._mission(stream)
        version = 0 if found is None else found[1]
        lines = beside.lines(version, head.at_us + 1)
        if not lines:
            return lines is not None
        entries = stamp_lines(stream, version, lines, head, by.worker)
        if found is None:
            db.execute(
                "INSERT INTO missions VALUES (NULL, ?, ?, ?, NULL, NULL)",
                (stream.namespace, stream.operation_id, len(entries)),
            )
            mission = db.last_insert_rowid()
        else:
            mission = found[0]
            db.execute(
                "UPDATE missions SET version = ? WHERE id = ?", (version + len(entries), mission)
            )
        self._insert(entries, None, mission)
        if beside.snapshot is not None:
            self._keep(mission, beside.snapshot, beside.left)
        return True

    def _mission(self, stream: StreamId) -> tuple[int, int] | None:
        row = self._db.execute(
            "SELECT id, version FROM missions WHERE namespace = ? AND mission_id = ?",
            (stream.namespace, stream.operation_id),
        ).fetchone()
        return None if row is None else (int(row[0]), int(row[1]))

    def _keep(self, mission: int, snapshot: Snapshot, left: Sequence[Left]) -> None:
        db = self._db
        db.execute(
            "UPDATE missions SET snapshot_n = ?, snapshot = ? WHERE id = ?",
            (snapshot.n, snapshot.body, mission),
        )
        db.executemany(
            "INSERT OR REPLACE INTO missions_left VALUES (?, ?, ?, ?, ?)",
            [(mission, each.operation_id, each.n, each.body, each.digest) for each in left],
        )
        db.executemany(
            "INSERT OR REPLACE INTO missions_left_approvals VALUES (?, ?, ?)",
            [(mission, approval, each.operation_id) for each in left
             for approval in each.approval_ids],
        )  # fmt: skip

    def missions(self) -> Iterator[StreamId]:
        """Yield the streams of all missions."""
        for namespace, mission_id in self._rows(
            "SELECT namespace, mission_id FROM missions ORDER BY id", ()
        ):
            yield mission_stream(namespace, mission_id)

    def version(self, stream: StreamId) -> int:
        """Return how many lines a mission has."""
        with self._lock, self._as_store_errors():
            found = self._mission(stream)
            return 0 if found is None else found[1]

    def mission_lines(self, stream: StreamId, after_n: int) -> Iterator[StoredLine]:
        """Yield a mission's lines after a place. Raises ``StoreCorrupt`` for one that was changed
        or is missing."""
        with self._lock, self._as_store_errors():
            found = self._mission(stream)
        while found is not None:
            rows = self._rows(
                "SELECT n, at_us, kind, payload, digest FROM log"
                " WHERE mission = ? AND n > ? ORDER BY n LIMIT ?",
                (found[0], after_n, PAGE),
            )
            for n, at_us, kind, payload, digest in rows:
                if n != after_n + 1 or payload is None or payload_digest(payload) != digest:
                    raise StoreCorrupt(
                        f"{self.path} is damaged: line {after_n + 1} of mission "
                        f"{stream.operation_id!r} was changed or is missing; run audit"
                    )
                after_n = n
                yield StoredLine(n, at_us, kind, payload)
            if len(rows) < PAGE:
                return

    def snapshot(self, stream: StreamId) -> Snapshot | None:
        """Return the last snapshot that was kept."""
        rows = self._rows(
            "SELECT snapshot_n, snapshot FROM missions WHERE namespace = ? AND mission_id = ?",
            (stream.namespace, stream.operation_id),
        )
        if not rows or rows[0][0] is None or rows[0][1] is None:
            return None
        body = bytes(rows[0][1])
        return Snapshot(int(rows[0][0]), body, hashlib.sha256(body).digest())

    def left(self, stream: StreamId, operation_id: str) -> Left | None:
        """Return an operation that has left the live state."""
        return self._one_left(_LEFT, (stream.namespace, stream.operation_id, operation_id))

    def left_with_approval(self, stream: StreamId, approval_id: str) -> Left | None:
        """Return the operation that left the live state with this approval."""
        names = (stream.namespace, stream.operation_id, approval_id)
        return self._one_left(_LEFT_WITH_APPROVAL, names)

    def _one_left(self, sql: str, bindings: tuple[object, ...]) -> Left | None:
        rows = self._rows(sql, bindings)
        if not rows:
            return None
        operation_id, n, body, digest = rows[0]
        return Left(operation_id, (), int(n), bytes(body), bytes(digest))
