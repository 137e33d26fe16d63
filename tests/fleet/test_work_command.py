"""`counterfoil work` as a real process beside workers that are alive, and after some that died."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from fleet_owner import FleetOwner
from fleet_worker import Task

import counterfoil as cf
from counterfoil.coordinator.export import lines
from counterfoil.reader.verdict import judge_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet_process import Processes

SUPPORT = Path(__file__).resolve().parents[1] / "support"
PROMISES: dict[str, object] = {"final_by": "answer"}


@pytest.fixture
def owner() -> Iterator[FleetOwner]:
    with FleetOwner(final=True) as serving:
        yield serving


def task(database: Path, owner: FleetOwner, *operations: str, disturb: int = 0) -> Task:
    return Task(
        database=str(database),
        url=owner.url,
        report=str(database.with_name("report")),
        operations=operations,
        promises=PROMISES,
        deadline_s=20.0,
        lease_s=60.0,
        disturb=disturb,
    )


def leave_behind(
    processes: Processes, database: Path, owner: FleetOwner, operations: list[str]
) -> None:
    """Let one worker die in each operation, after it dispatched and before it sent."""
    for operation_id in operations:
        dying = task(database, owner, operation_id, disturb=signal.SIGKILL)
        assert processes.wait(processes.start(dying)) == -signal.SIGKILL


def work(database: Path, owner: FleetOwner, *options: str) -> subprocess.Popen[str]:
    """Start the command as a user would, from the folder of the module."""
    command = [sys.executable, "-B", "-u", "-m", "counterfoil", "work", str(database)]
    return subprocess.Popen(
        [*command, "--app", "fleet_app", *options],
        cwd=SUPPORT,
        env={
            **os.environ,
            "COUNTERFOIL_FLEET_OWNER": owner.url,
            "COUNTERFOIL_FLEET_PROMISES": json.dumps(PROMISES),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def statuses(database: Path) -> dict[str, str]:
    with cf.open(database) as book:
        for text in lines(book.store, "default", None, ()):
            judged = judge_bytes(text.encode())
            assert getattr(judged, "decision", None) == "allow", judged
        return {row.stream.operation_id: row.status for row in book.store.rows()}


def test_it_settles_what_killed_workers_left_and_ends_when_it_is_told_to(
    processes: Processes, database: Path, owner: FleetOwner
) -> None:
    left = ["o-1", "o-2", "o-3"]
    leave_behind(processes, database, owner, left)
    with work(database, owner, "--every", "0.05") as process:
        owner.wait_for(lambda: sum(owner.sends.values()) == len(left))
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in left]
        process.send_signal(signal.SIGTERM)
        rest, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert [line.split(":")[0] for line in said] == [f"'{each}'" for each in left]
    assert all(": committed (" in line for line in said)
    assert rest == ""
    assert statuses(database) == dict.fromkeys(left, "committed")
    assert sorted(owner.effects.values()) == [1, 1, 1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["term", "int"])
def test_told_to_end_it_records_the_call_in_hand_and_sends_nothing_afterwards(
    processes: Processes, database: Path, owner: FleetOwner, number: signal.Signals
) -> None:
    leave_behind(processes, database, owner, ["o-1", "o-2", "o-3"])
    owner.hold_calls = True
    with work(database, owner, "--every", "0.05") as process:
        owner.wait_until_held()
        process.send_signal(number)
        owner.release()
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    assert statuses(database) == {"o-1": "committed", "o-2": "unknown", "o-3": "unknown"}
    assert sum(owner.sends.values()) == owner.count == 1


def test_it_leaves_to_a_live_worker_what_that_holds(
    processes: Processes, database: Path, owner: FleetOwner
) -> None:
    owner.hold_calls = True
    pid = processes.start(task(database, owner, "held"))
    owner.wait_until_held()
    leave_behind(processes, database, owner, ["left"])
    owner.hold_calls = False
    with work(database, owner, "--once") as process:
        output, errors = process.communicate(timeout=20)
    assert process.returncode == 0, errors
    assert "'left': committed (" in output
    assert "'held': unknown (" in output
    held, left = (key_of(database, name) for name in ("held", "left"))
    assert (owner.sends[held], owner.questions[held]) == (1, 0)
    assert (owner.sends[left], owner.questions[left]) == (1, 1)
    owner.release()
    assert processes.wait(pid) == 0
    assert statuses(database) == {"held": "committed", "left": "committed"}
    assert owner.effects == {held: 1, left: 1}


def key_of(database: Path, operation_id: str) -> str:
    with cf.open(database) as book:
        history = book.store.load(book.stream(operation_id, "default"))
        assert history is not None
        return history.opened.key
