"""The twenty-three commands of a mission, as frozen values. Made by ``parse_command``.

Ids are text; amounts are exact; times and ages are milliseconds on the caller's clock. A command
is trusted: the caller has authenticated who speaks. ``epoch`` is None where it was left out.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from counterfoil.mission.errors import CommandError
from counterfoil.mission.parsing import FrozenJson, Members, freeze, load_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from counterfoil.mission.amounts import Amount
    from counterfoil.mission.graph import Graph
    from counterfoil.mission.vocabulary import Decision, Effect, Finding, Policy, RunStatus


@dataclass(frozen=True, slots=True)
class Action:
    """What is to be done: the whole of it is what an approval covers, by its digest."""

    capability: str
    resource: str
    whole: FrozenJson
    digest: str


@dataclass(frozen=True, slots=True)
class Gate:
    """What the caller checked before it asked; ``checked_at_ms`` is when."""

    checked_at_ms: int
    policy: Policy
    mandatory_checks_ok: bool


@dataclass(frozen=True, slots=True)
class GrantTerms:
    """Who may do what, on what, when, up to how much. Valid from ``not_before_ms`` on, up to but
    not at ``expires_at_ms``; ``depth`` counts the delegations that may follow below.
    """

    id: str
    subject: str
    profile: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    not_before_ms: int
    expires_at_ms: int
    limit: Amount
    can_delegate: bool
    depth: int


@dataclass(frozen=True, slots=True)
class Approval:
    """One word on one operation's action; ``seq`` is the number of its event, 0 before that."""

    id: str
    operation_id: str
    action_digest: str
    amount_max: Amount
    approver: str
    decision: Decision
    expires_at_ms: int
    seq: int = 0


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What a node was completed with; which members belong to a kind is the fold's to say."""

    operation_id: str | None
    original_operation_id: str | None
    approval_id: str | None


@dataclass(frozen=True, slots=True)
class StartRun:
    """Begin a run at epoch 1."""

    run_id: str


@dataclass(frozen=True, slots=True)
class ClaimRun:
    """Take a run over: ``epoch`` is exactly the current one + 1."""

    run_id: str
    owner: str
    epoch: int


@dataclass(frozen=True, slots=True)
class FinishRun:
    """Close a run as COMPLETED or FAILED."""

    run_id: str
    status: RunStatus
    epoch: int | None


@dataclass(frozen=True, slots=True)
class MakeGrant:
    """Give authority (`grant`)."""

    terms: GrantTerms


@dataclass(frozen=True, slots=True)
class Delegate:
    """Give authority within that of a parent; reserves nothing."""

    parent_grant_id: str
    terms: GrantTerms


@dataclass(frozen=True, slots=True)
class RevokeGrant:
    """Take a grant back, and all below it."""

    grant_id: str
    reason: FrozenJson


@dataclass(frozen=True, slots=True)
class Approve:
    """Record an approver's word."""

    approval: Approval


@dataclass(frozen=True, slots=True)
class Admit:
    """A new operation and its first attempt, with the amount reserved."""

    run_id: str
    operation_id: str
    attempt_id: str
    grant_id: str
    subject: str
    action: Action
    amount: Amount
    gate: Gate
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Compensate:
    """A new governed operation that undoes an earlier one."""

    admit: Admit
    original_operation_id: str


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The point of no return of a prepared attempt."""

    attempt_id: str
    gate: Gate
    node_id: str | None
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Redeliver:
    """The same attempt sent again under its key; reserves nothing."""

    attempt_id: str
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Settle:
    """What came of a dispatched attempt, and what it cost."""

    attempt_id: str
    effect: Effect
    actual_cost: Amount
    evidence: FrozenJson | None
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Review:
    """A person's answer about a dispatched attempt."""

    attempt_id: str
    reviewer: str
    decision: Finding
    actual_cost: Amount
    evidence: FrozenJson


@dataclass(frozen=True, slots=True)
class Correct:
    """A settled attempt turns out otherwise. ``effect`` is never UNKNOWN."""

    attempt_id: str
    effect: Effect
    actual_cost: Amount
    by: str
    evidence: FrozenJson


@dataclass(frozen=True, slots=True)
class Retry:
    """A fresh attempt of the same operation."""

    operation_id: str
    attempt_id: str
    amount: Amount
    gate: Gate
    epoch: int | None


@dataclass(frozen=True, slots=True)
class Release:
    """Give a prepared attempt's reservation back."""

    attempt_id: str
    epoch: int | None


@dataclass(frozen=True, slots=True)
class RegisterGraph:
    """Make a graph known."""

    graph: Graph


@dataclass(frozen=True, slots=True)
class AttachGraph:
    """Let a run follow a graph."""

    run_id: str
    graph_id: str
    epoch: int | None


@dataclass(frozen=True, slots=True)
class CompleteNode:
    """Mark a node of a run's graph DONE, with what completed it."""

    run_id: str
    node_id: str
    result: NodeResult
    epoch: int | None


@dataclass(frozen=True, slots=True)
class RecordCriterion:
    """Say whether a criterion of the contract is met in a run."""

    run_id: str
    criterion: str
    met: bool
    evidence: FrozenJson
    epoch: int | None


@dataclass(frozen=True, slots=True)
class RegisterTrigger:
    """Make a trigger known."""

    trigger_id: str


@dataclass(frozen=True, slots=True)
class FireTrigger:
    """Start a run once for a firing."""

    trigger_id: str
    firing_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class StopMission:
    """Admit and dispatch nothing any more."""

    reason: FrozenJson
    by: str


EffectCommand: TypeAlias = (
    Admit | Dispatch | Settle | Retry | Release | Redeliver | Review | Correct | Compensate
)
AuthorityCommand: TypeAlias = MakeGrant | Delegate | RevokeGrant | Approve
GraphCommand: TypeAlias = RegisterGraph | AttachGraph | CompleteNode
RunCommand: TypeAlias = (
    StartRun | ClaimRun | FinishRun | RecordCriterion | RegisterTrigger | FireTrigger | StopMission
)
Command: TypeAlias = EffectCommand | AuthorityCommand | GraphCommand | RunCommand


def read_action(members: Members) -> Action:
    """Read an action's members; raises the document's error with a pointer."""
    payload = members.plain_object("payload")
    preconditions = members.plain_object("preconditions")
    capability = members.name("capability")
    resource = members.name("resource")
    members.close()
    whole = freeze(
        {
            "capability": capability,
            "resource": resource,
            "payload": payload,
            "preconditions": preconditions,
        }
    )
    return Action(capability, resource, whole, hashlib.sha256(whole.canonical).hexdigest())


def action_digest(action: Action | str | bytes | Mapping[str, object]) -> str:
    """Return the lower-case hex SHA-256 of an action's RFC 8785 bytes: what an approval names.

    The action is JSON text, bytes, a decoded mapping, or an Action. Raises CommandError with a
    JSON Pointer for anything that is no action.
    """
    if isinstance(action, Action):
        return action.digest
    return read_action(Members(load_object(action, CommandError), "", CommandError)).digest
