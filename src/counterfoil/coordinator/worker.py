"""A worker's identity, and the one proof of a worker's death that this machine can give.

Each worker holds flock on a file of its own for its whole life, under a random id, with the host
and the boot written beside it. The kernel lets go of it when the last process that has it ends, a
forked child included. POSIX record locks fall when any descriptor closes, and a database's locks
when its connection is cut: neither is a proof (coordinator, "A sender is excluded").
"""

from __future__ import annotations

import fcntl
import os
import platform
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.errors import StoreUnwritable
from counterfoil.store.port import WorkerRecord

if TYPE_CHECKING:
    from collections.abc import Callable

BY_LOCK = "its lock is free, so its process and every child of it have ended"
BY_BOOT = "its host has restarted since"


class Worker:
    """This process as a sender. ``locks`` is the folder of lock files, None where none can be."""

    def __init__(self, locks: Path | None) -> None:
        self.id = "w-" + secrets.token_hex(8)
        self.pid = os.getpid()
        self.locks = locks
        self._descriptor: int | None = None
        name = None
        if locks is not None:
            name = self.id + ".lock"
            self._descriptor = _hold(locks / name)
        self.record = WorkerRecord(self.id, host_id(), boot_id(), name, self.pid)

    @property
    def is_this_process(self) -> bool:
        """False in a child that was forked from the worker's process."""
        return os.getpid() == self.pid

    def proof_of_death(self, other: WorkerRecord) -> str | None:
        """Return why another worker can send nothing any more, or None if that is not proven."""
        if other.host != self.record.host or not other.host or not other.boot:
            return None
        # Hosts made from one image can share a name. The lock file lies beside the book on a disk
        # of this host, so that it is here at all is what says that the other one ran here.
        if self.locks is None or other.lock is None or not _is_free(self.locks / other.lock):
            return None
        return BY_LOCK if other.boot == self.record.boot else BY_BOOT

    def proof_that_all_before_died(self) -> str | None:
        """Return why no other worker of this folder can send, known to the store or not.

        A store that forgot operations forgot workers too; their lock files are still there. An
        empty folder proves nothing: the database may have been copied without it.
        """
        if self.locks is None:
            return None
        others = [path for path in self.locks.glob("*.lock") if path.stem != self.id]
        if not others or not all(_is_free(path) for path in others):
            return None
        return f"the locks of all {len(others)} earlier workers are free"

    def end(self, *, leave_no_trace: bool) -> None:
        """Let go of the lock; remove its file where no attempt of this worker is without an end."""
        if self._descriptor is None or not self.is_this_process:
            return
        if leave_no_trace and self.locks is not None:
            (self.locks / (self.id + ".lock")).unlink(missing_ok=True)
        os.close(self._descriptor)
        self._descriptor = None


def _hold(path: Path) -> int:
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnwritable(
            f"{path.parent}: no lock file can be made ({error.strerror}); mend its permissions"
        ) from error
    fcntl.flock(descriptor, fcntl.LOCK_EX)  # another's look may hold it for a moment
    return descriptor


def _is_free(path: Path) -> bool:
    """Whether nobody holds the lock. A file that is gone proves nothing."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)


def _first_line(path: str, otherwise: Callable[[], str]) -> str:
    try:
        return Path(path).read_text("ascii").strip()
    except OSError:
        return otherwise()


def host_id() -> str:
    """Return what names this host; "" where nothing does."""
    return _first_line("/etc/machine-id", platform.node)


def boot_id() -> str:
    """Return what names this boot of the host; "" where nothing does: then nothing is proven."""
    return _first_line("/proc/sys/kernel/random/boot_id", lambda: "")
