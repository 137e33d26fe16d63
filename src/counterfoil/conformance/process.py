"""A command under test as a process: its own group, capped output, and nothing left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MARKER = "COUNTERFOIL_RUN"
"""Environment variable by which a process that left its group is still found."""

CAPTURE_BYTES_MAX = 64 * 1024
"""Bytes kept of each end of each output stream; the middle of a longer one is dropped."""

GRACE_S = 0.3
"""Seconds that helpers have to end by themselves after the command did."""

REAP_S = 5.0
"""Seconds that killed processes have to vanish."""

_PROC = Path("/proc")
_POLL_S = 0.01


class Process:
    """One started command. Raises ``OSError`` where the command cannot be started."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        marker: str,
        folder: Path | None = None,
    ) -> None:
        """Start it in ``folder``, or where this process is."""
        self.marker = marker
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env={**environment, MARKER: marker},
            cwd=folder,
        )
        self.group = self._popen.pid
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        self.stdout = _Capture(self._popen.stdout)
        self.stderr = _Capture(self._popen.stderr)

    def wait(self) -> int:
        """Wait for the command to end; return its exit code, negative for a signal."""
        return self._popen.wait()

    def signal(self, number: int) -> None:
        """Signal the whole of it: its group, and what left the group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, number)
        for pid in self.alive():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def alive(self) -> list[int]:
        """Return the ids of its processes that still run, the command itself included."""
        return processes_of(self.group, self.marker)

    def end(self) -> None:
        """Kill the whole of it, and wait until it is gone."""
        deadline_s = time.monotonic() + REAP_S
        self.signal(signal.SIGKILL)
        while self.alive() and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
            self.signal(signal.SIGKILL)

    def leftovers(self) -> int:
        """Count the processes that outlive the command, end them, and close its output."""
        deadline_s = time.monotonic() + GRACE_S
        while (left := self.alive()) and time.monotonic() < deadline_s:
            time.sleep(_POLL_S)
        if left:
            self.end()
        self.stdout.close()
        self.stderr.close()
        return len(left)


class _Capture:
    """Reads a stream to its end and keeps its head and its tail."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while data := os.read(self._stream.fileno(), 65536):
            room = CAPTURE_BYTES_MAX - len(self._head)
            self._head += data[:room]
            self._tail += data[room:]
            if len(self._tail) > CAPTURE_BYTES_MAX:
                self._dropped = True
                del self._tail[:-CAPTURE_BYTES_MAX]

    def close(self) -> None:
        """Wait for the end of the stream. All writers have ended, so it is near."""
        self._thread.join(REAP_S)
        if not self._thread.is_alive():
            self._stream.close()

    @property
    def was_cut(self) -> bool:
        """Whether more came than was kept; call it after ``close``."""
        return self._dropped

    @property
    def data(self) -> bytes:
        """What was kept; call it after ``close``."""
        middle = b"\n[output was dropped here]\n" if self._dropped else b""
        return bytes(self._head) + middle + bytes(self._tail)


def processes_of(group: int, marker: str) -> list[int]:
    """Return the processes of a group, or with the marker in their environment, that still run.

    Without a ``/proc`` only the group is looked at, and is named as one process.
    """
    if not (_PROC / "self" / "stat").exists():
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return []
        return [group]
    needle = f"{MARKER}={marker}\0".encode()
    found = []
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError, ValueError, IndexError):
            # After the name, which may hold anything: state, parent, group.
            state, _, its_group = (entry / "stat").read_bytes().rpartition(b")")[2].split()[:3]
            if state in (b"Z", b"X"):
                continue
            if int(its_group) == group or needle in (entry / "environ").read_bytes() + b"\0":
                found.append(int(entry.name))
    return found
