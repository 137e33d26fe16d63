"""Graphs in runs: which node an attempt may be dispatched under, and what completes a node."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from counterfoil.mission.authority import check_run
from counterfoil.mission.commands import (
    AttachGraph,
    CompleteNode,
    GraphCommand,
    NodeResult,
    RegisterGraph,
)
from counterfoil.mission.errors import Code, CommandRejected
from counterfoil.mission.state import NodeState, Operation, Run
from counterfoil.mission.vocabulary import (
    AttemptStatus,
    Decision,
    Disposition,
    Effect,
    NodeKind,
    NodeStatus,
)

if TYPE_CHECKING:
    from counterfoil.mission.draft import Draft
    from counterfoil.mission.graph import GraphNode

# kind -> the members that its result has, and no others
_RESULT_MEMBERS: dict[NodeKind, tuple[bool, bool, bool]] = {
    # (operationId, originalOperationId, approvalId)
    NodeKind.TASK: (True, False, False),
    NodeKind.RECONCILIATION: (True, False, False),
    NodeKind.COMPENSATION: (True, True, False),
    NodeKind.APPROVAL: (False, False, True),
    NodeKind.END: (False, False, False),
}
_DISPATCHED_UNDER = (NodeKind.TASK, NodeKind.COMPENSATION)


def apply(draft: Draft, command: GraphCommand) -> None:
    """Register or attach a graph, or complete a node; CommandRejected where it may not be."""
    match command:
        case RegisterGraph(graph):
            if graph.id in draft.graphs:
                raise CommandRejected(
                    Code.GRAPH_EXISTS, f"graph {graph.id!r} exists; use another id"
                )
            draft.graphs = draft.graphs.set(graph.id, graph)
        case AttachGraph():
            _attach(draft, command)
        case CompleteNode():
            _complete(draft, command)
        case _:
            assert_never(command)


def _attach(draft: Draft, command: AttachGraph) -> None:
    run = check_run(draft, command.run_id, command.epoch)
    graph = draft.graphs.get(command.graph_id)
    if graph is None:
        raise CommandRejected(Code.GRAPH_UNKNOWN, f"no graph {command.graph_id!r}; register it")
    if run.graph_id is not None:
        raise CommandRejected(
            Code.GRAPH_ATTACHED, f"run {command.run_id!r} follows graph {run.graph_id!r}"
        )
    nodes = run.nodes
    for name in graph.nodes:
        nodes = nodes.set(name, NodeState())
    draft.put_run(command.run_id, run._replace(graph_id=graph.id, nodes=nodes))


def _node_of(draft: Draft, run: Run, node_id: str) -> GraphNode:
    nodes = {} if run.graph_id is None else draft.graphs[run.graph_id].nodes
    if node_id not in nodes:
        raise CommandRejected(Code.NODE_UNKNOWN, f"the run's graph has no node {node_id!r}")
    return nodes[node_id]


def _check_not_done(run: Run, node_id: str) -> None:
    if run.nodes[node_id].status is NodeStatus.DONE:
        raise CommandRejected(Code.NODE_DONE, f"node {node_id!r} is done")


def _check_ready(run: Run, node: GraphNode) -> None:
    waits = [name for name in node.depends_on if run.nodes[name].status is not NodeStatus.DONE]
    if waits:
        raise CommandRejected(
            Code.NODE_NOT_READY, f"node {node.id!r} waits for {', '.join(map(repr, waits))}"
        )


def check_node(draft: Draft, run: Run, node_id: str | None) -> tuple[str, NodeState]:
    """Return the node under which an attempt may be dispatched now, with its id."""
    if node_id is None:
        raise CommandRejected(
            Code.NODE_REQUIRED, f"the run follows graph {run.graph_id!r}; say under which node"
        )
    node = _node_of(draft, run, node_id)
    if node.kind not in _DISPATCHED_UNDER:
        raise CommandRejected(
            Code.NODE_KIND, f"node {node_id!r} is {node.kind.value}: nothing is dispatched under it"
        )
    _check_not_done(run, node_id)
    _check_ready(run, node)
    state = run.nodes[node_id]
    # An operation that may be dispatched now is not counted here itself: it is new to the node,
    # or known to have left no effect.
    if state.busy:
        raise CommandRejected(
            Code.NODE_BUSY, f"another operation under node {node_id!r} may have an effect"
        )
    return node_id, state


def graph_done(draft: Draft, run: Run) -> bool:
    """Say whether everything that END waits for is DONE; true without a graph."""
    if run.graph_id is None:
        return True
    end = draft.graphs[run.graph_id].end
    return all(run.nodes[name].status is NodeStatus.DONE for name in end.depends_on)


# --- completing ----------------------------------------------------------------------------------


def _complete(draft: Draft, command: CompleteNode) -> None:
    run = check_run(draft, command.run_id, command.epoch)
    node = _node_of(draft, run, command.node_id)
    _check_not_done(run, node.id)
    _check_ready(run, node)
    result = command.result
    there = (
        result.operation_id is not None,
        result.original_operation_id is not None,
        result.approval_id is not None,
    )
    if there != _RESULT_MEMBERS[node.kind]:
        raise _mismatch(f"a {node.kind.value} node has other members in its result")
    match node.kind:
        case NodeKind.TASK:
            operation = _own_operation(draft, command)
            _check_task(node, operation)
            _mark_completed(draft, result, operation)
        case NodeKind.RECONCILIATION:
            _check_reconciliation(run, node, result, _own_operation(draft, command))
        case NodeKind.COMPENSATION:
            operation = _own_operation(draft, command)
            _check_compensation(draft, node, result, operation)
            _mark_completed(draft, result, operation)
        case NodeKind.APPROVAL:
            _check_approval(draft, command)
        case NodeKind.END:
            pass
        case _:
            assert_never(node.kind)
    # Marking may have moved the run's own counts: read it again.
    run = draft.runs[command.run_id]
    state = run.nodes[node.id]
    done = state._replace(
        status=NodeStatus.DONE,
        operation_id=result.operation_id or state.operation_id,
        result=result,
    )
    draft.put_run(command.run_id, run._replace(nodes=run.nodes.set(node.id, done)))


def _mismatch(detail: str) -> CommandRejected:
    return CommandRejected(Code.RESULT_MISMATCH, detail)


def _known(draft: Draft, operation_id: str | None) -> Operation:
    operation = None if operation_id is None else draft.operation(operation_id)
    if operation is None:
        raise CommandRejected(Code.OPERATION_UNKNOWN, f"no operation {operation_id!r}")
    return operation


def _own_operation(draft: Draft, command: CompleteNode) -> Operation:
    operation = _known(draft, command.result.operation_id)
    if command.result.original_operation_id is not None:
        _known(draft, command.result.original_operation_id)
    if operation.admission.run_id != command.run_id:
        raise _mismatch(f"the operation belongs to run {operation.admission.run_id!r}")
    return operation


def _mark_completed(draft: Draft, result: NodeResult, operation: Operation) -> None:
    assert result.operation_id is not None, "the result has its kind's members"
    # From now on a plain operation that completed a COMPENSATION counts as one everywhere.
    undoes = operation.links.undoes or result.original_operation_id
    links = operation.links._replace(completed=True, undoes=undoes)
    draft.put(result.operation_id, operation, operation._replace(links=links))


def _applied_under(operation: Operation) -> set[str | None]:
    """Return the nodes (None: no node) under which an attempt was dispatched and applied."""
    return {
        attempt.node_id
        for attempt in operation.attempts
        if attempt.status is AttemptStatus.SETTLED and attempt.effect is Effect.CONFIRMED_APPLIED
    }


def _check_task(node: GraphNode, operation: Operation) -> None:
    if not operation.applied:
        raise _mismatch("the operation was not applied")
    if operation.links.completed:
        raise _mismatch("the operation completed another node")
    if not _applied_under(operation) & {node.id, None}:
        raise _mismatch("the operation was dispatched under another node")


def _check_reconciliation(
    run: Run, node: GraphNode, result: NodeResult, operation: Operation
) -> None:
    if operation.disposition not in (
        Disposition.CONFIRMED_APPLIED,
        Disposition.CONFIRMED_NOT_APPLIED,
    ):
        raise _mismatch("the operation is not settled")
    for name in node.depends_on:
        done_with = run.nodes[name].result
        if name in operation.links.nodes:
            return
        if done_with is not None and done_with.operation_id == result.operation_id:
            return
    raise _mismatch("the operation belongs to no node that this one waits for")


def _check_compensation(
    draft: Draft, node: GraphNode, result: NodeResult, operation: Operation
) -> None:
    original_id = result.original_operation_id
    original = _known(draft, original_id)
    if result.operation_id == original_id:
        raise _mismatch("an operation does not compensate itself")
    if not operation.applied or not original.applied:
        raise _mismatch("both operations must have been applied")
    if operation.links.completed:
        raise _mismatch("the operation completed another node")
    if operation.links.undoes is None:
        if node.id not in _applied_under(operation):
            raise _mismatch("the operation was not dispatched under this node")
    elif operation.links.undoes != original_id:
        raise _mismatch(f"the operation compensates {operation.links.undoes!r}")
    if original.links.undone > (operation.links.undoes == original_id):
        raise _mismatch("another operation has compensated the original")


def _check_approval(draft: Draft, command: CompleteNode) -> None:
    approval_id = command.result.approval_id
    approval = None if approval_id is None else draft.approval(approval_id)
    if approval is None:
        raise _mismatch(f"no approval {approval_id!r}")
    operation = _known(draft, approval.operation_id)
    if operation.admission.run_id != command.run_id:
        raise _mismatch("the approval is for an operation of another run")
    if approval.action_digest != operation.admission.action.digest:
        raise _mismatch("the approval is for another action")
    if approval.decision is not Decision.APPROVED:
        raise _mismatch("the operation was rejected")
    if approval.approver == operation.admission.subject:
        raise _mismatch("the subject approved itself")
    if draft.now_ms >= approval.expires_at_ms:
        raise _mismatch(f"the approval ended at {approval.expires_at_ms}")
    last = draft.words[approval.operation_id].last.not_by(operation.admission.subject)
    if last is None or last.id != approval.id:
        raise _mismatch("it is not the last word on the operation")
