"""A known failure is tried again: the first of the two control simulations, command for command.

Run it with ``python examples/mission_retry.py``. It ends with 2 spent, nothing reserved, 9 events:
an answer that comes twice charges nothing, and is an event all the same.
"""

from __future__ import annotations

from counterfoil.mission import State, create_mission, parse_command, parse_contract, reduce

CONTRACT = {
    "id": "c",
    "missionId": "m",
    "aiwsEdition": "0.4",
    "profile": "finite-v1",
    "budget": "100",
    "deadline": "10000",
    "criteria": ["review"],
    "actions": ["write"],
    "resources": ["doc"],
    "requiresApproval": False,
    "maxAttempts": "2",
    "maxAuthorizationAgeMs": "10",
    "features": ["triggers", "graphs"],
}
GRANT = {
    "id": "g",
    "subject": "agent",
    "profile": "finite-v1",
    "actions": ["write"],
    "resources": ["doc"],
    "notBefore": "0",
    "expiresAt": "10000",
    "limit": "100",
    "canDelegate": True,
    "depth": "2",
}
GATE = {"authorizationCheckedAt": "10", "policy": "ALLOW", "mandatoryChecksOk": True}


def admit(operation_id: str, attempt_id: str) -> dict[str, object]:
    """Return the command that admits an operation with a reservation of 10."""
    action = {
        "capability": "write",
        "resource": "doc",
        "payload": {"value": 1},
        "preconditions": {"revision": 1},
    }
    members = {"runId": "r", "grantId": "g", "subject": "agent", "amount": "10"}
    ids = {"operationId": operation_id, "attemptId": attempt_id}
    return {"type": "admit", **members, **ids, "action": action, **GATE}


def settle(attempt_id: str, effect: str, cost: str) -> dict[str, object]:
    """Return the command that records what came of an attempt."""
    return {"type": "settle", "attemptId": attempt_id, "effect": effect, "actualCost": cost}


COMMANDS: list[dict[str, object]] = [
    {"type": "startRun", "runId": "r"},
    {"type": "grant", "grant": GRANT},
    admit("o", "a"),
    {"type": "dispatch", "attemptId": "a", **GATE},
    settle("a", "CONFIRMED_NOT_APPLIED", "0"),
    {"type": "retry", "operationId": "o", "attemptId": "a2", "amount": "10", **GATE},
    {"type": "dispatch", "attemptId": "a2", **GATE},
    settle("a", "CONFIRMED_NOT_APPLIED", "0"),
    settle("a2", "CONFIRMED_APPLIED", "2"),
]


def told(commands: list[dict[str, object]]) -> State:
    """Fold the commands at time 10 and print what each led to; return the last state."""
    state = create_mission(parse_contract(CONTRACT))
    for number, command in enumerate(commands, 1):
        state = reduce(state, parse_command(command), "10")
        money = f"spent {state['spent']:<2} reserved {state['reserved']}"
        print(f"{number:>2} {command['type']:<13} {money}")
    return state


if __name__ == "__main__":
    end = told(COMMANDS)
    assert (end["spent"], end["reserved"], end["events"]) == ("2", "0", "9")
