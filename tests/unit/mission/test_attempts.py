"""Attempts: what is known of an effect, who says so, and what may follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mission_desk import Desk

UNKNOWN = {"effect": "UNKNOWN", "actualCost": "0"}
NOT_APPLIED = {"effect": "CONFIRMED_NOT_APPLIED", "actualCost": "0"}


def test_the_disposition_follows_the_attempts(desk: Desk) -> None:
    seen = []
    for kind, members in [
        ("admit", {}),
        ("dispatch", {}),
        ("settle", UNKNOWN),
        ("settle", NOT_APPLIED),
        ("retry", {}),
        ("dispatch", {"attemptId": "a2"}),
        ("settle", {"attemptId": "a2"}),
    ]:
        desk.do(kind, **members)
        seen.append(desk.operation()["disposition"])
    assert seen == [
        "NOT_DISPATCHED",
        "UNKNOWN",
        "UNKNOWN",
        "CONFIRMED_NOT_APPLIED",
        "CONFIRMED_NOT_APPLIED",
        "UNKNOWN",
        "CONFIRMED_APPLIED",
    ]


def test_what_is_not_there_yet_is_null(desk: Desk) -> None:
    desk.do("admit")
    assert desk.attempt() == {
        "operationId": "o",
        "amount": "10",
        "status": "PREPARED",
        "effect": None,
        "actualCost": None,
        "epoch": None,
        "nodeId": None,
        "evidence": None,
        "reviews": [],
        "corrections": [],
    }
    assert desk.operation()["approvalId"] is None
    assert desk.operation()["compensates"] is None


def test_an_operation_is_under_review_from_unknown_until_an_answer(desk: Desk) -> None:
    desk.sent()
    assert desk.operation()["underReview"] is False
    desk.do("settle", **UNKNOWN)
    assert desk.operation()["underReview"] is True
    desk.do("review", decision="STILL_UNKNOWN", actualCost="0")
    assert desk.operation()["underReview"] is True
    desk.do("settle")
    assert desk.operation()["underReview"] is False


def test_still_unknown_alone_puts_an_operation_under_review(desk: Desk) -> None:
    desk.sent()
    desk.do("review", decision="STILL_UNKNOWN", actualCost="0")
    assert desk.operation()["underReview"] is True
    assert desk.refused("redeliver") == "under_review"


def test_a_review_settles_and_keeps_who_said_what_when(desk: Desk) -> None:
    desk.sent()
    desk.do("review", now=40)
    assert desk.attempt()["reviews"] == [
        {
            "reviewer": "ann",
            "decision": "APPLIED",
            "actualCost": "3",
            "evidence": {"receipt": 7},
            "at": "40",
        }
    ]
    assert (desk.attempt()["effect"], desk.money()) == ("CONFIRMED_APPLIED", ("3", "0"))


def test_a_review_of_a_settled_attempt_appends_nothing(desk: Desk) -> None:
    desk.applied()
    desk.do("review")
    assert desk.attempt()["reviews"] == []
    assert desk.refused("review", decision="NOT_APPLIED") == "inconsistent_settlement"
    still = {"decision": "STILL_UNKNOWN", "actualCost": "0"}
    assert desk.refused("review", **still) == "inconsistent_settlement"


def test_a_late_unknown_does_not_undo_a_settlement(desk: Desk) -> None:
    desk.applied()
    assert desk.refused("settle", **UNKNOWN) == "inconsistent_settlement"


def test_a_second_unknown_changes_nothing_but_the_count(desk: Desk) -> None:
    desk.sent()
    desk.do("settle", **UNKNOWN, evidence="timed out")
    before = desk.state.plain()
    desk.do("settle", **UNKNOWN, evidence="timed out again")
    assert {**desk.state.plain(), "events": before["events"]} == before


def test_a_correction_keeps_the_old_answer(desk: Desk) -> None:
    desk.applied()
    desk.do("correct", now=50)
    attempt = desk.attempt()
    assert (attempt["effect"], attempt["actualCost"]) == ("CONFIRMED_NOT_APPLIED", "0")
    assert attempt["corrections"] == [
        {
            "effect": "CONFIRMED_APPLIED",
            "actualCost": "3",
            "by": "ann",
            "evidence": "the receipt was another one's",
            "at": "50",
        }
    ]
    assert desk.operation()["disposition"] == "CONFIRMED_NOT_APPLIED"


def test_the_same_correction_again_is_appended(desk: Desk) -> None:
    desk.applied()
    desk.do("correct")
    desk.do("correct")
    assert [c["actualCost"] for c in desk.attempt()["corrections"]] == ["3", "0"]


def test_a_late_duplicate_of_a_corrected_answer_is_accepted(desk: Desk) -> None:
    desk.applied()
    desk.do("correct")
    desk.do("settle")
    desk.do("review")
    desk.do("settle", **NOT_APPLIED)
    assert desk.attempt()["effect"] == "CONFIRMED_NOT_APPLIED"
    assert desk.refused("settle", actualCost="4") == "inconsistent_settlement"


def test_a_corrected_failure_is_not_dispatched_again(desk: Desk) -> None:
    desk.failed()
    desk.do("retry")
    desk.do("correct", effect="CONFIRMED_APPLIED", actualCost="3")
    assert desk.refused("dispatch", attemptId="a2") == "already_applied"
    desk.do("release", attemptId="a2")
    assert desk.refused("retry", attemptId="a3") == "already_applied"


def test_an_unsettled_attempt_is_unknown_whatever_a_correction_says_of_another(desk: Desk) -> None:
    desk.failed()
    desk.do("retry")
    desk.do("dispatch", attemptId="a2")
    desk.do("correct", effect="CONFIRMED_APPLIED", actualCost="3")
    assert desk.operation()["disposition"] == "UNKNOWN"
    assert desk.refused("retry", attemptId="a3") == "effect_unknown"


def test_a_released_attempt_does_not_count_against_the_attempts(desk: Desk) -> None:
    desk.do("admit")
    desk.do("release")
    for name in ("a2", "a3"):
        desk.do("retry", attemptId=name)
        desk.do("release", attemptId=name)
    desk.do("retry", attemptId="a4")
    desk.do("dispatch", attemptId="a4")
    desk.do("settle", attemptId="a4", **NOT_APPLIED)
    desk.do("retry", attemptId="a5")
    desk.do("release", attemptId="a5")
    desk.do("retry", attemptId="a6")
    desk.do("dispatch", attemptId="a6")
    desk.do("settle", attemptId="a6", **NOT_APPLIED)
    assert desk.refused("retry", attemptId="a7") == "attempts_exhausted"


def test_a_redelivery_reserves_nothing_and_moves_nothing(desk: Desk) -> None:
    desk.sent()
    before = desk.state.plain()
    desk.do("redeliver")
    assert {**desk.state.plain(), "events": before["events"]} == before


@pytest.mark.parametrize("kind", ["dispatch", "release", "redeliver", "settle", "review"])
def test_a_released_attempt_stays_released(desk: Desk, kind: str) -> None:
    desk.do("admit")
    desk.do("release")
    assert desk.refused(kind) in ("attempt_not_prepared", "attempt_not_dispatched")


def test_evidence_of_a_settlement_is_kept(desk: Desk) -> None:
    desk.sent()
    desk.do("settle", **UNKNOWN, evidence="no reply in 30 s")
    assert desk.attempt()["evidence"] == "no reply in 30 s"
    desk.do("settle", evidence={"receipt": [1, None, True, 0.5]})
    assert desk.attempt()["evidence"] == {"receipt": [1, None, True, 0.5]}


@pytest.mark.parametrize("ending", ["finished", "stopped", "past the deadline"])
def test_a_fact_is_taken_on_a_closed_run_after_the_stop_and_after_the_deadline(
    desk: Desk, ending: str
) -> None:
    desk.applied("p", "b")
    now = 10
    if ending == "finished":
        desk.do("finishRun", status="FAILED")
    else:
        desk.sent()
        desk.do("admit", operationId="q", attemptId="c")
        if ending == "stopped":
            desk.do("stopMission")
        now = 10 if ending == "stopped" else 20_000
        desk.do("settle", now=now)
        desk.do("release", attemptId="c", now=now)
    desk.do("correct", attemptId="b", now=now)
    desk.do("settle", attemptId="b", now=now)


def test_a_compensation_of_a_closed_runs_operation_is_admitted_in_another_run(desk: Desk) -> None:
    desk.applied()
    desk.do("finishRun")
    desk.do("startRun", runId="r2")
    desk.do("compensate", runId="r2")
    assert desk.operation("u")["compensates"] == "o"
    assert desk.operation("o")["disposition"] == "CONFIRMED_APPLIED"
