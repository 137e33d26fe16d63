"""The two simulations of the source, command for command, in Python and on the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from mission_desk import CONTRACT, command_of

from counterfoil.mission import create_mission, parse_command, parse_contract, reduce

if TYPE_CHECKING:
    from pathlib import Path

    from counterfoil.mission import State

SEED_CONTRACT = {**CONTRACT, "criteria": ["review"], "actions": ["write"], "resources": ["doc"]}
SEED_GRANT = command_of("grant", grant_expiresAt="10000")
SETTLE = {"type": "settle", "attemptId": "a"}

RETRY: list[dict[str, Any]] = [
    command_of("startRun"),
    SEED_GRANT,
    command_of("admit"),
    command_of("dispatch"),
    {**SETTLE, "effect": "CONFIRMED_NOT_APPLIED", "actualCost": "0"},
    command_of("retry"),
    command_of("dispatch", attemptId="a2"),
    {**SETTLE, "effect": "CONFIRMED_NOT_APPLIED", "actualCost": "0"},
    {**SETTLE, "attemptId": "a2", "effect": "CONFIRMED_APPLIED", "actualCost": "2"},
]
COMPENSATION: list[dict[str, Any]] = [
    command_of("startRun"),
    command_of("registerGraph"),
    command_of("attachGraph"),
    SEED_GRANT,
    command_of("admit"),
    command_of("dispatch", nodeId="task"),
    {**SETTLE, "effect": "CONFIRMED_APPLIED", "actualCost": "3"},
    command_of("completeNode"),
    command_of("completeNode", nodeId="reconcile"),
    command_of("admit", operationId="undo", attemptId="au"),
    command_of("dispatch", attemptId="au", nodeId="undo"),
    {**SETTLE, "attemptId": "au", "effect": "CONFIRMED_APPLIED", "actualCost": "2"},
    command_of(
        "completeNode", nodeId="undo", result={"operationId": "undo", "originalOperationId": "o"}
    ),
]


def folded(commands: list[dict[str, Any]]) -> State:
    state = create_mission(parse_contract(json.dumps(SEED_CONTRACT)))
    for command in commands:
        state = reduce(state, parse_command(json.dumps(command)), "10")
    return state


def replayed(
    folder: Path, commands: list[dict[str, Any]], *options: str
) -> subprocess.CompletedProcess[str]:
    contract, log = folder / "contract.json", folder / "commands.jsonl"
    contract.write_text(json.dumps(SEED_CONTRACT))
    log.write_text("".join(json.dumps({"now": "10", "command": c}) + "\n" for c in commands))
    return subprocess.run(
        [sys.executable, "-m", "counterfoil", "mission", "replay", contract, log, *options],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_known_failure_is_retried_and_a_late_duplicate_charges_nothing() -> None:
    state = folded(RETRY)
    assert (state["spent"], state["reserved"], state["events"]) == ("2", "0", "9")


def test_the_duplicate_leaves_the_second_attempt_unknown_and_its_money_reserved() -> None:
    state = folded(RETRY[:8])
    assert state["operations"]["o"]["disposition"] == "UNKNOWN"  # type: ignore[index]
    assert (state["reserved"], state["events"]) == ("10", "8")


def test_a_compensation_is_a_second_operation_with_its_own_cost() -> None:
    state = folded(COMPENSATION)
    assert (state["spent"], state["reserved"], state["events"]) == ("5", "0", "13")
    nodes = state["runs"]["r"]["nodes"]  # type: ignore[index]
    assert {name: nodes[name]["status"] for name in nodes} == {
        "task": "DONE",
        "reconcile": "DONE",
        "undo": "DONE",
        "end": "PENDING",
    }


@pytest.mark.parametrize(
    ("commands", "spent", "events"), [(RETRY, "2", "9"), (COMPENSATION, "5", "13")]
)
def test_the_command_line_folds_them_to_the_same_state(
    tmp_path: Path, commands: list[dict[str, Any]], spent: str, events: str
) -> None:
    done = replayed(tmp_path, commands, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    assert shown["rejected"] == []
    assert shown["state"] == folded(commands).plain()
    assert (shown["state"]["spent"], shown["state"]["events"]) == (spent, events)


def test_the_command_line_stops_after_a_line(tmp_path: Path) -> None:
    done = replayed(tmp_path, RETRY, "--json", "--until", "8")
    state = json.loads(done.stdout)["state"]
    assert (state["operations"]["o"]["disposition"], state["reserved"]) == ("UNKNOWN", "10")
