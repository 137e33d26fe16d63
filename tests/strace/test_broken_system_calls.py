"""Every write and sync of a database is broken in turn: the process is killed there, or the call
fails. What was acknowledged stays, nothing is sent after a failed append, and another process
finishes with one effect (F2 to F5)."""

from __future__ import annotations

import shutil
import signal
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from crash_checks import dispatches_in, log_of, trails_of
from crash_child import Task
from crash_owner import CrashOwner
from crash_strace import run_traced

import counterfoil as cf

if TYPE_CHECKING:
    from pathlib import Path

    from crash_process import Ended, Processes

pytestmark = pytest.mark.strace

BROKEN = "trace=fsync,fdatasync,pwrite64"
KILL = "signal=KILL"
FAULTS = {
    "killed": (KILL, ""),
    "an I/O error": ("error=EIO", ""),
    "a full disk, once": ("error=ENOSPC", ""),
    "a full disk, for ever": ("error=ENOSPC", "+"),
}


def run_broken(
    processes: Processes, folder: Path, inject: str | None
) -> tuple[Ended, Counter[str]]:
    """Carry two operations on a fresh database, with one injection, and have another process
    finish them; return how the first ended and how often it made each call."""
    folder.mkdir()
    database = folder / "effects.db"
    cf.open(database, create=True).close()
    with CrashOwner(witness=lambda: dispatches_in(database)) as owner:
        task = Task(str(database), owner.url, operations=("o-1", "o-2"), stopped=True)
        injections = () if inject is None else ("-e", f"inject={inject}")
        ended, calls = run_traced(
            processes, task, "-e", BROKEN, *injections, output=folder / "trace"
        )
        owner.await_quiet()
        check_what_is_left(ended, database, owner)
        finished = processes.run(replace(task, stopped=False))
    assert [said["outcome"] for said in finished.outcomes] == ["committed"] * 2, finished
    assert set(owner.effects.values()) == {1}
    assert len(owner.effects) == 2
    trails_of(database)
    if inject is not None and KILL not in inject:
        assert any("INJECTED" in call.rest for call in calls), inject
    shutil.rmtree(folder)
    return ended, Counter(call.name for call in calls)


def check_what_is_left(ended: Ended, database: Path, owner: CrashOwner) -> None:
    """Check the log against what was acknowledged, and the owner's ledger against the log."""
    entries = log_of(database)
    stored = [entry.event_id.hex() for entry in entries]
    assert stored[: len(ended.stored)] == ended.stored, "an acknowledged event is lost"
    assert all(post.dispatches >= n for n, post in enumerate(owner.posts, 1)), "sent unrecorded"
    failed = [n for n, said in enumerate(ended.said) if said.get("why") == "store_failed"]
    failed += [n for n, said in enumerate(ended.said) if "error" in said]
    if failed:
        after = ended.said[min(failed) :]
        assert not any("stored" in said for said in after), "it went on after a failed append"
        acknowledged = sum("stored" in said for said in ended.said[: min(failed)])
        # Two appends an operation: an odd one is a dispatch, after which one call was made.
        assert len(owner.posts) == (acknowledged + 1) // 2, "it sent after a failed append"


@pytest.mark.parametrize(("fault", "onwards"), FAULTS.values(), ids=FAULTS.keys())
def test_a_broken_write_or_sync_loses_nothing_and_sends_nothing_unrecorded(
    processes: Processes, folder: Path, fault: str, onwards: str
) -> None:
    _, counts = run_broken(processes, folder / "whole", None)
    assert counts["pwrite64"] > 20
    assert counts["fsync"] + counts["fdatasync"] >= 4
    seen: set[str] = set()
    for name, count in counts.items():
        for number in range(1, count + 1):
            where = f"{name}:{fault}:when={number}{onwards}"
            ended, _ = run_broken(processes, folder / f"{name}-{number}", where)
            if fault == KILL:
                assert ended.status == -signal.SIGKILL, where
            else:
                assert ended.status in (0, cf.BrokenWorld.exit_code), (where, ended)
            seen |= {said.get("error") or said.get("why", "") for said in ended.said}
    # Of an append that failed, the first of an operation raises, and the second leaves it unknown.
    assert fault == KILL or {"StoreFailed", "store_failed", "confirmed"} <= seen, seen
