"""Graphs: what may be dispatched under a node, and what completes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mission_desk import Desk, check_derived, graph, node

if TYPE_CHECKING:
    from counterfoil.mission import State

NOT_APPLIED = {"effect": "CONFIRMED_NOT_APPLIED", "actualCost": "0"}


def on(*nodes: dict[str, Any], **contract: Any) -> Desk:
    desk = Desk.ready(**contract)
    desk.do("registerGraph", graph=graph(*nodes))
    desk.do("attachGraph")
    return desk


@pytest.fixture
def work() -> Desk:
    """Two tasks side by side, a reconciliation and a compensation behind the first."""
    return on(
        node("task", "TASK"),
        node("other", "TASK"),
        node("reconcile", "RECONCILIATION", "task"),
        node("undo", "COMPENSATION", "reconcile"),
        node("end", "END", "undo"),
    )


def complete(desk: Desk, node_id: str, **result: str) -> State:
    return desk.do("completeNode", nodeId=node_id, result=result)


def mismatch(desk: Desk, node_id: str, **result: str) -> bool:
    return desk.refused("completeNode", nodeId=node_id, result=result) == "result_mismatch"


def test_a_node_without_a_graph_is_unknown(desk: Desk) -> None:
    desk.do("admit")
    assert desk.refused("dispatch", nodeId="task") == "node_unknown"
    assert desk.refused("completeNode") == "node_unknown"


def test_a_node_is_busy_until_the_operation_under_it_is_known_to_have_failed(work: Desk) -> None:
    work.sent(nodeId="task")
    work.do("admit", operationId="p", attemptId="b")
    assert work.refused("dispatch", attemptId="b", nodeId="task") == "node_busy"
    work.do("settle", **NOT_APPLIED)
    work.do("dispatch", attemptId="b", nodeId="task")
    assert work.run()["nodes"]["task"]["operationId"] == "p"
    check_derived(work.state)


def test_a_correction_makes_a_node_busy_again(work: Desk) -> None:
    work.failed(nodeId="task")
    work.do("correct", effect="CONFIRMED_APPLIED", actualCost="1")
    work.do("admit", operationId="p", attemptId="b")
    assert work.refused("dispatch", attemptId="b", nodeId="task") == "node_busy"
    check_derived(work.state)


def test_a_retry_goes_out_under_the_same_node(work: Desk) -> None:
    work.failed(nodeId="task")
    work.do("retry")
    work.do("dispatch", attemptId="a2", nodeId="task")
    check_derived(work.state)


def test_a_dispatch_checks_the_money_before_the_node(work: Desk) -> None:
    work.do("grant", grant_id="small", grant_limit="10")
    work.do("admit", operationId="p", attemptId="b", grantId="small", amount="0")
    work.sent(grantId="small", nodeId="task")
    work.do("settle", actualCost="11")
    assert work.refused("dispatch", attemptId="b") == "grant_limit_exceeded"


def test_a_task_is_completed_by_what_was_applied_under_it(work: Desk) -> None:
    work.sent(nodeId="task")
    assert mismatch(work, "task", operationId="o")
    work.do("settle")
    assert mismatch(work, "other", operationId="o")
    complete(work, "task", operationId="o")
    assert work.run()["nodes"]["task"] == {
        "status": "DONE",
        "operationId": "o",
        "result": {"operationId": "o"},
    }


def test_a_task_may_be_completed_by_what_was_dispatched_before_the_graph(desk: Desk) -> None:
    desk.applied()
    desk.do("registerGraph")
    desk.do("attachGraph")
    complete(desk, "task", operationId="o")


def test_an_operation_completes_one_task(desk: Desk) -> None:
    desk.applied()
    desk.do("registerGraph", graph=graph(node("1", "TASK"), node("2", "TASK"), node("e", "END")))
    desk.do("attachGraph")
    complete(desk, "1", operationId="o")
    assert mismatch(desk, "2", operationId="o")


def test_the_attempt_that_was_applied_says_which_task_is_done(work: Desk) -> None:
    work.failed(nodeId="task")
    work.do("retry")
    work.do("dispatch", attemptId="a2", nodeId="other")
    work.do("settle", attemptId="a2")
    assert mismatch(work, "task", operationId="o")
    complete(work, "other", operationId="o")


def test_an_operation_of_another_run_completes_nothing(work: Desk) -> None:
    work.do("startRun", runId="r2")
    work.applied(runId="r2")
    assert mismatch(work, "task", operationId="o")


def test_an_operation_nobody_admitted_is_unknown(work: Desk) -> None:
    code = work.refused("completeNode", result={"operationId": "x"})
    assert code == "operation_unknown"


@pytest.mark.parametrize("effect", ["CONFIRMED_APPLIED", "CONFIRMED_NOT_APPLIED"])
def test_a_reconciliation_takes_either_answer(effect: str) -> None:
    desk = on(
        node("wait", "APPROVAL"),
        node("task", "TASK"),
        node("reconcile", "RECONCILIATION", "task"),
        node("end", "END"),
    )
    desk.failed(nodeId="task")
    desk.applied("p", "b", nodeId="task")
    complete(desk, "task", operationId="p")
    if effect == "CONFIRMED_APPLIED":
        desk.do("correct", effect=effect, actualCost="1")
    complete(desk, "reconcile", operationId="o")
    assert desk.operation()["disposition"] == effect


def test_a_reconciliation_is_about_a_node_right_before_it(work: Desk) -> None:
    work.applied(nodeId="task")
    work.applied("p", "b", nodeId="other")
    complete(work, "task", operationId="o")
    assert mismatch(work, "reconcile", operationId="p")
    complete(work, "reconcile", operationId="o")


def reconciled(desk: Desk) -> Desk:
    desk.applied(nodeId="task")
    complete(desk, "task", operationId="o")
    complete(desk, "reconcile", operationId="o")
    return desk


def test_a_compensation_needs_two_applied_operations(work: Desk) -> None:
    reconciled(work)
    assert mismatch(work, "undo", operationId="o", originalOperationId="o")
    work.sent("u", "u1", nodeId="undo")
    assert mismatch(work, "undo", operationId="u", originalOperationId="o")
    work.do("settle", attemptId="u1")
    complete(work, "undo", operationId="u", originalOperationId="o")


def test_a_compensation_of_something_else_does_not_complete_a_node(work: Desk) -> None:
    reconciled(work)
    work.applied("p", "b", nodeId="other")
    work.do("compensate", originalOperationId="p")
    work.do("dispatch", attemptId="u1", nodeId="undo")
    work.do("settle", attemptId="u1")
    assert mismatch(work, "undo", operationId="u", originalOperationId="o")
    complete(work, "undo", operationId="u", originalOperationId="p")
    check_derived(work.state)


def test_a_plain_operation_from_elsewhere_is_no_compensation(work: Desk) -> None:
    reconciled(work)
    work.applied("p", "b", nodeId="other")
    assert mismatch(work, "undo", operationId="p", originalOperationId="o")


def test_what_was_compensated_is_not_compensated_by_a_node_again(work: Desk) -> None:
    reconciled(work)
    work.do("startRun", runId="r2")
    work.do("compensate", runId="r2", operationId="v", attemptId="v1")
    work.do("dispatch", attemptId="v1")
    work.do("settle", attemptId="v1")
    work.applied("u", "u1", nodeId="undo")
    assert mismatch(work, "undo", operationId="u", originalOperationId="o")


def test_an_original_nobody_admitted_is_unknown(work: Desk) -> None:
    reconciled(work)
    result = {"operationId": "o", "originalOperationId": "x"}
    assert work.refused("completeNode", nodeId="undo", result=result) == "operation_unknown"


def test_a_result_has_exactly_the_members_of_its_kind(work: Desk) -> None:
    work.applied(nodeId="task")
    assert mismatch(work, "task")
    assert mismatch(work, "task", operationId="o", approvalId="ok")
    assert mismatch(work, "task", operationId="o", originalOperationId="o")


def waiting() -> Desk:
    desk = on(node("ok", "APPROVAL"), node("task", "TASK", "ok"), node("end", "END", "task"))
    desk.do("admit")
    return desk


def test_an_approval_node_is_done_by_the_last_word_of_somebody_else() -> None:
    desk = waiting()
    assert mismatch(desk, "ok", approvalId="ok")
    desk.do("approve")
    complete(desk, "ok", approvalId="ok")
    assert desk.run()["nodes"]["ok"]["result"] == {"approvalId": "ok"}
    desk.do("dispatch", nodeId="task")


@pytest.mark.parametrize(
    "members",
    [
        {"approval_decision": "REJECTED"},
        {"approval_expiresAt": "10"},
        {"approval_approver": "agent"},
    ],
)
def test_an_approval_that_carries_nothing_completes_nothing(members: dict[str, Any]) -> None:
    desk = waiting()
    desk.do("approve", **members)
    assert mismatch(desk, "ok", approvalId="ok")


def test_an_approval_that_is_not_the_last_word_completes_nothing() -> None:
    desk = waiting()
    desk.do("approve")
    desk.do("approve", approval_id="again")
    assert mismatch(desk, "ok", approvalId="ok")
    desk.do("approve", approval_id="mine", approval_approver="agent")
    complete(desk, "ok", approvalId="again")


def test_an_approval_for_another_runs_operation_completes_nothing() -> None:
    desk = waiting()
    desk.do("startRun", runId="r2")
    desk.do("admit", operationId="p", attemptId="b", runId="r2")
    desk.do("approve", approval_operationId="p")
    assert mismatch(desk, "ok", approvalId="ok")


def test_the_end_is_completed_with_nothing_and_need_not_be(work: Desk) -> None:
    reconciled(work)
    work.applied("u", "u1", nodeId="undo")
    assert work.refused("finishRun") == "graph_not_done"
    assert work.refused("completeNode", nodeId="end", result={}) == "node_not_ready"
    complete(work, "undo", operationId="u", originalOperationId="o")
    complete(work, "end")
    assert work.run()["nodes"]["end"] == {"status": "DONE", "operationId": None, "result": {}}
    work.do("finishRun")


def test_a_run_is_complete_when_all_that_the_end_waits_for_is_done() -> None:
    desk = on(node("task", "TASK"), node("aside", "TASK"), node("end", "END", "task"))
    desk.applied(nodeId="task")
    complete(desk, "task", operationId="o")
    desk.do("finishRun")


def test_nodes_can_be_completed_after_the_stop(work: Desk) -> None:
    work.applied(nodeId="task")
    work.do("stopMission")
    complete(work, "task", operationId="o")


def test_a_graph_reads_as_it_was_registered(work: Desk) -> None:
    work.do("registerGraph", graph=graph(node("e", "END", retries=3), name="second"))
    assert work.state["graphs"]["second"] == graph(  # type: ignore[index]
        node("e", "END", retries=3), name="second"
    )
