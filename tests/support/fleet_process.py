"""The test's side of ``fleet_worker.py``: starts, kills, freezes and thaws real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from fleet_worker import Task

WORKER = Path(__file__).with_name("fleet_worker.py")


class Processes:
    """Starts worker processes. Use it as a context manager: none is left behind."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-B", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.running: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.communicate(timeout=30)

    def start(self, task: Task) -> int:
        """Start a worker; return its pid."""
        pid = self._ask(f"start {task.to_json()}")
        assert pid is not None
        self.running.add(pid)
        return pid

    def ended(self, pid: int) -> int | None:
        """Return the exit status (negative: the signal) of a worker that has ended, else None."""
        return self._status(pid, self._ask(f"ended {pid}"))

    def wait(self, pid: int) -> int:
        """Wait for a worker's end."""
        status = self._status(pid, self._ask(f"wait {pid}"))
        assert status is not None
        return status

    def wait_until_stopped(self, pid: int) -> None:
        """Wait until a worker has stopped itself."""
        status = self._status(pid, self._ask(f"stopped {pid}"))
        assert status is None, f"it ended with {status} instead"

    def kill(self, pid: int) -> None:
        """Kill a worker, frozen or not, and wait until it is gone."""
        os.kill(pid, signal.SIGKILL)
        self.wait(pid)

    def freeze(self, pid: int) -> None:
        """Stop a worker where it stands."""
        os.kill(pid, signal.SIGSTOP)

    def thaw(self, pid: int) -> None:
        """Let a frozen worker go on."""
        os.kill(pid, signal.SIGCONT)

    def _status(self, pid: int, status: int | None) -> int | None:
        if status is not None:
            self.running.discard(pid)
        return status

    def _ask(self, line: str) -> int | None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(line + "\n")
        self._server.stdin.flush()
        answer = self._server.stdout.readline()
        assert answer, "the process that starts the others has ended"
        found: int | None = json.loads(answer)
        return found
