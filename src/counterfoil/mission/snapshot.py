"""A state as bytes from which the same state is made again, and the same for a retired operation.

The canonical members of the design page do not say all that a state holds: an operation counts what
undoes it, and a node what is busy under it, also of operations that have left. Those counts stand
beside the members here. Whatever else is derived is derived anew.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, TypeVar

from counterfoil.mission import rendering
from counterfoil.mission.amounts import Amount, read_sum
from counterfoil.mission.authority import with_word
from counterfoil.mission.commands import Approval, NodeResult, read_action
from counterfoil.mission.contract import parse_contract
from counterfoil.mission.decoding import read_terms
from counterfoil.mission.draft import Retired
from counterfoil.mission.errors import MissionInput
from counterfoil.mission.graph import read_graph
from counterfoil.mission.parsing import FrozenJson, Json, Members, freeze
from counterfoil.mission.persistent import PersistentMap
from counterfoil.mission.state import (
    NO_LINKS,
    Admission,
    Attempt,
    Correction,
    Criterion,
    Grant,
    Links,
    NodeState,
    Operation,
    Parts,
    ReviewEntry,
    Run,
    State,
    Stop,
    Trigger,
    Words,
)
from counterfoil.mission.vocabulary import (
    AttemptStatus,
    Decision,
    Effect,
    Finding,
    NodeStatus,
    RunStatus,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

V = TypeVar("V")


class SnapshotError(MissionInput):
    """Bytes that are no snapshot of this version; fold the commands instead."""


def snapshot_bytes(state: State) -> bytes:
    """Return a state as one line of JSON and a newline; ``read_snapshot`` undoes it.

    Equal states give equal bytes.
    """
    parts = state.parts
    busy: dict[str, Json] = {
        run_id: {name: str(node.busy) for name, node in run.nodes.items() if node.busy}
        for run_id, run in parts.runs.items()
    }
    kept: dict[str, Json] = {
        "state": rendering.plain(parts),
        "links": _links_of(parts.operations),
        "busy": busy,
    }
    return _written(kept)


def retired_bytes(retired: Retired) -> bytes:
    """Return a retired operation as one line of JSON; ``read_retired`` undoes it."""
    operations = {retired.operation_id: retired.operation}
    approvals = {approval.id: approval for approval in retired.approvals}
    kept = rendering.plain_operations(operations, approvals)
    kept["links"] = _links_of(operations)
    return _written(kept)


def _written(kept: dict[str, Json]) -> bytes:
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode() + b"\n"


def _links_of(operations: Mapping[str, Operation]) -> dict[str, Json]:
    return {
        operation_id: {
            "nodes": list(operation.links.nodes),
            "undoes": operation.links.undoes,
            "completed": operation.links.completed,
            "blocking": str(operation.links.blocking),
            "undone": str(operation.links.undone),
        }
        for operation_id, operation in operations.items()
        if operation.links != NO_LINKS
    }


def read_snapshot(data: bytes) -> State:
    """Return the state that ``snapshot_bytes`` wrote. Raises MissionInput for anything else."""
    whole = _document(data)
    plain = whole.inner("state")
    operations = _operations(plain, whole.inner("links"))
    approvals = _approvals(plain)
    parts = Parts(
        parse_contract(plain.plain_object("contract")),
        now_ms=plain.count("now"),
        spent=_sum(plain, "spent"),
        reserved=_sum(plain, "reserved"),
        events=plain.count("events"),
        stopped=_optional(plain, "stopped", _stop),
        runs=_runs(plain, whole.inner("busy"), operations),
        grants=_grants(plain),
        approvals=_map((approval.id, approval) for approval in approvals),
        words=_words(approvals),
        operations=operations,
        attempts=_map(
            (attempt.id, operation_id)
            for operation_id, operation in operations.items()
            for attempt in operation.attempts
        ),
        graphs=_map((name, read_graph(graph)) for name, graph in _each(plain, "graphs")),
        triggers=_map((name, _trigger(trigger)) for name, trigger in _each(plain, "triggers")),
    )
    return State(parts)


def read_retired(data: bytes) -> Retired:
    """Return what ``retired_bytes`` wrote. Raises MissionInput for anything else."""
    whole = _document(data)
    approvals = _approvals(whole)
    operations = _operations(whole, whole.inner("links"))
    operation_id = next(iter(operations), None)
    if operation_id is None:
        whole.fail("operations", "has none")
    words = _words(approvals).get(operation_id)
    return Retired(operation_id, operations[operation_id], tuple(approvals), words)


# --- reading -------------------------------------------------------------------------------------


def _document(data: bytes) -> Members:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise SnapshotError("", "is no JSON") from None
    if not isinstance(value, dict):
        raise SnapshotError("", "must be an object")
    return Members(value, "", SnapshotError)


def _map(items: Iterable[tuple[str, V]]) -> PersistentMap[V]:
    made: PersistentMap[V] = PersistentMap()
    for key, value in items:
        made = made.set(key, value)
    return made


def _each(members: Members, name: str) -> Iterator[tuple[str, Members]]:
    table = members.inner(name)
    for key in members.plain_object(name):
        yield key, table.inner(key)


def _items(members: Members, name: str) -> Iterator[Members]:
    for index, value in enumerate(members.items(name)):
        yield members.item(name, index, value)


def _optional(members: Members, name: str, read: Callable[[Members], V]) -> V | None:
    return None if members.raw(name) is None else read(members.inner(name))


def _name(members: Members, name: str) -> str | None:
    return None if members.raw(name) is None else members.name(name)


def _frozen(members: Members, name: str) -> FrozenJson | None:
    value = members.raw(name)
    return None if value is None else freeze(value)


def _sum(members: Members, name: str) -> Amount:
    value = members.raw(name)
    try:
        return read_sum(value if isinstance(value, str) else "")
    except ValueError as error:
        members.fail(name, str(error))


def _stop(stop: Members) -> Stop:
    return Stop(stop.evidence("reason"), stop.name("by"), stop.count("at"))


def _approvals(plain: Members) -> list[Approval]:
    """Return the approvals in the order in which they were said."""
    found = [
        Approval(
            id=approval.name("id"),
            operation_id=approval.name("operationId"),
            action_digest=approval.name("actionDigest"),
            amount_max=approval.amount("maxAmount"),
            approver=approval.name("approver"),
            decision=approval.word("decision", Decision),
            expires_at_ms=approval.count("expiresAt"),
            seq=approval.count("seq"),
        )
        for _, approval in _each(plain, "approvals")
    ]
    return sorted(found, key=lambda approval: approval.seq)


def _words(approvals: list[Approval]) -> PersistentMap[Words]:
    words: PersistentMap[Words] = PersistentMap()
    for approval in approvals:
        said = with_word(words.get(approval.operation_id), approval)
        words = words.set(approval.operation_id, said)
    return words


def _operations(plain: Members, links: Members) -> PersistentMap[Operation]:
    attempts = plain.inner("attempts")
    operations: PersistentMap[Operation] = PersistentMap()
    for operation_id, operation in _each(plain, "operations"):
        admission = Admission(
            operation.name("runId"),
            operation.name("grantId"),
            operation.name("subject"),
            read_action(operation.inner("action")),
            _name(operation, "approvalId"),
            _name(operation, "compensates"),
        )
        made = tuple(_attempt(name, attempts.inner(name)) for name in operation.names("attempts"))
        if not made:
            operation.fail("attempts", "is empty")
        applied = sum(a.effect is Effect.CONFIRMED_APPLIED for a in made)
        statuses = [a.status for a in made]
        operations = operations.set(
            operation_id,
            Operation(
                admission,
                made,
                _links(links.inner(operation_id)) if links.has(operation_id) else NO_LINKS,
                applied,
                statuses.count(AttemptStatus.SETTLED),
                statuses.count(AttemptStatus.RELEASED),
            ),
        )
    return operations


def _links(links: Members) -> Links:
    return Links(
        nodes=links.names("nodes"),
        undoes=_name(links, "undoes"),
        completed=links.flag("completed"),
        blocking=links.count("blocking"),
        undone=links.count("undone"),
    )


def _attempt(attempt_id: str, attempt: Members) -> Attempt:
    return Attempt(
        attempt_id,
        attempt.amount("amount"),
        attempt.word("status", AttemptStatus),
        epoch=None if attempt.raw("epoch") is None else attempt.count("epoch"),
        node_id=_name(attempt, "nodeId"),
        effect=None if attempt.raw("effect") is None else attempt.word("effect", Effect),
        actual_cost=None if attempt.raw("actualCost") is None else attempt.amount("actualCost"),
        evidence=_frozen(attempt, "evidence"),
        reviews=tuple(
            ReviewEntry(
                review.name("reviewer"),
                review.word("decision", Finding),
                review.amount("actualCost"),
                review.evidence("evidence"),
                review.count("at"),
            )
            for review in _items(attempt, "reviews")
        ),
        corrections=tuple(
            Correction(
                correction.word("effect", Effect),
                correction.amount("actualCost"),
                correction.name("by"),
                correction.evidence("evidence"),
                correction.count("at"),
            )
            for correction in _items(attempt, "corrections")
        ),
    )


def _runs(
    plain: Members, busy: Members, operations: PersistentMap[Operation]
) -> PersistentMap[Run]:
    unknown: Counter[str] = Counter()
    prepared: dict[str, list[str]] = {}
    for operation in operations.values():
        run_id = operation.admission.run_id
        unknown[run_id] += operation.dispatched
        if operation.prepared:
            prepared.setdefault(run_id, []).append(operation.attempts[-1].id)
    return _map(
        (
            run_id,
            Run(
                criteria=_map(
                    (name, Criterion(criterion.flag("met"), _frozen(criterion, "evidence")))
                    for name, criterion in _each(run, "criteria")
                ),
                status=run.word("status", RunStatus),
                epoch=run.count("epoch"),
                owner=_name(run, "owner"),
                graph_id=_name(run, "graphId"),
                nodes=_nodes(run, busy.inner(run_id) if busy.has(run_id) else None),
                unknown=unknown[run_id],
                prepared=_map((attempt_id, None) for attempt_id in prepared.get(run_id, ())),
            ),
        )
        for run_id, run in _each(plain, "runs")
    )


def _nodes(run: Members, busy: Members | None) -> PersistentMap[NodeState]:
    return _map(
        (
            name,
            NodeState(
                node.word("status", NodeStatus),
                _name(node, "operationId"),
                _optional(node, "result", _result),
                busy.count(name) if busy is not None and busy.has(name) else 0,
            ),
        )
        for name, node in _each(run, "nodes")
    )


def _result(result: Members) -> NodeResult:
    names = ("operationId", "originalOperationId", "approvalId")
    return NodeResult(*(result.name(name) if result.has(name) else None for name in names))


def _grants(plain: Members) -> PersistentMap[Grant]:
    grants = _map(
        (
            grant_id,
            Grant(
                read_terms(grant),
                parent_id=_name(grant, "parentGrantId"),
                revoked=grant.flag("revoked"),
                reason=_frozen(grant, "reason"),
                spent=_sum(grant, "spent"),
                reserved=_sum(grant, "reserved"),
            ),
        )
        for grant_id, grant in _each(plain, "grants")
    )
    for grant_id, grant in grants.items():
        if grant.parent_id is not None:
            parent = grants[grant.parent_id]
            children = parent.children.set(grant_id, None)
            grants = grants.set(grant.parent_id, parent._replace(children=children))
    return grants


def _trigger(trigger: Members) -> Trigger:
    firings = trigger.inner("firings")
    return Trigger(_map((name, firings.name(name)) for name in trigger.plain_object("firings")))
