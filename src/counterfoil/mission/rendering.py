"""Records of a state as plain JSON values under the names of the design page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

import rfc8785

from counterfoil.mission.amounts import Amount, write_amount

if TYPE_CHECKING:
    from counterfoil.mission.commands import Approval, NodeResult
    from counterfoil.mission.graph import Graph
    from counterfoil.mission.parsing import FrozenJson, Json
    from counterfoil.mission.persistent import PersistentMap
    from counterfoil.mission.state import (
        Attempt,
        Criterion,
        Grant,
        NodeState,
        Operation,
        Parts,
        Run,
        Stop,
        Trigger,
    )

R = TypeVar("R")


class Table(Mapping[str, "Json"], Generic[R]):
    """A map of records that are rendered when they are read, in the order of their ids."""

    __slots__ = ("_records", "_render")

    def __init__(self, records: PersistentMap[R], render: Callable[[R], Json]) -> None:
        self._records = records
        self._render = render

    def __getitem__(self, key: str) -> Json:
        """Return one record as plain values; KeyError for an id that is none."""
        return self._render(self._records[key])

    def __iter__(self) -> Iterator[str]:
        """Yield the ids, sorted."""
        return iter(self._records)

    def __len__(self) -> int:
        """Return the number of records."""
        return len(self._records)

    def __repr__(self) -> str:
        """Return the records as a dict would show them."""
        return repr(dict(self))


def _plain_table(records: PersistentMap[R], render: Callable[[R], Json]) -> dict[str, Json]:
    return {key: render(record) for key, record in records.items()}


def _thawed(value: FrozenJson | None) -> Json:
    return None if value is None else value.thaw()


def _written(amount: Amount | None) -> Json:
    return None if amount is None else write_amount(amount)


def _number(value: int | None) -> Json:
    return None if value is None else str(value)


def _stop(stop: Stop | None) -> Json:
    if stop is None:
        return None
    return {"reason": stop.reason.thaw(), "by": stop.by, "at": str(stop.at_ms)}


def _criterion(criterion: Criterion) -> Json:
    return {"met": criterion.met, "evidence": _thawed(criterion.evidence)}


def _result(result: NodeResult | None) -> Json:
    if result is None:
        return None
    members = {
        "operationId": result.operation_id,
        "originalOperationId": result.original_operation_id,
        "approvalId": result.approval_id,
    }
    return {name: value for name, value in members.items() if value is not None}


def _node(node: NodeState) -> Json:
    return {
        "status": node.status.value,
        "operationId": node.operation_id,
        "result": _result(node.result),
    }


def _run(run: Run) -> Json:
    return {
        "status": run.status.value,
        "epoch": str(run.epoch),
        "owner": run.owner,
        "graphId": run.graph_id,
        "nodes": _plain_table(run.nodes, _node),
        "criteria": _plain_table(run.criteria, _criterion),
    }


def _grant(grant: Grant) -> Json:
    terms = grant.terms
    return {
        "id": terms.id,
        "subject": terms.subject,
        "profile": terms.profile,
        "actions": list(terms.actions),
        "resources": list(terms.resources),
        "notBefore": str(terms.not_before_ms),
        "expiresAt": str(terms.expires_at_ms),
        "limit": write_amount(terms.limit),
        "canDelegate": terms.can_delegate,
        "depth": str(terms.depth),
        "parentGrantId": grant.parent_id,
        "revoked": grant.revoked,
        "reason": _thawed(grant.reason),
        "spent": write_amount(grant.spent),
        "reserved": write_amount(grant.reserved),
    }


def _approval(approval: Approval) -> Json:
    return {
        "id": approval.id,
        "operationId": approval.operation_id,
        "actionDigest": approval.action_digest,
        "maxAmount": write_amount(approval.amount_max),
        "approver": approval.approver,
        "decision": approval.decision.value,
        "expiresAt": str(approval.expires_at_ms),
        "seq": str(approval.seq),
    }


def _operation(operation: Operation) -> Json:
    admission = operation.admission
    return {
        "runId": admission.run_id,
        "grantId": admission.grant_id,
        "subject": admission.subject,
        "action": admission.action.whole.thaw(),
        "actionDigest": admission.action.digest,
        "approvalId": admission.approval_id,
        "disposition": operation.disposition.value,
        "attempts": [attempt.id for attempt in operation.attempts],
        "compensates": admission.compensates,
        "underReview": operation.under_review,
    }


def _attempt(attempt: Attempt, operation_id: str) -> Json:
    return {
        "operationId": operation_id,
        "amount": write_amount(attempt.amount),
        "status": attempt.status.value,
        "effect": None if attempt.effect is None else attempt.effect.value,
        "actualCost": _written(attempt.actual_cost),
        "epoch": _number(attempt.epoch),
        "nodeId": attempt.node_id,
        "evidence": _thawed(attempt.evidence),
        "reviews": [
            {
                "reviewer": review.reviewer,
                "decision": review.decision.value,
                "actualCost": write_amount(review.actual_cost),
                "evidence": review.evidence.thaw(),
                "at": str(review.at_ms),
            }
            for review in attempt.reviews
        ],
        "corrections": [
            {
                "effect": correction.effect.value,
                "actualCost": write_amount(correction.actual_cost),
                "by": correction.by,
                "evidence": correction.evidence.thaw(),
                "at": str(correction.at_ms),
            }
            for correction in attempt.corrections
        ],
    }


def _graph(graph: Graph) -> Json:
    return graph.plain()


def _trigger(trigger: Trigger) -> Json:
    return {"firings": dict(trigger.firings.items())}


class AttemptTable(Mapping[str, "Json"]):
    """The attempts of all operations by their ids, rendered when they are read."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def __getitem__(self, key: str) -> Json:
        """Return one attempt as plain values; KeyError for an id that is none."""
        operation_id = self._parts.attempts[key]
        operation = self._parts.operations[operation_id]
        return _attempt(operation.attempts[operation.place(key)], operation_id)

    def __iter__(self) -> Iterator[str]:
        """Yield the ids, sorted."""
        return iter(self._parts.attempts)

    def __len__(self) -> int:
        """Return the number of attempts."""
        return len(self._parts.attempts)

    def __repr__(self) -> str:
        """Return the attempts as a dict would show them."""
        return repr(dict(self))


MEMBERS: dict[str, Callable[[Parts], object]] = {
    "contract": lambda parts: parts.contract.plain(),
    "now": lambda parts: str(parts.now_ms),
    "spent": lambda parts: write_amount(parts.spent),
    "reserved": lambda parts: write_amount(parts.reserved),
    "events": lambda parts: str(parts.events),
    "stopped": lambda parts: _stop(parts.stopped),
    "runs": lambda parts: Table(parts.runs, _run),
    "grants": lambda parts: Table(parts.grants, _grant),
    "approvals": lambda parts: Table(parts.approvals, _approval),
    "operations": lambda parts: Table(parts.operations, _operation),
    "attempts": AttemptTable,
    "graphs": lambda parts: Table(parts.graphs, _graph),
    "triggers": lambda parts: Table(parts.triggers, _trigger),
}


def plain(parts: Parts) -> dict[str, Json]:
    """Return every member as plain JSON values."""
    return {
        "contract": parts.contract.plain(),
        "now": str(parts.now_ms),
        "spent": write_amount(parts.spent),
        "reserved": write_amount(parts.reserved),
        "events": str(parts.events),
        "stopped": _stop(parts.stopped),
        "runs": _plain_table(parts.runs, _run),
        "grants": _plain_table(parts.grants, _grant),
        **plain_operations(parts.operations, parts.approvals),
        "graphs": _plain_table(parts.graphs, _graph),
        "triggers": _plain_table(parts.triggers, _trigger),
    }


def plain_operations(
    operations: Mapping[str, Operation], approvals: Mapping[str, Approval]
) -> dict[str, Json]:
    """Return the members that say what operations are, as plain JSON values."""
    return {
        "approvals": {key: _approval(approval) for key, approval in approvals.items()},
        "operations": {key: _operation(operation) for key, operation in operations.items()},
        "attempts": {
            attempt.id: _attempt(attempt, operation_id)
            for operation_id, operation in operations.items()
            for attempt in operation.attempts
        },
    }


def canonical(parts: Parts) -> bytes:
    """Return the RFC 8785 bytes of the whole and a newline."""
    return rfc8785.dumps(plain(parts)) + b"\n"
