"""A process that recovers from a crash is killed too, at each of its transactions in turn."""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from crash_checks import dispatches_in, kinds_of, trails_of
from crash_child import Task
from crash_owner import CrashOwner, Step

import counterfoil as cf

if TYPE_CHECKING:
    from pathlib import Path

    from crash_process import Ended, Processes

TRANSACTIONS_MIN = 3
"""A recovery stores at least the exclusion of the dead sender, an answer, and the outcome."""


def crash_twice(
    processes: Processes, database: Path, kind: str, commits: bool, point: str
) -> tuple[Ended, Ended, CrashOwner]:
    """Kill a sender at its last byte, its successor at ``point``; return how that one and the
    third ended."""
    cf.open(database, create=True).close()
    owner = CrashOwner(
        script=(Step(commits=commits, replies=False, kills="last"),),
        says_final=kind == "final",
        witness=lambda: dispatches_in(database),
    )
    with owner:
        task = Task(str(database), owner.url, owner=kind, attempts_max=5)
        pid = processes.start(task)
        owner.senders.put(pid)
        assert processes.wait(pid).status == -signal.SIGKILL
        owner.await_quiet()
        second = processes.run(replace(task, point=point))
        owner.await_quiet()
        third = processes.run(task)
        owner.await_quiet()
    return second, third, owner


@pytest.mark.parametrize("when", ["inside", "after"])
@pytest.mark.parametrize("kind", ["final", "settles"])
@pytest.mark.parametrize("commits", [True, False], ids=["commits", "is lost"])
def test_a_recovery_that_is_killed_at_any_transaction_leaves_at_most_one_effect(
    processes: Processes, folder: Path, when: str, kind: str, commits: bool
) -> None:
    number = 1
    while True:
        database = folder / f"{number}.db"
        second, third, owner = crash_twice(
            processes, database, kind, commits, f"{when} append {number}"
        )
        assert owner.effects_made == 1
        assert third.outcome["outcome"] == "committed"
        assert all(post.dispatches >= n for n, post in enumerate(owner.posts, 1))
        assert third.outcome["attempts"] == kinds_of(database).count("dispatched")
        trails_of(database)
        if second.status != -signal.SIGKILL:
            break
        number += 1
    assert second.outcome["outcome"] == "committed"
    assert number > TRANSACTIONS_MIN
