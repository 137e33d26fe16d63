"""Every code, raised once by the shortest way there. The nuances are in the files beside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mission_desk import ACTION, Desk

from counterfoil.mission import Code

if TYPE_CHECKING:
    from collections.abc import Callable

C = Code
ADMIT: dict[Code, Callable[[Desk], Any]] = {
    C.OPERATION_EXISTS: lambda d: d.do("admit") and d.refused("admit", attemptId="b"),
    C.ATTEMPT_EXISTS: lambda d: d.do("admit") and d.refused("admit", operationId="p"),
    C.RUN_UNKNOWN: lambda d: d.refused("admit", runId="x"),
    C.RUN_CLOSED: lambda d: d.do("finishRun") and d.refused("admit"),
    C.EPOCH_REQUIRED: lambda d: d.do("claimRun") and d.refused("admit"),
    C.STALE_EPOCH: lambda d: d.do("claimRun") and d.refused("admit", epoch="1"),
    C.DEADLINE_PASSED: lambda d: d.refused("admit", now=10_000),
    C.POLICY_DENIED: lambda d: d.refused("admit", policy="DENY"),
    C.MANDATORY_CHECKS_FAILED: lambda d: d.refused("admit", mandatoryChecksOk=False),
    C.AUTHORIZATION_STALE: lambda d: d.refused("admit", now=21, authorizationCheckedAt="10"),
    C.AUTHORIZATION_IN_FUTURE: lambda d: d.refused("admit", authorizationCheckedAt="11"),
    C.GRANT_UNKNOWN: lambda d: d.refused("admit", grantId="x"),
    C.GRANT_REVOKED: lambda d: d.do("revokeGrant") and d.refused("admit"),
    C.GRANT_NOT_YET_VALID: lambda d: (
        d.do("grant", grant_id="late", grant_notBefore="11") and d.refused("admit", grantId="late")
    ),
    C.GRANT_EXPIRED: lambda d: d.refused("admit", now=9000),
    C.SUBJECT_MISMATCH: lambda d: d.refused("admit", subject="other"),
    C.ACTION_NOT_ALLOWED: lambda d: d.refused("admit", action={**ACTION, "capability": "read"}),
    C.RESOURCE_NOT_ALLOWED: lambda d: d.refused("admit", action={**ACTION, "resource": "wall"}),
    C.APPROVAL_REJECTED: lambda d: (
        d.do("approve", approval_decision="REJECTED") and d.refused("admit")
    ),
    C.GRANT_LIMIT_EXCEEDED: lambda d: (
        d.do("grant", grant_id="small", grant_limit="9") and d.refused("admit", grantId="small")
    ),
    C.BUDGET_EXCEEDED: lambda d: (
        d.do("grant", grant_id="big", grant_limit="999")
        and d.refused("admit", grantId="big", amount="100.1")
    ),
}


@pytest.mark.parametrize("code", ADMIT)
def test_an_admission_is_refused_with(code: Code) -> None:
    assert ADMIT[code](Desk.ready()) == code


APPROVED: dict[Code, Callable[[Desk], Any]] = {
    C.APPROVAL_MISSING: lambda d: d.refused("admit"),
    C.APPROVAL_SELF: lambda d: d.do("approve", approval_approver="agent") and d.refused("admit"),
    C.APPROVAL_EXPIRED: lambda d: d.do("approve") and d.refused("admit", now=5000),
    C.APPROVAL_AMOUNT_EXCEEDED: lambda d: d.do("approve") and d.refused("admit", amount="50.01"),
}


@pytest.mark.parametrize("code", APPROVED)
def test_an_admission_that_needs_approval_is_refused_with(code: Code) -> None:
    assert APPROVED[code](Desk.ready(requiresApproval=True)) == code


ATTEMPTS: dict[Code, Callable[[Desk], Any]] = {
    C.ATTEMPT_UNKNOWN: lambda d: d.refused("dispatch"),
    C.OPERATION_UNKNOWN: lambda d: d.refused("retry"),
    C.ATTEMPT_NOT_PREPARED: lambda d: d.sent() and d.refused("dispatch"),
    C.ATTEMPT_NOT_DISPATCHED: lambda d: d.do("admit") and d.refused("settle"),
    C.ATTEMPT_NOT_SETTLED: lambda d: d.sent() and d.refused("correct"),
    C.INCONSISTENT_SETTLEMENT: lambda d: d.applied() and d.refused("settle", actualCost="4"),
    C.UNDER_REVIEW: lambda d: (
        d.sent() and d.do("settle", effect="UNKNOWN", actualCost="0") and d.refused("redeliver")
    ),
    C.EFFECT_UNKNOWN: lambda d: d.sent() and d.refused("retry"),
    C.ALREADY_APPLIED: lambda d: d.applied() and d.refused("retry"),
    C.ATTEMPT_OPEN: lambda d: d.do("admit") and d.refused("retry"),
    C.ATTEMPTS_EXHAUSTED: lambda d: (
        d.failed()
        and d.do("retry")
        and d.do("dispatch", attemptId="a2")
        and d.do("settle", attemptId="a2", effect="CONFIRMED_NOT_APPLIED", actualCost="0")
        and d.refused("retry", attemptId="a3")
    ),
    C.ORIGINAL_NOT_APPLIED: lambda d: d.failed() and d.refused("compensate"),
    C.ALREADY_COMPENSATED: lambda d: (
        d.applied()
        and d.do("compensate")
        and d.refused("compensate", operationId="v", attemptId="v1")
    ),
    C.ORIGINAL_UNSETTLED: lambda d: (
        d.failed()
        and d.do("retry")
        and d.do("dispatch", attemptId="a2")
        and d.do("correct", effect="CONFIRMED_APPLIED", actualCost="1")
        and d.refused("compensate")
    ),
}


@pytest.mark.parametrize("code", ATTEMPTS)
def test_a_step_of_an_attempt_is_refused_with(code: Code) -> None:
    assert ATTEMPTS[code](Desk.ready()) == code


OTHERS: dict[Code, Callable[[Desk], Any]] = {
    C.FEATURE_DISABLED: lambda _: Desk(features=[]).refused("registerGraph"),
    C.TIME_WENT_BACK: lambda d: d.refused("startRun", now=9, runId="r2"),
    C.MISSION_STOPPED: lambda d: d.do("stopMission") and d.refused("stopMission"),
    C.RUN_EXISTS: lambda d: d.refused("startRun"),
    C.GRANT_EXISTS: lambda d: d.refused("grant"),
    C.DELEGATION_NOT_ALLOWED: lambda d: (
        d.do("grant", grant_id="leaf", grant_canDelegate=False)
        and d.refused("delegate", parentGrantId="leaf")
    ),
    C.DELEGATION_TOO_WIDE: lambda d: d.refused("delegate", grant_limit="100.01"),
    C.APPROVAL_EXISTS: lambda d: d.do("approve") and d.refused("approve"),
    C.GRAPH_EXISTS: lambda d: d.do("registerGraph") and d.refused("registerGraph"),
    C.GRAPH_UNKNOWN: lambda d: d.refused("attachGraph"),
    C.GRAPH_ATTACHED: lambda d: (
        d.do("registerGraph") and d.do("attachGraph") and d.refused("attachGraph")
    ),
    C.CRITERION_UNKNOWN: lambda d: d.refused("recordCriterion", criterion="x"),
    C.CRITERIA_NOT_MET: lambda _: Desk.ready(criteria=["review"]).refused("finishRun"),
    C.TRIGGER_EXISTS: lambda d: d.do("registerTrigger") and d.refused("registerTrigger"),
    C.TRIGGER_UNKNOWN: lambda d: d.refused("fireTrigger"),
    C.FIRING_EXISTS: lambda d: (
        d.do("registerTrigger") and d.do("fireTrigger") and d.refused("fireTrigger", runId="r3")
    ),
}


@pytest.mark.parametrize("code", OTHERS)
def test_a_command_about_the_mission_is_refused_with(code: Code) -> None:
    assert OTHERS[code](Desk.ready()) == code


def attached() -> Desk:
    desk = Desk.ready()
    desk.do("registerGraph")
    desk.do("attachGraph")
    return desk


NODES: dict[Code, Callable[[Desk], Any]] = {
    C.GRAPH_NOT_DONE: lambda d: d.refused("finishRun"),
    C.NODE_REQUIRED: lambda d: d.do("admit") and d.refused("dispatch"),
    C.NODE_UNKNOWN: lambda d: d.do("admit") and d.refused("dispatch", nodeId="x"),
    C.NODE_KIND: lambda d: d.do("admit") and d.refused("dispatch", nodeId="end"),
    C.NODE_DONE: lambda d: (
        d.applied(nodeId="task") and d.do("completeNode") and d.refused("completeNode")
    ),
    C.NODE_NOT_READY: lambda d: d.do("admit") and d.refused("dispatch", nodeId="undo"),
    C.NODE_BUSY: lambda d: (
        d.sent(nodeId="task")
        and d.do("admit", operationId="p", attemptId="b")
        and d.refused("dispatch", attemptId="b", nodeId="task")
    ),
    C.RESULT_MISMATCH: lambda d: d.refused("completeNode", result={}),
}


@pytest.mark.parametrize("code", NODES)
def test_a_step_in_a_graph_is_refused_with(code: Code) -> None:
    assert NODES[code](attached()) == code


def test_these_are_all_the_codes() -> None:
    tables = (ADMIT, APPROVED, ATTEMPTS, OTHERS, NODES)
    raised = [code for table in tables for code in table]
    assert sorted(raised) == sorted(Code)
