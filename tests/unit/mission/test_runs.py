"""Runs, epochs, criteria, triggers, time and the stop."""

from __future__ import annotations

from typing import Any

import pytest
from mission_desk import DEFAULTS, LEFT_OUT, Desk, check_derived, command_of

from counterfoil.mission import COMMAND_TYPES, parse_command

AFTER_STOP = {
    "settle",
    "review",
    "correct",
    "release",
    "revokeGrant",
    "claimRun",
    "recordCriterion",
    "completeNode",
    "finishRun",
}
AT_LATEST = {*AFTER_STOP, "stopMission"}
FEATURES = {
    "registerGraph": "triggers",
    "attachGraph": "triggers",
    "completeNode": "triggers",
    "registerTrigger": "graphs",
    "fireTrigger": "graphs",
}


def everything() -> Desk:
    """A mission on which each command's defaults pass the checks of ids."""
    desk = Desk.ready(criteria=["review"])
    desk.do("registerTrigger")
    desk.applied("x", "x1")
    desk.sent()
    return desk


FRESH: dict[str, dict[str, Any]] = {
    "admit": {"operationId": "n", "attemptId": "n1"},
    "compensate": {"originalOperationId": "x"},
    "retry": {"attemptId": "n2"},
    "correct": {"attemptId": "x1"},
}


def test_every_command_of_the_page_has_defaults_here() -> None:
    assert set(COMMAND_TYPES) == set(DEFAULTS)


@pytest.mark.parametrize("kind", COMMAND_TYPES)
def test_the_stop_forbids_what_uses_or_widens_authority_and_nothing_else(kind: str) -> None:
    desk = everything()
    desk.do("stopMission")
    code = desk.outcome(kind, **FRESH.get(kind, {}))
    assert (code == "mission_stopped") == (kind not in AFTER_STOP)


@pytest.mark.parametrize("kind", COMMAND_TYPES)
def test_a_clock_that_went_back_stops_new_effects_and_no_facts(kind: str) -> None:
    desk = everything()
    desk.now = 15
    desk.do("recordCriterion")
    code = desk.outcome(kind, now=14, **FRESH.get(kind, {}))
    assert (code == "time_went_back") == (kind not in AT_LATEST)
    assert desk.state["now"] == "15"


@pytest.mark.parametrize("kind", FEATURES)
def test_a_feature_that_is_off_is_named_before_anything_else(kind: str) -> None:
    desk = Desk(features=[FEATURES[kind]])
    desk.now = 0
    assert desk.refused(kind) == "feature_disabled"


def test_ids_are_asked_for_before_the_stop(desk: Desk) -> None:
    desk.do("admit")
    desk.do("stopMission")
    assert desk.refused("admit") == "operation_exists"
    assert desk.refused("dispatch", attemptId="x") == "attempt_unknown"
    assert desk.refused("dispatch") == "mission_stopped"


def test_the_stop_says_why_by_whom_and_when(desk: Desk) -> None:
    desk.do("stopMission", now=30, reason={"incident": 9})
    assert desk.state["stopped"] == {"reason": {"incident": 9}, "by": "boss", "at": "30"}


def test_a_refused_command_does_not_move_the_time(desk: Desk) -> None:
    assert desk.refused("startRun", now=500) == "run_exists"
    assert desk.state["now"] == "10"


def test_a_settlement_that_comes_late_is_taken_at_the_last_time_seen(desk: Desk) -> None:
    desk.sent()
    desk.do("review", now=3)
    assert desk.attempt()["reviews"][0]["at"] == "10"


# --- runs and epochs -----------------------------------------------------------------------------


def test_a_new_run_is_open_at_epoch_one_and_nobodys() -> None:
    desk = Desk.ready(criteria=["review"])
    assert desk.run() == {
        "status": "OPEN",
        "epoch": "1",
        "owner": None,
        "graphId": None,
        "nodes": {},
        "criteria": {"review": {"met": False, "evidence": None}},
    }


def test_a_claim_is_exactly_the_next_epoch(desk: Desk) -> None:
    assert desk.refused("claimRun", epoch="1") == "stale_epoch"
    assert desk.refused("claimRun", epoch="3") == "stale_epoch"
    desk.do("claimRun")
    assert (desk.run()["epoch"], desk.run()["owner"]) == ("2", "worker")
    assert desk.refused("claimRun", owner="late") == "stale_epoch"


FENCED: list[tuple[str, dict[str, Any]]] = [
    ("finishRun", {}),
    ("admit", {"operationId": "n", "attemptId": "n1"}),
    ("compensate", {"originalOperationId": "x"}),
    ("dispatch", {}),
    ("redeliver", {}),
    ("retry", {"attemptId": "n2"}),
    ("attachGraph", {}),
    ("completeNode", {}),
    ("recordCriterion", {}),
]


@pytest.mark.parametrize(("kind", "members"), FENCED)
def test_a_claimed_run_asks_for_its_epoch(kind: str, members: dict[str, Any]) -> None:
    desk = everything()
    assert desk.refused(kind, epoch="2", **members) == "stale_epoch"
    desk.do("claimRun")
    assert desk.refused(kind, **members) == "epoch_required"
    assert desk.refused(kind, epoch="1", **members) == "stale_epoch"
    assert desk.refused(kind, epoch="3", **members) == "stale_epoch"


@pytest.mark.parametrize(("kind", "members"), FENCED)
def test_a_closed_run_is_named_before_its_epoch(kind: str, members: dict[str, Any]) -> None:
    desk = everything()
    desk.do("settle")
    desk.do("claimRun")
    desk.do("finishRun", status="FAILED", epoch="2")
    assert desk.refused(kind, epoch="1", **members) == "run_closed"


def test_a_new_owner_dispatches_what_the_old_one_prepared(desk: Desk) -> None:
    desk.do("admit")
    desk.do("claimRun")
    desk.do("dispatch", epoch="2")
    assert desk.attempt()["epoch"] == "2"
    desk.do("settle", epoch="2")


def test_a_fact_of_the_old_owner_is_taken(desk: Desk) -> None:
    desk.sent()
    desk.do("claimRun")
    desk.do("claimRun", epoch="3", owner="third")
    assert desk.refused("settle", epoch="2") == "stale_epoch"
    desk.do("settle")
    assert desk.attempt()["epoch"] == "1"


def test_a_settlement_without_an_epoch_means_the_first(desk: Desk) -> None:
    desk.do("claimRun")
    desk.do("admit", epoch="2")
    desk.do("dispatch", epoch="2")
    assert desk.refused("settle") == "stale_epoch"


def test_a_release_ignores_the_epoch(desk: Desk) -> None:
    desk.do("admit")
    desk.do("claimRun")
    desk.do("release", epoch="77")


# --- finishing -----------------------------------------------------------------------------------


def test_a_failed_run_gives_its_reservations_back(desk: Desk) -> None:
    desk.do("admit")
    desk.do("admit", operationId="p", attemptId="b")
    desk.do("startRun", runId="r2")
    desk.do("admit", operationId="q", attemptId="c", runId="r2")
    desk.do("finishRun", status="FAILED")
    assert [desk.attempt(name)["status"] for name in "abc"] == ["RELEASED", "RELEASED", "PREPARED"]
    assert desk.money() == ("0", "10")
    check_derived(desk.state)


@pytest.mark.parametrize("status", ["COMPLETED", "FAILED"])
def test_a_run_with_an_unknown_effect_does_not_end(desk: Desk, status: str) -> None:
    desk.sent()
    assert desk.refused("finishRun", status=status) == "effect_unknown"


def test_a_run_is_not_completed_over_a_prepared_attempt(desk: Desk) -> None:
    desk.do("admit")
    assert desk.refused("finishRun") == "attempt_open"
    desk.do("release")
    desk.do("finishRun")
    assert desk.run()["status"] == "COMPLETED"


def test_all_criteria_must_be_met_and_may_be_taken_back() -> None:
    desk = Desk.ready(criteria=["review", "tests"])
    desk.do("recordCriterion")
    assert desk.refused("finishRun") == "criteria_not_met"
    desk.do("recordCriterion", criterion="tests", evidence={"run": 4})
    desk.do("recordCriterion", met=False)
    assert desk.refused("finishRun") == "criteria_not_met"
    desk.do("recordCriterion")
    desk.do("finishRun")
    assert desk.run()["criteria"]["tests"] == {"met": True, "evidence": {"run": 4}}


def test_a_run_ends_once(desk: Desk) -> None:
    desk.do("finishRun")
    assert desk.refused("finishRun", status="FAILED") == "run_closed"
    assert desk.refused("claimRun") == "run_closed"


def test_a_run_can_be_finished_after_the_deadline_and_none_started(desk: Desk) -> None:
    desk.do("registerTrigger")
    assert desk.refused("startRun", runId="r2", now=10_000) == "deadline_passed"
    assert desk.refused("fireTrigger", now=10_000) == "deadline_passed"
    desk.do("finishRun", now=10_000)


# --- triggers ------------------------------------------------------------------------------------


def test_a_firing_starts_a_run_once(desk: Desk) -> None:
    desk.do("registerTrigger")
    desk.do("fireTrigger")
    desk.do("fireTrigger", now=20_000)
    assert desk.state["triggers"]["t"] == {"firings": {"f": "r2"}}  # type: ignore[index]
    assert set(desk.state["runs"]) == {"r", "r2"}  # type: ignore[call-overload]
    assert desk.refused("fireTrigger", now=20_000, firingId="g") == "run_exists"


def test_a_refused_firing_is_not_remembered(desk: Desk) -> None:
    desk.do("registerTrigger")
    assert desk.refused("fireTrigger", runId="r") == "run_exists"
    desk.do("fireTrigger")


# --- what a command may leave out ----------------------------------------------------------------


@pytest.mark.parametrize("kind", COMMAND_TYPES)
def test_every_member_but_the_optional_ones_must_be_there(kind: str) -> None:
    from counterfoil.mission import CommandError

    for member in DEFAULTS[kind]:
        with pytest.raises(CommandError) as caught:
            parse_command(command_of(kind, **{member: LEFT_OUT}))
        assert caught.value.path == f"/{member}"
