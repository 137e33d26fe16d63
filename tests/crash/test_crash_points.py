"""A process is killed at a named point; another finishes the operation. At most one effect.

Each point runs against an owner that is final by its answer, one that settles within a bound, and
one that cannot be asked, through a plain function and through ``HttpOwner``.
"""

from __future__ import annotations

import signal
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest
from crash_checks import dispatches_in, kinds_of, log_of, trails_of
from crash_child import ONE_BYTE_AND_WAIT, Task
from crash_owner import COMMIT_AND_LOSE_REPLY, LOSE_BEFORE_COMMIT, CrashOwner, Step

import counterfoil as cf

if TYPE_CHECKING:
    from pathlib import Path

    from crash_process import Processes

OPENED = ("opened", "dispatched")
LOST = (*OPENED, "replied")
OWNERS = ("final", "settles", "mute")
ASKABLE = ("final", "settles")
ADAPTERS = ("function", "http")


class Crash(NamedTuple):
    """One point: what the owner does, what the log holds after the kill, and how it ends.

    ``left`` is what is stored for an owner that is final, ``left_settling`` for one that settles
    within a bound, where that differs. ``attempts`` counts the dispatches in the end, for an owner
    that can be asked; one that cannot is never sent to again.
    """

    point: str
    script: tuple[Step, ...]
    left: tuple[str, ...]
    attempts: int
    owners: tuple[str, ...] = OWNERS
    adapters: tuple[str, ...] = ADAPTERS
    left_settling: tuple[str, ...] | None = None


FIRST_BYTE = Step(kills="first", replies=False)
LAST_BYTE = Step(kills="last", replies=False)

CRASHES = {
    "inside transaction 1": Crash("inside transaction 1", (), (), 1),
    "after transaction 1": Crash("after transaction 1", (), OPENED, 2),
    "after the first byte of the request, and no other leaves": Crash(
        ONE_BYTE_AND_WAIT, (FIRST_BYTE,), OPENED, 2, adapters=("function",)
    ),
    "after the first byte of the request, and the rest commits": Crash(
        "", (FIRST_BYTE,), OPENED, 1
    ),
    "after the first byte of the request, and the rest is lost": Crash(
        "", (FIRST_BYTE._replace(commits=False),), OPENED, 2
    ),
    "after the last byte of the request, and it commits": Crash("", (LAST_BYTE,), OPENED, 1),
    "after the last byte of the request, and it is lost": Crash(
        "", (LAST_BYTE._replace(commits=False),), OPENED, 2
    ),
    "after the reply and before transaction 2": Crash("before transaction 2", (), OPENED, 1),
    "after a lost reply and before transaction 2": Crash(
        "before transaction 2", (COMMIT_AND_LOSE_REPLY,), OPENED, 1
    ),
    "inside transaction 2": Crash("inside transaction 2", (), OPENED, 1),
    "after transaction 2": Crash("after transaction 2", (), (*LOST, "settled"), 1),
    "before a present answer is recorded": Crash(
        "before answer", (COMMIT_AND_LOSE_REPLY,), LOST, 1, ASKABLE
    ),
    "inside the transaction that records a present answer": Crash(
        "inside answer", (COMMIT_AND_LOSE_REPLY,), LOST, 1, ASKABLE
    ),
    "after a present answer is recorded": Crash(
        "after answer", (COMMIT_AND_LOSE_REPLY,), (*LOST, "answered", "settled"), 1, ASKABLE
    ),
    "before an absent answer is recorded": Crash(
        "before answer", (LOSE_BEFORE_COMMIT,), LOST, 2, ASKABLE
    ),
    "after an absent answer that permits nothing is recorded": Crash(
        "after answer", (LOSE_BEFORE_COMMIT,), (*LOST, "answered"), 2, ("settles",)
    ),
    "inside the transaction that records an absent answer and dispatches": Crash(
        "inside resend", (LOSE_BEFORE_COMMIT,), LOST, 2, ASKABLE, left_settling=(*LOST, "answered")
    ),
    "after the transaction that records an absent answer and dispatches, before the call": Crash(
        "after resend",
        (LOSE_BEFORE_COMMIT,),
        (*LOST, "answered", "dispatched"),
        3,
        ASKABLE,
        left_settling=(*LOST, "answered", "answered", "dispatched"),
    ),
}

CASES = [
    pytest.param(crash, owner, adapter, id=f"{name} - {owner} - {adapter}")
    for name, crash in CRASHES.items()
    for owner in crash.owners
    for adapter in crash.adapters
]


def owner_of(kind: str, crash: Crash, database: Path) -> CrashOwner:
    return CrashOwner(
        script=crash.script,
        says_final=kind == "final",
        answers=kind != "mute",
        witness=lambda: dispatches_in(database),
    )


@pytest.mark.parametrize(("crash", "kind", "adapter"), CASES)
def test_a_killed_process_leaves_at_most_one_effect_and_another_finishes(
    processes: Processes, folder: Path, crash: Crash, kind: str, adapter: str
) -> None:
    database = folder / "effects.db"
    cf.open(database, create=True).close()
    with owner_of(kind, crash, database) as owner:
        patience_s = 0.2 if kind == "mute" else 10.0
        task = Task(str(database), owner.url, crash.point, kind, adapter, patience_s=patience_s)
        pid = processes.start(task)
        owner.senders.put(pid)
        killed = processes.wait(pid)
        assert killed.status == -signal.SIGKILL, killed

        settles = kind == "settles" and crash.left_settling is not None
        assert tuple(kinds_of(database)) == (crash.left_settling if settles else crash.left)
        stored = [entry.event_id.hex() for entry in log_of(database)]
        assert stored[: len(killed.stored)] == killed.stored, "an acknowledged event is lost"
        trails_of(database)
        if kind != "final":
            # It keeps its bound however busy this machine is. One that is final waits by itself.
            owner.await_quiet()
        posts_before, effects_before = len(owner.posts), owner.effects_made

        finished = processes.run(replace(task, point=""))
        owner.await_quiet()

    assert owner.effects_made <= 1
    assert all(post.dispatches >= number for number, post in enumerate(owner.posts, 1)), (
        "a byte left before its dispatch was durable"
    )
    outcome = finished.outcome
    if kind != "mute" or crash.left in ((), (*LOST, "settled")):
        assert outcome["outcome"] == "committed", outcome
        assert outcome["attempts"] == crash.attempts
        assert outcome["replayed"] is ("settled" in crash.left)
        assert owner.effects_made == 1
    else:
        assert outcome["outcome"] == "unknown"
        assert (len(owner.posts), owner.effects_made) == (posts_before, effects_before)
    (trail,) = trails_of(database)
    assert trail["reported"] == {"outcome": outcome["outcome"]}
    assert len(trail["attempts"]) == outcome["attempts"]
