"""A mission in which a reply is lost: the money stays reserved until somebody finds out.

Run it with ``python examples/mission_lost_reply.py``. Nothing is sent anywhere: the fold keeps
the books, and the commands say what happened.
"""

from __future__ import annotations

from counterfoil.mission import (
    CommandRejected,
    State,
    create_mission,
    parse_command,
    parse_contract,
    reduce,
)

CONTRACT = """{
  "id": "refunds-7", "missionId": "refunds", "aiwsEdition": "0.4", "profile": "finite-v1",
  "budget": "50.00", "deadline": "600000", "criteria": [], "actions": ["refund"],
  "resources": ["order/17"], "requiresApproval": false, "maxAttempts": "2",
  "maxAuthorizationAgeMs": "5000", "features": []
}"""
GATE = '"authorizationCheckedAt": "1000", "policy": "ALLOW", "mandatoryChecksOk": true'
COMMANDS = [
    '{"type": "startRun", "runId": "monday"}',
    """{"type": "grant", "grant": {"id": "g", "subject": "clerk", "profile": "finite-v1",
        "actions": ["refund"], "resources": ["order/17"], "notBefore": "0",
        "expiresAt": "600000", "limit": "50", "canDelegate": false, "depth": "0"}}""",
    f"""{{"type": "admit", "runId": "monday", "operationId": "refund-17", "attemptId": "first",
        "grantId": "g", "subject": "clerk", "amount": "20", {GATE},
        "action": {{"capability": "refund", "resource": "order/17",
                    "payload": {{"cents": 2000}}, "preconditions": {{}}}}}}""",
    f'{{"type": "dispatch", "attemptId": "first", {GATE}}}',
    """{"type": "settle", "attemptId": "first", "effect": "UNKNOWN", "actualCost": "0",
        "evidence": "no reply within 30 s"}""",
    f"""{{"type": "retry", "operationId": "refund-17", "attemptId": "second", "amount": "20",
        {GATE}}}""",
    """{"type": "review", "attemptId": "first", "reviewer": "the night desk",
        "decision": "APPLIED", "actualCost": "20", "evidence": {"receipt": "R-4711"}}""",
]


def told(state: State, text: str) -> State:
    """Fold one command and print what it led to."""
    command = parse_command(text)
    name = type(command).__name__
    try:
        state = reduce(state, command, "1000")
    except CommandRejected as refusal:
        print(f"{name:<10} refused: {refusal.code}")
        return state
    print(f"{name:<10} spent {state['spent']:<4} reserved {state['reserved']}")
    return state


def main() -> None:
    """Tell the story command by command."""
    state = create_mission(parse_contract(CONTRACT))
    for text in COMMANDS:
        state = told(state, text)


if __name__ == "__main__":
    main()
