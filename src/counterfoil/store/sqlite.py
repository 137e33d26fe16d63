"""The store on SQLite, through apsw: WAL, `synchronous=FULL`, `BEGIN IMMEDIATE` always."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any

import apsw

from counterfoil.errors import (
    KeyInUse,
    StoreCorrupt,
    StoreError,
    StoreFailed,
    StoreTooNew,
    StoreUnsafe,
    StoreUnwritable,
)
from counterfoil.operation.commands import Appended, Claimed, Moved
from counterfoil.operation.events import Event, from_payload
from counterfoil.operation.history import fold
from counterfoil.operation.identity import StreamId
from counterfoil.store.chain import LogEntry, payload_digest
from counterfoil.store.file_checks import check_path, make_private
from counterfoil.store.port import Row, WorkerRecord
from counterfoil.store.stamping import NOTHING_YET, Head, row_of, stamp
from counterfoil.store.witness import Checkpoint, Witness, why_suspect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from counterfoil.operation.events import NewEvent
    from counterfoil.operation.history import History

APPLICATION_ID = 0x43464C31
SCHEMA = 1
"""The schema that this program writes; it reads those from 1 up to it."""
BUSY_MS = 10_000
"""Milliseconds to wait for another process's transaction before giving up."""
CHECKPOINT_PAGES = 2_000
"""WAL pages between checkpoints: 8 MB, so that few commits pay for one, and the file is soon
overwritten in place, which syncs faster than growing it."""
TOKENS_SKIPPED = 1_000_000
"""How far tokens jump in a store that may have forgotten some it handed out."""
PAGE = 500
"""Rows read at a time where a whole log is walked."""

WAL_RESET_FIXED = ((3, 44, 6), (3, 50, 7), (3, 51, 3))
"""The releases that mended the WAL-reset corruption; within a series, from there on."""

_ENTRY = (
    "SELECT l.seq, o.namespace, o.tenant, o.operation_id, l.n, l.event_id, l.kind, l.version,"
    " l.at_us, l.worker, l.token, l.digest, l.payload, l.chained"
    " FROM log l JOIN operations o ON o.id = l.operation"
)
_EVENTS = (
    "SELECT n, at_us, worker, token, kind, payload, digest FROM log WHERE operation = ("
    "SELECT id FROM operations WHERE namespace = ? AND tenant = ? AND operation_id = ?) ORDER BY n"
)


def engine_is_safe(version: tuple[int, ...]) -> bool:
    """Whether this SQLite is free of the WAL-reset corruption."""
    series = [fixed for fixed in WAL_RESET_FIXED if fixed[:2] == version[:2]]
    return version >= series[0] if series else version > WAL_RESET_FIXED[-1]


class SqliteStore:
    """The port over one SQLite file. ``now_us`` is the wall clock in microseconds.

    Raises ``StoreError`` with what to do next for a file that cannot be used.
    """

    def __init__(
        self,
        path: Path,
        *,
        create: bool,
        now_us: Callable[[], int],
        witness: Witness | None = None,
    ) -> None:
        self.path = path
        self._witness = witness
        self._head: Head | None = None
        self._now_us = now_us
        self._lock = threading.RLock()
        self._failed: str | None = None
        self._known_workers: set[str] = set()
        version = tuple(int(part) for part in apsw.sqlite_lib_version().split("."))
        if not engine_is_safe(version):
            raise StoreUnsafe(
                f"SQLite {apsw.sqlite_lib_version()} can corrupt its log; install a newer apsw"
            )
        check_path(path, create=create)
        make_private(path)
        with self._as_store_errors():
            self._db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                self._db.set_busy_timeout(BUSY_MS)
                self._prepare(create=create)
            except BaseException:
                self._db.close()
                raise

    # --- opening ---------------------------------------------------------------------------------

    def _prepare(self, *, create: bool) -> None:
        db = self._db
        size = self.path.stat().st_size
        with db:  # one look, so that a process that is just making it is not seen half way
            ours = int(db.pragma("application_id") or 0) == APPLICATION_ID
            fresh = not list(db.execute("SELECT 1 FROM sqlite_schema LIMIT 1"))
        if size > 0 and not ours and not (fresh and create):
            raise StoreCorrupt(f"{self.path} is no database of Counterfoil; name another file")
        if size == 0 and not create:
            raise StoreCorrupt(f"{self.path} is empty; make a database with open(..., create=True)")
        self._turn_on_wal()
        db.pragma("synchronous", "full")
        if sys.platform == "darwin":
            db.pragma("fullfsync", True)
            db.pragma("checkpoint_fullfsync", True)
        db.pragma("foreign_keys", True)
        db.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        self._migrate()
        row = db.execute("SELECT least_writer, token_base, store_id, suspect FROM store").fetchone()
        if row is None:
            raise StoreCorrupt(f"{self.path} lacks its own description; restore a backup")
        if int(row[0]) > SCHEMA:
            raise self._too_new(int(row[0]))
        self._token_base, self._store_id = int(row[1]), str(row[2])
        self._suspect = None if row[3] is None else str(row[3])
        self._compare_with_witness()

    def _turn_on_wal(self) -> None:
        """Changing the journal mode needs the file alone, and does not wait for it by itself."""
        give_up_at_s = time.monotonic() + BUSY_MS / 1000
        while True:
            try:
                self._db.pragma("journal_mode", "wal")
            except apsw.BusyError:
                if time.monotonic() >= give_up_at_s:
                    raise
                time.sleep(0.005)
            else:
                return

    def _compare_with_witness(self) -> None:
        """A head behind the witness, or apart from it, makes the store suspect, durably."""
        seen = self._witness.last() if self._witness is not None else None
        if seen is None:
            return
        seq = seen.seq if isinstance(seen, Checkpoint) else 0
        last = self._db.execute("SELECT max(seq) FROM log").fetchone()
        there = self._db.execute("SELECT chained FROM log WHERE seq = ?", (seq,)).fetchone()
        head = None if there is None else bytes(there[0]).hex()
        why = why_suspect(seen, self._store_id, int(last[0] or 0) if last else 0, head)
        if why is not None and self._suspect is None:
            # Tokens go on above all that may have been handed out and forgotten.
            self._token_base += max(seq, TOKENS_SKIPPED)
            self._db.execute(
                "UPDATE store SET suspect = ?, token_base = ?", (why, self._token_base)
            )
            self._suspect = why

    def _migrate(self) -> None:
        db = self._db
        db.execute("BEGIN IMMEDIATE")
        try:
            found = int(db.pragma("user_version") or 0)
            least = found
            if found > SCHEMA:
                row = db.execute("SELECT least_writer FROM store").fetchone()
                least = SCHEMA + 1 if row is None else int(row[0])
                if least > SCHEMA:
                    raise self._too_new(least)
            for number in range(found + 1, SCHEMA + 1):
                name = f"sqlite_{number:04}.sql"
                db.execute(
                    resources.files("counterfoil.store.migrations").joinpath(name).read_text()
                )
            if found == 0:
                db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                db.execute(
                    "INSERT INTO store VALUES (1, ?, 1, 1, 0, NULL)", (os.urandom(16).hex(),)
                )
            if found < SCHEMA:
                db.execute(f"PRAGMA user_version = {SCHEMA}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def _too_new(self, least: int) -> StoreTooNew:
        return StoreTooNew(
            f"{self.path} needs a program that writes schema {least}, this one writes {SCHEMA}; "
            "upgrade counterfoil"
        )

    @contextmanager
    def _as_store_errors(self) -> Iterator[None]:
        """Say what an engine's error means for the caller."""
        try:
            yield
        except (apsw.NotADBError, apsw.CorruptError) as error:
            raise StoreCorrupt(f"{self.path} is damaged ({error}); restore a backup") from error
        except apsw.BusyError as error:
            raise StoreError(
                f"{self.path} has been locked by another process for {BUSY_MS // 1000} s; "
                "find the process that holds it, then try again"
            ) from error
        except (apsw.ReadOnlyError, apsw.CantOpenError, apsw.PermissionsError) as error:
            raise StoreUnwritable(f"{self.path} cannot be written ({error})") from error
        except (apsw.IOError, apsw.FullError) as error:
            # After a failed write or sync nothing that this process reads back proves anything.
            self._failed = str(error)
            raise self._stopped() from error
        except apsw.SQLError as error:
            raise StoreCorrupt(f"{self.path}: {error}; restore a backup") from error
        except apsw.Error as error:
            raise StoreError(f"{self.path}: {error}") from error

    def _stopped(self) -> StoreFailed:
        return StoreFailed(
            f"{self.path}: a write or sync failed ({self._failed}); this process sends nothing "
            "more from it; mend the disk, then open it anew"
        )

    def _rows(self, sql: str, bindings: tuple[object, ...]) -> list[Any]:
        with self._lock, self._as_store_errors():
            try:
                return self._db.execute(sql, bindings).fetchall()
            except UnicodeDecodeError as error:
                raise StoreCorrupt(f"{self.path} is damaged: text is not UTF-8") from error

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
    ) -> Appended | Moved | Claimed:
        """Append all in one durable transaction, if the stream is still ``before``."""
        with self._lock, self._as_store_errors():
            if self._failed is not None:
                raise self._stopped()
            db = self._db
            db.execute("BEGIN IMMEDIATE")
            try:
                result = self._write(stream, before, events, claim, by)
                db.execute("COMMIT" if isinstance(result, Appended) else "ROLLBACK")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise
            self._known_workers.add(by.worker)
            if self._witness is not None and self._head is not None:
                self._witness.note(self._store_id, self._head)
            return result

    def _write(
        self,
        stream: StreamId,
        before: History | None,
        events: Sequence[NewEvent],
        claim: str | None,
        by: WorkerRecord,
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
        last = db.execute(
            "SELECT seq, at_us, chained FROM log ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        head = Head(*last) if last is not None else NOTHING_YET
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
        if by.worker not in self._known_workers:
            db.execute(
                "INSERT OR IGNORE INTO workers VALUES (?, ?, ?, ?, ?)",
                (by.worker, by.host, by.boot, by.lock, by.pid),
            )
        db.executemany(
            "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (e.seq, operation, e.n, e.event_id, e.kind, e.version, e.at_us, e.worker, e.token,
                 e.digest, e.payload, e.chained)
                for e in entries
            ],
        )  # fmt: skip
        self._head = Head(entries[-1].seq, entries[-1].at_us, entries[-1].chained)
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
            if self._witness is not None and self._head is not None and self._failed is None:
                self._witness.note(self._store_id, self._head, now=True)
            self._db.close()
