"""What a settled operation costs, counted as sync calls of the operating system."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from crash_child import Task
from crash_owner import CrashOwner
from crash_strace import SystemCall, run_traced

import counterfoil as cf

if TYPE_CHECKING:
    from pathlib import Path

    from crash_process import Processes

pytestmark = pytest.mark.strace

OPERATIONS = tuple(f"o-{number}" for number in range(20))
SYNCS = frozenset({"fsync", "fdatasync", "msync", "sync", "syncfs", "sync_file_range"})


def step_of(call: SystemCall) -> str | None:
    """Say what a call means for the order of writes; None for one that means nothing."""
    if call.name in SYNCS:
        return "sync"
    if call.name == "sendto":
        return "send" if call.of.startswith("TCP") else None
    # The process says each acknowledged append and each outcome on its output.
    return next((word for word in ("stored", "outcome") if f'{{\\"{word}\\"' in call.rest), None)


def test_a_settled_operation_costs_two_syncs_and_a_repeated_one_none(
    processes: Processes, tmp_path: Path
) -> None:
    database = tmp_path / "effects.db"
    cf.open(database, create=True).close()
    with CrashOwner() as owner:
        task = Task(
            str(database), owner.url, operations=("warm-up", *OPERATIONS), times=2, stopped=True
        )
        traced = f"trace=write,sendto,{','.join(sorted(SYNCS))}"
        ended, calls = run_traced(processes, task, "-e", traced, output=tmp_path / "trace")
    assert [said["outcome"] for said in ended.outcomes] == ["committed"] * 42
    assert owner.effects_made == len(owner.posts) == 21

    by_operation: list[list[str]] = [[]]
    for step in filter(None, map(step_of, calls)):
        by_operation[-1].append(step)
        if step == "outcome":
            by_operation.append([])
    # The first operation makes the engine's log, and what follows the last outcome closes it.
    first, again = by_operation[1:21], by_operation[21:42]
    assert first == [["sync", "stored", "send", "sync", "stored", "outcome"]] * 20
    assert again == [["outcome"]] * 21
