"""From JSON to commands, one function each. Source: the design page, "Commands"."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from counterfoil.mission.amounts import ZERO
from counterfoil.mission.commands import (
    Admit,
    Approval,
    Approve,
    AttachGraph,
    ClaimRun,
    Command,
    Compensate,
    CompleteNode,
    Correct,
    Delegate,
    Dispatch,
    FinishRun,
    FireTrigger,
    Gate,
    GrantTerms,
    MakeGrant,
    NodeResult,
    RecordCriterion,
    Redeliver,
    RegisterGraph,
    RegisterTrigger,
    Release,
    Retry,
    Review,
    RevokeGrant,
    Settle,
    StartRun,
    StopMission,
    read_action,
)
from counterfoil.mission.contract import PROFILE
from counterfoil.mission.errors import CommandError
from counterfoil.mission.graph import read_graph
from counterfoil.mission.parsing import Json, Members, checked_object, load_any, load_object
from counterfoil.mission.vocabulary import Decision, Effect, Finding, Policy, RunStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_DIGEST = re.compile(r"[0-9a-f]{64}")


def parse_command(source: str | bytes | Mapping[str, object]) -> Command:
    """Read a command from JSON text, UTF-8 bytes or an already decoded mapping.

    Raises CommandError with a JSON Pointer for an unknown type, unknown or missing members,
    wrong types, names that appear twice, bad amounts, and graphs that are none.
    """
    return command_from(load_object(source, CommandError), "")


def parse_line(source: str | bytes | Mapping[str, object]) -> tuple[int, Command]:
    """Read one line of a log, ``{"now": "10", "command": {...}}``: milliseconds and a command.

    Raises CommandError with a pointer from the line's root. A command may be as deep here as
    alone: the line around it is not counted.
    """
    value = checked_object(load_any(source, CommandError), "", CommandError, depth=0)
    line = Members(value, "", CommandError)
    now_ms = line.count("now")
    command = command_from(line.plain_object("command"), "/command")
    line.close()
    return now_ms, command


def command_from(value: dict[str, Json], path: str) -> Command:
    """Read a command from a checked object at ``path`` of its document."""
    members = Members(value, path, CommandError)
    kind = members.raw("type")
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        members.fail("type", "is no command; use one of " + ", ".join(_READERS))
    command = read(members)
    members.close()
    return command


def _epoch(members: Members) -> int | None:
    return members.count("epoch") if members.has("epoch") else None


def _gate(members: Members) -> Gate:
    return Gate(
        checked_at_ms=members.count("authorizationCheckedAt"),
        policy=members.word("policy", Policy),
        mandatory_checks_ok=members.flag("mandatoryChecksOk"),
    )


def _start_run(members: Members) -> Command:
    return StartRun(members.name("runId"))


def _claim_run(members: Members) -> Command:
    return ClaimRun(members.name("runId"), members.name("owner"), members.count("epoch"))


def _finish_run(members: Members) -> Command:
    status = members.word("status", RunStatus)
    if status is RunStatus.OPEN:
        members.fail("status", "must be one of COMPLETED, FAILED")
    return FinishRun(members.name("runId"), status, _epoch(members))


def _terms(outer: Members) -> GrantTerms:
    members = outer.inner("grant")
    terms = read_terms(members)
    members.close()
    return terms


def read_terms(members: Members) -> GrantTerms:
    """Read the terms of a grant; what else the object holds is the caller's."""
    return GrantTerms(
        id=members.name("id"),
        subject=members.name("subject"),
        profile=members.constant("profile", PROFILE),
        actions=members.names("actions"),
        resources=members.names("resources"),
        not_before_ms=members.count("notBefore"),
        expires_at_ms=members.count("expiresAt"),
        limit=members.amount("limit"),
        can_delegate=members.flag("canDelegate"),
        depth=members.count("depth"),
    )


def _grant(members: Members) -> Command:
    return MakeGrant(_terms(members))


def _delegate(members: Members) -> Command:
    return Delegate(members.name("parentGrantId"), _terms(members))


def _revoke_grant(members: Members) -> Command:
    return RevokeGrant(members.name("grantId"), members.evidence("reason"))


def _approve(outer: Members) -> Command:
    members = outer.inner("approval")
    digest = members.name("actionDigest")
    if _DIGEST.fullmatch(digest) is None:
        members.fail("actionDigest", "must be 64 lower-case hex digits")
    approval = Approval(
        id=members.name("id"),
        operation_id=members.name("operationId"),
        action_digest=digest,
        amount_max=members.amount("maxAmount"),
        approver=members.name("approver"),
        decision=members.word("decision", Decision),
        expires_at_ms=members.count("expiresAt"),
    )
    members.close()
    return Approve(approval)


def _admit(members: Members) -> Admit:
    return Admit(
        run_id=members.name("runId"),
        operation_id=members.name("operationId"),
        attempt_id=members.name("attemptId"),
        grant_id=members.name("grantId"),
        subject=members.name("subject"),
        action=read_action(members.inner("action")),
        amount=members.amount("amount"),
        gate=_gate(members),
        epoch=_epoch(members),
    )


def _compensate(members: Members) -> Command:
    return Compensate(_admit(members), members.name("originalOperationId"))


def _dispatch(members: Members) -> Command:
    return Dispatch(
        attempt_id=members.name("attemptId"),
        gate=_gate(members),
        node_id=members.name("nodeId") if members.has("nodeId") else None,
        epoch=_epoch(members),
    )


def _redeliver(members: Members) -> Command:
    return Redeliver(members.name("attemptId"), _epoch(members))


def _settle(members: Members) -> Command:
    effect = members.word("effect", Effect)
    cost = members.amount("actualCost")
    if effect is Effect.UNKNOWN and cost != ZERO:
        members.fail("actualCost", 'must be "0" while the effect is unknown')
    return Settle(
        attempt_id=members.name("attemptId"),
        effect=effect,
        actual_cost=cost,
        evidence=members.evidence("evidence") if members.has("evidence") else None,
        epoch=_epoch(members),
    )


def _review(members: Members) -> Command:
    decision = members.word("decision", Finding)
    cost = members.amount("actualCost")
    if decision is Finding.STILL_UNKNOWN and cost != ZERO:
        members.fail("actualCost", 'must be "0" while the effect is unknown')
    return Review(
        attempt_id=members.name("attemptId"),
        reviewer=members.name("reviewer"),
        decision=decision,
        actual_cost=cost,
        evidence=members.evidence("evidence"),
    )


def _correct(members: Members) -> Command:
    effect = members.word("effect", Effect)
    if effect is Effect.UNKNOWN:
        members.fail("effect", "must be one of CONFIRMED_NOT_APPLIED, CONFIRMED_APPLIED")
    return Correct(
        attempt_id=members.name("attemptId"),
        effect=effect,
        actual_cost=members.amount("actualCost"),
        by=members.name("by"),
        evidence=members.evidence("evidence"),
    )


def _retry(members: Members) -> Command:
    return Retry(
        operation_id=members.name("operationId"),
        attempt_id=members.name("attemptId"),
        amount=members.amount("amount"),
        gate=_gate(members),
        epoch=_epoch(members),
    )


def _release(members: Members) -> Command:
    return Release(members.name("attemptId"), _epoch(members))


def _register_graph(members: Members) -> Command:
    return RegisterGraph(read_graph(members.inner("graph")))


def _attach_graph(members: Members) -> Command:
    return AttachGraph(members.name("runId"), members.name("graphId"), _epoch(members))


def _complete_node(members: Members) -> Command:
    result = members.inner("result")
    known = ("operationId", "originalOperationId", "approvalId")
    operation_id, original_id, approval_id = (
        result.name(member) if result.has(member) else None for member in known
    )
    result.close()
    return CompleteNode(
        run_id=members.name("runId"),
        node_id=members.name("nodeId"),
        result=NodeResult(operation_id, original_id, approval_id),
        epoch=_epoch(members),
    )


def _record_criterion(members: Members) -> Command:
    return RecordCriterion(
        run_id=members.name("runId"),
        criterion=members.name("criterion"),
        met=members.flag("met"),
        evidence=members.evidence("evidence"),
        epoch=_epoch(members),
    )


def _register_trigger(members: Members) -> Command:
    return RegisterTrigger(members.name("triggerId"))


def _fire_trigger(members: Members) -> Command:
    return FireTrigger(members.name("triggerId"), members.name("firingId"), members.name("runId"))


def _stop_mission(members: Members) -> Command:
    return StopMission(members.evidence("reason"), members.name("by"))


_READERS: dict[str, Callable[[Members], Command]] = {
    "startRun": _start_run,
    "claimRun": _claim_run,
    "finishRun": _finish_run,
    "grant": _grant,
    "delegate": _delegate,
    "revokeGrant": _revoke_grant,
    "approve": _approve,
    "admit": _admit,
    "dispatch": _dispatch,
    "redeliver": _redeliver,
    "settle": _settle,
    "review": _review,
    "correct": _correct,
    "retry": _retry,
    "release": _release,
    "compensate": _compensate,
    "registerGraph": _register_graph,
    "attachGraph": _attach_graph,
    "completeNode": _complete_node,
    "recordCriterion": _record_criterion,
    "registerTrigger": _register_trigger,
    "fireTrigger": _fire_trigger,
    "stopMission": _stop_mission,
}

COMMAND_TYPES: tuple[str, ...] = tuple(_READERS)
"""The twenty-three JSON names, in the order of the design page."""
