"""Grants: handed on only within themselves, taken back with all below, checked in order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from mission_desk import ACTION, GRANT

if TYPE_CHECKING:
    from mission_desk import Desk

WIDER: list[dict[str, Any]] = [
    {"grant_actions": ["write", "erase"]},
    {"grant_resources": ["doc", "sheet"]},
    {"grant_expiresAt": "9001"},
    {"grant_limit": "100.000000000000000000000000000001"},
    {"grant_depth": "2"},
]


@pytest.mark.parametrize("wider", WIDER)
def test_a_delegation_stays_within_its_parent(desk: Desk, wider: dict[str, Any]) -> None:
    assert desk.refused("delegate", **wider) == "delegation_too_wide"


def test_a_delegation_does_not_begin_before_its_parent(desk: Desk) -> None:
    desk.do("grant", grant_id="late", grant_notBefore="5")
    assert desk.refused("delegate", parentGrantId="late") == "delegation_too_wide"


def test_a_delegation_may_have_all_that_its_parent_has(desk: Desk) -> None:
    desk.do("delegate")
    assert desk.grant("g2") == {
        **GRANT,
        "id": "g2",
        "depth": "1",
        "parentGrantId": "g",
        "revoked": False,
        "reason": None,
        "spent": "0",
        "reserved": "0",
    }


def test_delegation_ends_at_depth_zero(desk: Desk) -> None:
    desk.do("delegate", grant_depth="0")
    third = {"parentGrantId": "g2", "grant_id": "g3", "grant_depth": "0"}
    assert desk.refused("delegate", **third) == "delegation_not_allowed"


def test_the_codes_of_a_delegation_come_in_order(desk: Desk) -> None:
    wide = {"grant_id": "g", "grant_limit": "101", "now": 9000}
    assert desk.refused("delegate", parentGrantId="x", **wide) == "grant_unknown"
    assert desk.refused("delegate", **wide) == "grant_exists"
    desk.do("revokeGrant")
    assert desk.refused("delegate", **{**wide, "grant_id": "g2"}) == "grant_revoked"


def test_an_expired_grant_is_not_handed_on(desk: Desk) -> None:
    assert desk.refused("delegate", now=9000) == "grant_expired"


def test_revoking_takes_all_below_and_keeps_an_earlier_reason(desk: Desk) -> None:
    desk.do("delegate")
    desk.do("delegate", parentGrantId="g2", grant_id="g3", grant_depth="0")
    desk.do("delegate", grant_id="g4")
    desk.do("revokeGrant", grantId="g2", reason={"ticket": 1})
    desk.do("revokeGrant", reason="over")
    reasons = {name: desk.grant(name)["reason"] for name in ("g", "g2", "g3", "g4")}
    assert reasons == {"g": "over", "g2": {"ticket": 1}, "g3": {"ticket": 1}, "g4": "over"}
    assert desk.refused("revokeGrant", grantId="g3") == "grant_revoked"
    assert desk.refused("revokeGrant", grantId="x") == "grant_unknown"


def test_a_revoked_grant_dispatches_nothing_and_settles_what_is_out(desk: Desk) -> None:
    desk.do("admit", operationId="p", attemptId="b")
    desk.sent()
    desk.do("revokeGrant")
    assert desk.refused("dispatch", attemptId="b") == "grant_revoked"
    assert desk.refused("redeliver") == "grant_revoked"
    desk.do("settle")
    desk.do("release", attemptId="b")
    assert desk.money() == ("3", "0")


def test_a_retry_renews_nothing(desk: Desk) -> None:
    desk.failed()
    assert desk.refused("retry", now=9000) == "grant_expired"
    assert desk.refused("retry", now=10_000) == "deadline_passed"


def test_a_grant_is_good_from_its_first_to_before_its_last_instant(desk: Desk) -> None:
    desk.do("grant", grant_id="short", grant_notBefore="20", grant_expiresAt="30")
    assert desk.refused("admit", grantId="short", now=19) == "grant_not_yet_valid"
    desk.do("admit", grantId="short", now=20)
    desk.do("dispatch", now=29)
    assert desk.refused("redeliver", now=30) == "grant_expired"


def test_an_authorization_exactly_as_old_as_allowed_is_fresh(desk: Desk) -> None:
    desk.do("admit", now=20, authorizationCheckedAt="10")
    assert desk.refused("dispatch", now=21, authorizationCheckedAt="10") == "authorization_stale"


def test_names_are_matched_exactly(desk: Desk) -> None:
    desk.do("grant", grant_id="star", grant_actions=["*", "Write"], grant_resources=["*"])
    assert desk.refused("admit", grantId="star") == "action_not_allowed"


def test_the_contract_is_asked_for_an_action_before_the_grant_for_a_resource(desk: Desk) -> None:
    neither = {**ACTION, "capability": "read", "resource": "wall"}
    assert desk.refused("admit", action=neither) == "action_not_allowed"
    assert desk.refused("admit", action={**ACTION, "capability": "erase"}) == "action_not_allowed"
    assert desk.refused("admit", action={**ACTION, "resource": "sheet"}) == "resource_not_allowed"


ORDER: list[tuple[str, dict[str, Any]]] = [
    ("run_unknown", {"runId": "x"}),
    ("stale_epoch", {"epoch": "7"}),
    ("policy_denied", {"policy": "DENY"}),
    ("mandatory_checks_failed", {"mandatoryChecksOk": False}),
    ("authorization_in_future", {"authorizationCheckedAt": "999"}),
    ("grant_unknown", {"grantId": "x"}),
    ("subject_mismatch", {"subject": "x"}),
    ("action_not_allowed", {"action": {**ACTION, "capability": "read"}}),
    ("grant_limit_exceeded", {"amount": "101"}),
]


@pytest.mark.parametrize("first", range(len(ORDER)))
def test_the_first_thing_wrong_names_the_refusal(desk: Desk, first: int) -> None:
    wrong: dict[str, Any] = {}
    for _, members in ORDER[first:]:
        wrong |= members
    assert desk.refused("admit", **wrong) == ORDER[first][0]
