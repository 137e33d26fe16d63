"""A process under a mission is killed at a named point: the money after the restart is the money
before it, and another process finishes at most one effect and pays for it once."""

from __future__ import annotations

import json
import signal
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest
from crash_checks import trails_of
from crash_child import Task
from crash_owner import COMMIT_AND_LOSE_REPLY, LOSE_BEFORE_COMMIT, CrashOwner, Step

import counterfoil as cf
from counterfoil.coordinator.audit import audit
from counterfoil.coordinator.clock import SystemClock
from counterfoil.coordinator.governed import Money, money_of
from counterfoil.coordinator.mission_head import rebuilt
from counterfoil.mission import canonical_state_bytes
from counterfoil.store.mission_log import mission_stream
from counterfoil.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from pathlib import Path

    from crash_process import Processes

FOREVER_MS = 9_999_999_999_999
CONTRACT = json.dumps(
    {
        "id": "c",
        "missionId": "m",
        "aiwsEdition": "0.4",
        "profile": "finite-v1",
        "budget": "100",
        "deadline": str(FOREVER_MS),
        "criteria": [],
        "actions": ["change"],
        "resources": ["doc"],
        "requiresApproval": False,
        "maxAttempts": "3",
        "maxAuthorizationAgeMs": "0",
        "features": [],
    }
)
NOTHING = Money("100", "0", "0", "100")
HELD = Money("100", "0", "10", "90")
SPENT = Money("100", "10", "0", "90")
LAST_BYTE = Step(kills="last", replies=False)


class Point(NamedTuple):
    """Where it is killed, what the owner does, and the money then."""

    point: str
    script: tuple[Step, ...]
    money: Money


POINTS = {
    "inside transaction 1": Point("inside transaction 1", (), NOTHING),
    "after transaction 1": Point("after transaction 1", (), HELD),
    "after the last byte, and it commits": Point("", (LAST_BYTE,), HELD),
    "after the last byte, and it is lost": Point("", (LAST_BYTE._replace(commits=False),), HELD),
    "before transaction 2": Point("before transaction 2", (), HELD),
    "before transaction 2, the reply lost": Point(
        "before transaction 2", (COMMIT_AND_LOSE_REPLY,), HELD
    ),
    "inside transaction 2": Point("inside transaction 2", (), HELD),
    "after transaction 2": Point("after transaction 2", (), SPENT),
    "before a present answer is recorded": Point("before answer", (COMMIT_AND_LOSE_REPLY,), HELD),
    "inside its recording": Point("inside answer", (COMMIT_AND_LOSE_REPLY,), HELD),
    "after it was recorded": Point("after answer", (COMMIT_AND_LOSE_REPLY,), SPENT),
    "before an absent answer is recorded": Point("before answer", (LOSE_BEFORE_COMMIT,), HELD),
    "inside its recording with the resend": Point("inside resend", (LOSE_BEFORE_COMMIT,), HELD),
    "after the resend is recorded": Point("after resend", (LOSE_BEFORE_COMMIT,), HELD),
}


def make(database: Path) -> None:
    with cf.open(database, create=True, mission=CONTRACT) as book:
        book.mission.start_run("r").grant(
            "g", subject="agent", actions=["change"], resources=["doc"], limit="100",
            not_before=0, expires_at=FOREVER_MS,
        )  # fmt: skip


def stood(database: Path) -> tuple[Money, bytes]:
    """Return the money and the state's bytes, folded from the first line of a log that is whole."""
    with closing(SqliteStore(database, create=False, now_us=SystemClock().now_us)) as store:
        assert list(audit(store)) == []
        state = rebuilt(store, mission_stream("default", "m")).state
    return money_of(state), canonical_state_bytes(state)


@pytest.mark.parametrize("point", POINTS.values(), ids=POINTS)
def test_the_money_after_a_restart_is_the_money_before_it(
    processes: Processes, folder: Path, point: Point
) -> None:
    database = folder / "effects.db"
    make(database)
    with CrashOwner(script=point.script) as owner:
        task = Task(str(database), owner.url, point.point, mission=CONTRACT)
        pid = processes.start(task)
        owner.senders.put(pid)
        killed = processes.wait(pid)
        assert killed.status == -signal.SIGKILL, killed

        acknowledged = [line["money"] for line in killed.said if "money" in line]
        money, state = stood(database)
        assert money == point.money
        assert money == (Money(**acknowledged[-1]) if acknowledged else NOTHING)
        with cf.open(database, mission=CONTRACT) as book:
            assert book.mission.money == money
            assert canonical_state_bytes(book.mission.state) == state

        finished = processes.run(replace(task, point=""))
        owner.await_quiet()

    assert finished.outcome["outcome"] == "committed"
    assert owner.effects_made == 1
    assert stood(database)[0] == SPENT
    trails_of(database)


def test_a_process_killed_again_and_again_never_spends_or_holds_twice(
    processes: Processes, folder: Path
) -> None:
    database = folder / "effects.db"
    make(database)
    names = tuple(f"o-{number}" for number in range(4))
    with CrashOwner() as owner:
        task = Task(str(database), owner.url, operations=names, mission=CONTRACT)
        for point in ("inside append 1", "after append 1", "inside append 2", "after append 2"):
            killed = processes.run(replace(task, point=point))
            assert killed.status == -signal.SIGKILL, killed
            money, _ = stood(database)
            assert float(money.spent) + float(money.held) + float(money.free) == 100
            assert float(money.held) <= 10
        finished = processes.run(task)
        owner.await_quiet()
    assert [outcome["outcome"] for outcome in finished.outcomes] == ["committed"] * 4
    assert owner.effects_made == 4
    assert stood(database)[0] == Money("100", "40", "0", "60")
