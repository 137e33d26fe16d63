"""Safe but stuck is wrong too: three operations that must end settled, and do.

Here the protocol keeps its own schedule of questions and resends, and everybody is fair: a worker
that wants something gets it, the owner says what it knows, and time passes while all wait.
"""

from __future__ import annotations

import pytest

from counterfoil.operation.next_step import Policy
from counterfoil.operation.replies import Status
from counterfoil.simulate.explore import follow, steps
from counterfoil.simulate.space import Space
from counterfoil.simulate.world import DEADLINE_S, Bounds, World, owner_named

SENT = "w0 starts; w0 appends"
STEPS_MAX = 60
PATIENT = Bounds(at_once=2, attempts=3, ticks=STEPS_MAX, questions=STEPS_MAX, crashes=0)
FAIR = (
    "{w} appends",
    "{w} finds that the stream moved",
    "{w} reads the owner's token",
    "the owner answers {w}: present",
    "the owner answers {w}: absent, final",
    "the owner answers {w}: absent, not final",
    "{a}: the confirmation arrives",
    "{a} lands and is known already",
    "{a} lands and commits",
    "{a} is written",
    "{w} looks again",
    "time passes",
)


def carried_fairly(space: Space, world: World, worker: str) -> tuple[World, list[str]]:
    """Let one worker go on, with the newest attempt on the wire, until the operation is settled."""
    said = []
    for _ in range(STEPS_MAX):
        if space.streams[world.stream].outcome is not None:
            break
        newest = f"a{len(world.requests)}"
        wanted = [line.format(w=worker, a=newest) for line in FAIR]
        possible = {action: after for action, after, _ in steps(space, world)}
        able = [name for start in wanted for name in possible if name.startswith(start)]
        if not able:
            break
        action = able[0]
        said.append(action)
        world = possible[action]
    return world, said


@pytest.mark.parametrize(
    ("owner", "before"),
    [
        pytest.param(
            "final",
            f"{SENT}; a1 is written; a1 times out; w0 appends; time passes; w1 starts",
            id="a worker whose end is stored needs no exclusion",
        ),
        pytest.param(
            "fences on ask",
            f"{SENT}; time passes; w1 starts",
            id="an attempt under a lower token needs no end",
        ),
        pytest.param(
            "dedupes",
            f"{SENT}; time passes; w1 starts",
            id="a hung sender's open attempt does not stop a deduplicated resend",
        ),
    ],
)
def test_an_operation_ends_settled_though_its_first_sender_never_wakes(
    owner: str, before: str
) -> None:
    space = Space(owner_named(owner), PATIENT)
    space.policy = Policy(deadline_s=DEADLINE_S, ends_within_s=DEADLINE_S)
    world = follow(space, before.split("; "))
    world, said = carried_fairly(space, world, "w1")
    assert space.streams[world.stream].outcome is Status.COMMITTED, "\n".join(said)
    assert len(world.ledger.effects) == 1
