"""The test's side of ``crash_child.py``: starts processes, and says what became of them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

if TYPE_CHECKING:
    from crash_child import Task

CHILD = Path(__file__).with_name("crash_child.py")


class Ended(NamedTuple):
    """How a process ended: its exit status (negative: the signal), and the lines that it said."""

    status: int
    said: tuple[dict[str, Any], ...]

    @property
    def stored(self) -> list[str]:
        """The ids of the events whose append was acknowledged, in order."""
        return [event for line in self.said for event in line.get("stored", ())]

    @property
    def outcomes(self) -> list[dict[str, Any]]:
        """The outcomes that it returned, in order."""
        return [line for line in self.said if "outcome" in line]

    @property
    def outcome(self) -> dict[str, Any]:
        """The one outcome that it returned."""
        assert self.status == 0, self
        (only,) = self.outcomes
        return only

    @property
    def error(self) -> dict[str, Any]:
        """The error that ended it: one of ours, on one line."""
        last = self.said[-1] if self.said else {}
        assert "error" in last, self
        assert "\n" not in last["text"], self
        return last


class Processes:
    """Starts processes on demand. Use it as a context manager: none is left behind."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-B", str(CHILD), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._running: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in list(self._running):
            self.wait(pid)
        self._pipe(self._server.stdin).close()
        self._server.wait()
        self._pipe(self._server.stdout).close()

    def start(self, task: Task) -> int:
        """Start a process on a task; return its pid."""
        pid: int = self._ask(f"start {json.dumps(asdict(task))}")["pid"]
        self._running.add(pid)
        return pid

    def wait(self, pid: int) -> Ended:
        """Wait for a process to end."""
        self._running.discard(pid)
        ended = self._ask(f"wait {pid}")
        return Ended(ended["status"], tuple(ended["said"]))

    def run(self, task: Task) -> Ended:
        """Start a process and wait for its end."""
        return self.wait(self.start(task))

    def _ask(self, line: str) -> dict[str, Any]:
        self._pipe(self._server.stdin).write(line + "\n")
        self._pipe(self._server.stdin).flush()
        answer = self._pipe(self._server.stdout).readline()
        assert answer, "the process that starts the others has ended"
        found: dict[str, Any] = json.loads(answer)
        return found

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe
