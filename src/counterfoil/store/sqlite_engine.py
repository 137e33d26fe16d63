"""One SQLite file, opened so that a commit is durable; what its errors mean for a caller.

WAL, `synchronous=FULL`, `BEGIN IMMEDIATE` always. The tables and what is in them are elsewhere.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from counterfoil.errors import (
    StoreCorrupt,
    StoreError,
    StoreFailed,
    StoreTooNew,
    StoreUnsafe,
    StoreUnwritable,
)
from counterfoil.operation.commands import Claimed, Moved
from counterfoil.record.instants import from_unix_us
from counterfoil.store import forks
from counterfoil.store.file_checks import check_path, make_private
from counterfoil.store.stamping import NOTHING_YET, Head, head_after
from counterfoil.store.witness import Checkpoint, Witness, why_suspect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from counterfoil.store.chain import LogEntry
    from counterfoil.store.port import WorkerRecord

R = TypeVar("R")

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


def engine_is_safe(version: tuple[int, ...]) -> bool:
    """Whether this SQLite is free of the WAL-reset corruption."""
    series = [fixed for fixed in WAL_RESET_FIXED if fixed[:2] == version[:2]]
    return version >= series[0] if series else version > WAL_RESET_FIXED[-1]


class SqliteEngine:
    """One open file. ``now_us`` is the wall clock in microseconds.

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
        self._file = forks.opening(path)
        with self._as_store_errors():
            self._db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
            try:
                self._db.set_busy_timeout(BUSY_MS)
                self._prepare(create=create)
                self._log_file = self._file_at("-wal")
            except BaseException:
                self._db.close()
                forks.closed(self._file)
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
        witness = self._witness
        if witness is None or self._found_by(witness)[0] is None:
            return
        db = self._db
        db.execute("BEGIN IMMEDIATE")  # another process may be finding the same
        try:
            why, seen_seq, head = self._found_by(witness)
            if why is not None:
                now_us = self._now_us()
                text = f"{why} (found at {from_unix_us(now_us)})"
                # Tokens go on above all that may have been handed out and forgotten; the clock
                # keeps two gaps of one copy apart.
                above = max(self._token_base + max(seen_seq, TOKENS_SKIPPED), now_us // 100)
                db.execute("UPDATE store SET suspect = ?, token_base = ?", (text, above))
                # Before the commit: a crash in between leaves a witness that knows more.
                witness.restart(self._store_id, head, text)
                self._suspect, self._token_base = text, above
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise

    def _found_by(self, witness: Witness) -> tuple[str | None, int, Head]:
        """Why the store is suspect, how far the witness saw it, and where it is."""
        db = self._db
        row = db.execute("SELECT token_base, suspect FROM store").fetchone()
        assert row is not None
        self._token_base = int(row[0])
        self._suspect = None if row[1] is None else str(row[1])
        seen = witness.last()
        seq = seen.seq if isinstance(seen, Checkpoint) else 0
        last = db.execute(
            "SELECT seq, at_us, chained FROM log ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        head = NOTHING_YET if last is None else Head(*last)
        there = db.execute("SELECT chained FROM log WHERE seq = ?", (seq,)).fetchone()
        chained = None if there is None else bytes(there[0]).hex()
        why = why_suspect(seen, self._store_id, head.seq, chained, self._suspect)
        return why, seq, head

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

    # --- writing ---------------------------------------------------------------------------------

    def _durably(self, write: Callable[[], R]) -> R:
        """Run ``write`` in one durable transaction, undone where it stored nothing or raised."""
        with self._lock, self._as_store_errors():
            if self._failed is not None:
                raise self._stopped()
            db = self._db
            head = self._head
            db.execute("BEGIN IMMEDIATE")
            try:
                result = write()
                undone = isinstance(result, Moved | Claimed)
                db.execute("ROLLBACK" if undone else "COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                self._head = head
                raise
            if undone:
                self._head = head
            elif not self._is_in_place():
                raise StoreFailed(
                    f"{self.path} was replaced or removed while it was open here; nothing is sent "
                    "from what was stored beside it; close it, then open it anew"
                )
            return result

    def _file_at(self, end: str) -> tuple[int, int] | None:
        try:
            found = os.stat(f"{self.path}{end}")  # noqa: PTH116 - once a commit
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _is_in_place(self) -> bool:
        """Whether the files at our path are those that are open here.

        Where a copy was put in their place, what is stored here is stored for nobody else: two
        histories of one operation would each permit an effect.
        """
        return self._file_at("") == self._file and self._file_at("-wal") == self._log_file

    def _last(self) -> Head:
        """Where the log stands."""
        last = self._db.execute(
            "SELECT seq, at_us, chained FROM log ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        return Head(*last) if last is not None else NOTHING_YET

    def _insert(self, entries: list[LogEntry], operation: int | None, mission: int | None) -> None:
        self._db.executemany(
            "INSERT INTO log VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (e.seq, operation, mission, e.n, e.event_id, e.kind, e.version, e.at_us, e.worker,
                 e.token, e.digest, e.payload, e.chained)
                for e in entries
            ],
        )  # fmt: skip
        self._head = head_after(entries)

    def _know(self, by: WorkerRecord) -> None:
        if by.worker not in self._known_workers:
            self._db.execute(
                "INSERT OR IGNORE INTO workers VALUES (?, ?, ?, ?, ?)",
                (by.worker, by.host, by.boot, by.lock, by.pid),
            )

    def _note_stored(self, by: WorkerRecord) -> None:
        """After a commit: who is in the workers' table, and what the witness is to see."""
        self._known_workers.add(by.worker)
        if self._witness is not None and self._head is not None:
            self._witness.note(self._store_id, self._head)
