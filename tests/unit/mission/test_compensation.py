"""Compensation: a new governed operation, one at a time, of something that was applied."""

from __future__ import annotations

from mission_desk import Desk, check_derived

OTHER = {"operationId": "v", "attemptId": "v1"}
NOT_APPLIED = {"effect": "CONFIRMED_NOT_APPLIED", "actualCost": "0"}


def begun(desk: Desk) -> Desk:
    desk.applied()
    desk.do("compensate")
    return desk


def test_of_two_compensations_the_second_is_refused_until_the_first_is_known_to_have_failed(
    desk: Desk,
) -> None:
    begun(desk)
    assert desk.refused("compensate", **OTHER) == "already_compensated"
    desk.do("dispatch", attemptId="u1")
    assert desk.refused("compensate", **OTHER) == "already_compensated"
    desk.do("settle", attemptId="u1", effect="UNKNOWN", actualCost="0")
    assert desk.refused("compensate", **OTHER) == "already_compensated"
    desk.do("settle", attemptId="u1", **NOT_APPLIED)
    desk.do("compensate", **OTHER)
    check_derived(desk.state)


def test_a_released_compensation_makes_room_for_another(desk: Desk) -> None:
    begun(desk)
    desk.do("release", attemptId="u1")
    desk.do("compensate", **OTHER)
    assert desk.refused("retry", operationId="u", attemptId="u2") == "already_compensated"


def test_an_applied_compensation_leaves_no_room(desk: Desk) -> None:
    begun(desk)
    desk.do("dispatch", attemptId="u1")
    desk.do("settle", attemptId="u1")
    assert desk.refused("compensate", **OTHER) == "already_compensated"
    assert desk.money() == ("6", "0")


def test_a_retried_compensation_is_not_in_its_own_way(desk: Desk) -> None:
    begun(desk)
    desk.do("dispatch", attemptId="u1")
    desk.do("settle", attemptId="u1", **NOT_APPLIED)
    desk.do("retry", operationId="u", attemptId="u2")
    desk.do("dispatch", attemptId="u2")
    check_derived(desk.state)


def test_two_failed_compensations_cannot_both_go_out_again(desk: Desk) -> None:
    begun(desk)
    desk.do("dispatch", attemptId="u1")
    desk.do("settle", attemptId="u1", **NOT_APPLIED)
    desk.do("retry", operationId="u", attemptId="u2")
    desk.do("compensate", **OTHER)
    assert desk.refused("dispatch", attemptId="u2") == "already_compensated"
    desk.do("dispatch", attemptId="v1")
    assert desk.refused("dispatch", attemptId="u2") == "already_compensated"
    check_derived(desk.state)


def test_the_original_is_looked_at_again_at_dispatch_and_retry(desk: Desk) -> None:
    begun(desk)
    desk.do("correct")
    assert desk.refused("dispatch", attemptId="u1") == "original_not_applied"
    desk.do("release", attemptId="u1")
    assert desk.refused("retry", operationId="u", attemptId="u2") == "original_not_applied"


def test_an_original_with_an_unsettled_attempt_is_not_compensated(desk: Desk) -> None:
    desk.failed()
    desk.do("retry")
    desk.do("dispatch", attemptId="a2")
    desk.do("correct", effect="CONFIRMED_APPLIED", actualCost="3")
    assert desk.refused("compensate") == "original_unsettled"
    desk.do("settle", attemptId="a2", **NOT_APPLIED)
    desk.do("compensate")


def test_a_compensation_may_itself_be_compensated(desk: Desk) -> None:
    begun(desk)
    desk.do("dispatch", attemptId="u1")
    desk.do("settle", attemptId="u1")
    desk.do("compensate", **OTHER, originalOperationId="u")
    assert desk.operation("v")["compensates"] == "u"
    check_derived(desk.state)


def test_its_original_is_asked_for_before_its_own_ids(desk: Desk) -> None:
    desk.do("admit")
    same = {"operationId": "o", "attemptId": "a"}
    assert desk.refused("compensate", **same, originalOperationId="x") == "operation_unknown"
    assert desk.refused("compensate", **same) == "operation_exists"
    assert desk.refused("compensate", operationId="u", attemptId="a") == "attempt_exists"


def test_the_original_is_asked_for_before_the_money(desk: Desk) -> None:
    desk.sent()
    assert desk.refused("compensate", amount="1000") == "original_not_applied"


def test_a_plain_operation_that_completed_a_compensation_counts_as_one(desk: Desk) -> None:
    desk.do("registerGraph")
    desk.do("attachGraph")
    desk.applied(nodeId="task")
    desk.do("completeNode")
    desk.do("completeNode", nodeId="reconcile")
    desk.applied("undo", "au", nodeId="undo")
    desk.do("startRun", runId="r2")
    desk.do(
        "completeNode",
        nodeId="undo",
        result={"operationId": "undo", "originalOperationId": "o"},
    )
    assert desk.refused("compensate", runId="r2") == "already_compensated"
    assert desk.operation("undo")["compensates"] is None
    check_derived(desk.state)
