"""Approvals: for one operation and one action, by somebody else, and the last word counts."""

from __future__ import annotations

import pytest
from mission_desk import ACTION, Desk

from counterfoil.mission import action_digest

OTHER_ACTION = {**ACTION, "payload": {"value": 2}}
OTHER_DIGEST = action_digest(OTHER_ACTION)


@pytest.fixture
def strict() -> Desk:
    return Desk.ready(requiresApproval=True)


def test_one_approval_carries_one_operation(strict: Desk) -> None:
    strict.do("approve")
    strict.do("admit")
    assert strict.operation()["approvalId"] == "ok"
    assert strict.refused("admit", operationId="p", attemptId="b") == "approval_missing"


def test_an_approval_covers_one_action_only(strict: Desk) -> None:
    strict.do("approve")
    assert strict.refused("admit", action=OTHER_ACTION) == "approval_missing"


def test_no_approval_is_kept_where_none_is_required(desk: Desk) -> None:
    desk.do("approve", approval_maxAmount="1")
    desk.do("admit")
    assert desk.operation()["approvalId"] is None


def test_the_number_of_its_event_is_kept(desk: Desk) -> None:
    desk.do("approve")
    assert desk.state["approvals"]["ok"] == {  # type: ignore[index]
        "id": "ok",
        "operationId": "o",
        "actionDigest": action_digest(ACTION),
        "maxAmount": "50",
        "approver": "boss",
        "decision": "APPROVED",
        "expiresAt": "5000",
        "seq": "3",
    }


def test_a_rejection_holds_also_where_no_approval_is_required(desk: Desk) -> None:
    desk.do("admit")
    desk.do("approve", approval_decision="REJECTED")
    assert desk.refused("dispatch") == "approval_rejected"


def test_a_rejection_of_another_action_holds_for_the_operation(strict: Desk) -> None:
    strict.do("approve")
    strict.do(
        "approve",
        approval_id="no",
        approval_actionDigest=OTHER_DIGEST,
        approval_decision="REJECTED",
    )
    assert strict.refused("admit") == "approval_rejected"


def test_a_later_approval_lifts_a_rejection(strict: Desk) -> None:
    strict.do("approve", approval_id="no", approval_decision="REJECTED")
    strict.do("approve")
    strict.do("admit")


def test_the_approval_of_another_action_does_not_revive_this_one(strict: Desk) -> None:
    strict.do("approve")
    strict.do("approve", approval_id="no", approval_decision="REJECTED")
    strict.do("approve", approval_id="other", approval_actionDigest=OTHER_DIGEST)
    assert strict.refused("admit") == "approval_rejected"


def test_a_subjects_own_approval_never_lifts_a_rejection(strict: Desk) -> None:
    strict.do("approve", approval_id="no", approval_decision="REJECTED")
    strict.do("approve", approval_approver="agent")
    assert strict.refused("admit") == "approval_rejected"


def test_a_subjects_own_approval_does_not_lift_a_rejection_where_none_is_required(
    desk: Desk,
) -> None:
    desk.do("approve", approval_id="no", approval_decision="REJECTED")
    desk.do("approve", approval_approver="agent")
    assert desk.refused("admit") == "approval_rejected"


def test_a_subjects_own_approval_takes_nothing_from_somebody_elses(strict: Desk) -> None:
    strict.do("approve")
    strict.do("approve", approval_id="mine", approval_approver="agent")
    strict.do("admit")
    assert strict.operation()["approvalId"] == "ok"


def test_the_last_word_is_found_behind_several_of_the_subjects_own(strict: Desk) -> None:
    strict.do("approve", approval_id="1", approval_approver="ann")
    strict.do("approve", approval_id="2")
    for name in ("3", "4"):
        strict.do("approve", approval_id=name, approval_approver="agent")
    strict.do("admit")
    assert strict.operation()["approvalId"] == "2"


def test_the_approval_that_carried_the_admission_is_looked_at_again(strict: Desk) -> None:
    strict.do("approve")
    strict.do("admit")
    strict.do("approve", approval_id="later", approval_expiresAt="9000")
    assert strict.refused("dispatch", now=5000) == "approval_expired"


def test_a_retry_is_held_to_the_approved_amount(strict: Desk) -> None:
    strict.do("approve")
    strict.failed()
    assert strict.refused("retry", amount="50.01") == "approval_amount_exceeded"
    strict.do("retry", amount="50")


def test_a_rejection_after_the_dispatch_stops_the_redelivery(strict: Desk) -> None:
    strict.do("approve")
    strict.sent()
    strict.do("approve", approval_id="no", approval_decision="REJECTED")
    assert strict.refused("redeliver") == "approval_rejected"
    strict.do("settle")


def test_a_compensation_needs_its_own_approval(strict: Desk) -> None:
    strict.do("approve")
    strict.applied()
    assert strict.refused("compensate") == "approval_missing"
    strict.do("approve", approval_id="undo", approval_operationId="u")
    strict.do("compensate")
