"""Runs a process of ``crash_process.py`` under strace: to see its system calls, or break them."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from crash_child import Task
    from crash_process import Ended, Processes

_CALL = re.compile(r"^(?:\d+\s+)?(\w+)\(\d+<(.*?)>[,)]\s*(.*)$")


class SystemCall(NamedTuple):
    """One traced call: its name, the path (or peer) of its first descriptor, the rest of the
    line."""

    name: str
    of: str
    rest: str


def need_strace() -> str:
    """Return where strace is; a test without it fails, and says how to get it."""
    found = shutil.which("strace")
    if found is None:
        pytest.fail("strace is not installed: apt-get install strace", pytrace=False)
    return found


def run_traced(
    processes: Processes, task: Task, *options: str, output: Path
) -> tuple[Ended, list[SystemCall]]:
    """Run a task with strace attached from its first instruction on.

    ``options`` are strace's own. Returns how the process ended and the calls that were traced.
    """
    strace = need_strace()
    pid = processes.start(task)
    command = [strace, "-f", "-yy", "-s", "24", "-o", str(output), *options, "-p", str(pid)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
        assert tracer.stderr is not None
        said = tracer.stderr.readline()
        os.kill(pid, signal.SIGCONT)
        if "attached" not in said:
            processes.wait(pid)
            pytest.fail(f"strace could not attach: {said.strip()}", pytrace=False)
        ended = processes.wait(pid)
        tracer.stderr.read()
    return ended, calls_in(output.read_text("utf-8", "replace"))


def calls_in(trace: str) -> list[SystemCall]:
    """Read a trace; a call that another thread cut in two counts where it began."""
    found = []
    for line in trace.splitlines():
        match = _CALL.match(line)
        if match is not None:
            found.append(SystemCall(*match.groups()))
    return found
