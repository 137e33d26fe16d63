"""A desk to fold commands at: JSON in, states out, with a plausible default for every member."""

from __future__ import annotations

import copy
import json
from collections import Counter
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pytest

from counterfoil.mission import (
    CommandRejected,
    action_digest,
    canonical_state_bytes,
    create_mission,
    parse_command,
    parse_contract,
    reduce,
)

if TYPE_CHECKING:
    from counterfoil.mission import Lookup, State

LEFT_OUT = object()
"""The value of a member that is to be left out."""

CONTRACT: dict[str, Any] = {
    "id": "c",
    "missionId": "m",
    "aiwsEdition": "0.4",
    "profile": "finite-v1",
    "budget": "100",
    "deadline": "10000",
    "criteria": [],
    "actions": ["write", "erase"],
    "resources": ["doc", "sheet"],
    "requiresApproval": False,
    "maxAttempts": "2",
    "maxAuthorizationAgeMs": "10",
    "features": ["triggers", "graphs"],
}
ACTION: dict[str, Any] = {
    "capability": "write",
    "resource": "doc",
    "payload": {"value": 1},
    "preconditions": {"revision": 1},
}
DIGEST = action_digest(ACTION)
GRANT: dict[str, Any] = {
    "id": "g",
    "subject": "agent",
    "profile": "finite-v1",
    "actions": ["write"],
    "resources": ["doc"],
    "notBefore": "0",
    "expiresAt": "9000",
    "limit": "100",
    "canDelegate": True,
    "depth": "2",
}
APPROVAL: dict[str, Any] = {
    "id": "ok",
    "operationId": "o",
    "actionDigest": DIGEST,
    "maxAmount": "50",
    "approver": "boss",
    "decision": "APPROVED",
    "expiresAt": "5000",
}
GATE: dict[str, Any] = {
    "authorizationCheckedAt": "10",
    "policy": "ALLOW",
    "mandatoryChecksOk": True,
}
ADMIT: dict[str, Any] = {
    "runId": "r",
    "operationId": "o",
    "attemptId": "a",
    "grantId": "g",
    "subject": "agent",
    "action": ACTION,
    "amount": "10",
    **GATE,
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "startRun": {"runId": "r"},
    "claimRun": {"runId": "r", "owner": "worker", "epoch": "2"},
    "finishRun": {"runId": "r", "status": "COMPLETED"},
    "grant": {"grant": GRANT},
    "delegate": {"parentGrantId": "g", "grant": {**GRANT, "id": "g2", "depth": "1"}},
    "revokeGrant": {"grantId": "g", "reason": "over"},
    "approve": {"approval": APPROVAL},
    "admit": ADMIT,
    "dispatch": {"attemptId": "a", **GATE},
    "redeliver": {"attemptId": "a"},
    "settle": {"attemptId": "a", "effect": "CONFIRMED_APPLIED", "actualCost": "3"},
    "review": {
        "attemptId": "a",
        "reviewer": "ann",
        "decision": "APPLIED",
        "actualCost": "3",
        "evidence": {"receipt": 7},
    },
    "correct": {
        "attemptId": "a",
        "effect": "CONFIRMED_NOT_APPLIED",
        "actualCost": "0",
        "by": "ann",
        "evidence": "the receipt was another one's",
    },
    "retry": {"operationId": "o", "attemptId": "a2", "amount": "10", **GATE},
    "release": {"attemptId": "a"},
    "compensate": {**ADMIT, "operationId": "u", "attemptId": "u1", "originalOperationId": "o"},
    "registerGraph": {},
    "attachGraph": {"runId": "r", "graphId": "graph"},
    "completeNode": {"runId": "r", "nodeId": "task", "result": {"operationId": "o"}},
    "recordCriterion": {"runId": "r", "criterion": "review", "met": True, "evidence": "seen"},
    "registerTrigger": {"triggerId": "t"},
    "fireTrigger": {"triggerId": "t", "firingId": "f", "runId": "r2"},
    "stopMission": {"reason": "enough", "by": "boss"},
}
DOTTED = ("grant", "approval")


def node(name: str, kind: str, *depends_on: str, **config: Any) -> dict[str, Any]:
    return {"id": name, "kind": kind, "dependsOn": list(depends_on), "config": config}


def graph(*nodes: dict[str, Any], name: str = "graph") -> dict[str, Any]:
    return {"id": name, "revision": "1", "nodes": list(nodes)}


DEFAULTS["registerGraph"]["graph"] = graph(
    node("task", "TASK"),
    node("reconcile", "RECONCILIATION", "task"),
    node("undo", "COMPENSATION", "reconcile"),
    node("end", "END", "undo"),
)


def command_of(kind: str, **members: Any) -> dict[str, Any]:
    """Return a command's JSON: the defaults of its type with other members.

    ``grant_…`` and ``approval_…`` change members of what is within.
    """
    made = {"type": kind, **copy.deepcopy(DEFAULTS[kind])}
    for name, value in members.items():
        outer, _, inner = name.partition("_")
        target, member = (made[outer], inner) if inner and outer in DOTTED else (made, name)
        if value is LEFT_OUT:
            del target[member]
        else:
            target[member] = value
    return made


class Desk:
    """Folds commands, and keeps those that were accepted."""

    def __init__(self, **contract: Any) -> None:
        self.contract = {**CONTRACT, **contract}
        self.state = create_mission(parse_contract(json.dumps(self.contract)))
        self.now = 10
        self.accepted: list[tuple[int, dict[str, Any]]] = []
        self.lookup: Lookup | None = None

    @classmethod
    def ready(cls, **contract: Any) -> Desk:
        desk = cls(**contract)
        desk.do("startRun")
        desk.do("grant")
        return desk

    def do(self, kind: str, *, now: Any = None, **members: Any) -> State:
        """Fold one command that must be accepted; the time it is given at."""
        at = self.now if now is None else now
        command = command_of(kind, **members)
        if "authorizationCheckedAt" in command and "authorizationCheckedAt" not in members:
            command["authorizationCheckedAt"] = str(at)
        self.state = reduce(self.state, parse_command(json.dumps(command)), at, self.lookup)
        self.accepted.append((at, command))
        return self.state

    def refused(self, kind: str, *, now: Any = None, **members: Any) -> str:
        """Fold one command that must be refused; return the code. Nothing has changed."""
        before, bytes_before = self.state, canonical_state_bytes(self.state)
        with pytest.raises(CommandRejected) as caught:
            self.do(kind, now=now, **members)
        assert self.state is before
        assert canonical_state_bytes(before) == bytes_before
        assert str(caught.value).startswith(caught.value.code + ": ")
        return caught.value.code

    def outcome(self, kind: str, **members: Any) -> str:
        """Fold one command; return the code of its refusal, or "accepted"."""
        try:
            self.do(kind, **members)
        except CommandRejected as refusal:
            return refusal.code
        return "accepted"

    def sent(self, operation: str = "o", attempt: str = "a", **members: Any) -> State:
        """Admit an operation and dispatch it."""
        node_id = members.pop("nodeId", None)
        self.do("admit", operationId=operation, attemptId=attempt, **members)
        return self.do("dispatch", attemptId=attempt, **({"nodeId": node_id} if node_id else {}))

    def applied(self, operation: str = "o", attempt: str = "a", **members: Any) -> State:
        """Admit an operation, dispatch it, and settle it as applied at cost 3."""
        self.sent(operation, attempt, **members)
        return self.do("settle", attemptId=attempt)

    def failed(self, operation: str = "o", attempt: str = "a", **members: Any) -> State:
        """Admit an operation, dispatch it, and settle it as not applied at cost 0."""
        self.sent(operation, attempt, **members)
        return self.do("settle", attemptId=attempt, effect="CONFIRMED_NOT_APPLIED", actualCost="0")

    def money(self) -> tuple[Any, Any]:
        """Return what is spent and what is reserved."""
        return self.state["spent"], self.state["reserved"]

    def operation(self, name: str = "o") -> Any:
        return self.state["operations"][name]  # type: ignore[index]

    def attempt(self, name: str = "a") -> Any:
        return self.state["attempts"][name]  # type: ignore[index]

    def run(self, name: str = "r") -> Any:
        return self.state["runs"][name]  # type: ignore[index]

    def grant(self, name: str = "g") -> Any:
        return self.state["grants"][name]  # type: ignore[index]


EXACT = Context(prec=400)


def total(amounts: list[str]) -> Decimal:
    result = Decimal(0)
    for amount in amounts:
        result = EXACT.add(result, Decimal(amount))
    return result


def _disposition(attempts: list[dict[str, Any]]) -> str:
    if any(a["status"] == "DISPATCHED" for a in attempts):
        return "UNKNOWN"
    settled = [a["effect"] for a in attempts if a["status"] == "SETTLED"]
    if "CONFIRMED_APPLIED" in settled:
        return "CONFIRMED_APPLIED"
    return "CONFIRMED_NOT_APPLIED" if settled else "NOT_DISPATCHED"


def check_money(plain: dict[str, Any]) -> None:
    """Count the money again from the attempts alone, in the mission and in every grant."""
    spent: dict[str | None, list[str]] = {None: [], **{name: [] for name in plain["grants"]}}
    reserved: dict[str | None, list[str]] = {None: [], **{name: [] for name in plain["grants"]}}
    for attempt in plain["attempts"].values():
        grant_id = plain["operations"][attempt["operationId"]]["grantId"]
        while True:
            if attempt["status"] == "SETTLED":
                spent[grant_id].append(attempt["actualCost"])
            if attempt["status"] in ("PREPARED", "DISPATCHED"):
                reserved[grant_id].append(attempt["amount"])
            if grant_id is None:
                break
            grant_id = plain["grants"][grant_id]["parentGrantId"]
    for name, grant in [(None, plain), *plain["grants"].items()]:
        assert total(spent[name]) == Decimal(grant["spent"])
        assert total(reserved[name]) == Decimal(grant["reserved"])


def check_derived(state: State) -> None:
    """Count everything that is derived again, from the plain state alone."""
    plain: dict[str, Any] = state.plain()
    check_money(plain)
    unknown: Counter[str] = Counter()
    prepared: dict[str, set[str]] = {name: set() for name in plain["runs"]}
    busy: Counter[tuple[str, str]] = Counter()
    for operation in plain["operations"].values():
        attempts = [plain["attempts"][name] for name in operation["attempts"]]
        disposition = _disposition(attempts)
        assert operation["disposition"] == disposition
        assert operation["underReview"] == any(
            a["status"] == "DISPATCHED" and a["effect"] == "UNKNOWN" for a in attempts
        )
        unknown[operation["runId"]] += disposition == "UNKNOWN"
        prepared[operation["runId"]] |= {
            name
            for name in operation["attempts"]
            if plain["attempts"][name]["status"] == "PREPARED"
        }
        for node_id in {a["nodeId"] for a in attempts} - {None}:
            busy[operation["runId"], node_id] += disposition != "CONFIRMED_NOT_APPLIED"
    for name, run in state.parts.runs.items():
        assert run.unknown == unknown[name]
        assert set(run.prepared) == prepared[name]
        for node_id, node_state in run.nodes.items():
            assert node_state.busy == busy[name, node_id]
    _check_links(state, plain)


def _check_links(state: State, plain: dict[str, Any]) -> None:
    undoing = {
        name: operation["compensates"]
        for name, operation in plain["operations"].items()
        if operation["compensates"] is not None
    }
    for run in plain["runs"].values():
        for done in run["nodes"].values():
            if done["result"] and "originalOperationId" in done["result"]:
                undoing[done["result"]["operationId"]] = done["result"]["originalOperationId"]
    blocking: Counter[str] = Counter()
    undone: Counter[str] = Counter()
    for name, original in undoing.items():
        attempts = [plain["attempts"][a] for a in plain["operations"][name]["attempts"]]
        disposition = _disposition(attempts)
        if disposition == "NOT_DISPATCHED":
            blocking[original] += any(a["status"] == "PREPARED" for a in attempts)
        else:
            blocking[original] += disposition != "CONFIRMED_NOT_APPLIED"
        undone[original] += any(a["effect"] == "CONFIRMED_APPLIED" for a in attempts)
    for name, operation in state.parts.operations.items():
        assert operation.links.blocking == blocking[name]
        assert operation.links.undone == undone[name]
