"""Settled operations leave the live state for a lookup, and no check comes out otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mission_desk import Desk

from counterfoil.mission import CommandRejected, canonical_state_bytes, retire

if TYPE_CHECKING:
    from counterfoil.mission import Retired


class Archive:
    """Keeps what left, by every id that it may be asked for."""

    def __init__(self) -> None:
        self.operations: dict[str, Retired] = {}
        self.attempts: dict[str, Retired] = {}
        self.approvals: dict[str, Retired] = {}

    def keep(self, retired: Retired) -> None:
        self.operations[retired.operation_id] = retired
        self.attempts |= dict.fromkeys((a.id for a in retired.operation.attempts), retired)
        self.approvals |= dict.fromkeys((a.id for a in retired.approvals), retired)

    def operation(self, operation_id: str) -> Retired | None:
        return self.operations.get(operation_id)

    def attempt(self, attempt_id: str) -> Retired | None:
        return self.attempts.get(attempt_id)

    def approval(self, approval_id: str) -> Retired | None:
        return self.approvals.get(approval_id)


def put_away(desk: Desk, *names: str) -> None:
    archive = desk.lookup or Archive()
    assert isinstance(archive, Archive)
    for name in names:
        desk.state, retired = retire(desk.state, name)
        archive.keep(retired)
    desk.lookup = archive


@pytest.fixture
def away(desk: Desk) -> Desk:
    """A mission whose applied operation o, approved as ok, has left the state."""
    desk.do("approve")
    desk.applied()
    put_away(desk, "o")
    return desk


def test_what_left_is_no_longer_in_the_state_and_its_money_is(away: Desk) -> None:
    for name in ("operations", "attempts", "approvals"):
        assert dict(away.state[name]) == {}  # type: ignore[call-overload]
    assert away.money() == ("3", "0")


def test_ids_that_left_are_still_taken(away: Desk) -> None:
    assert away.refused("admit", attemptId="b") == "operation_exists"
    assert away.refused("admit", operationId="p") == "attempt_exists"
    assert away.refused("approve") == "approval_exists"
    assert away.refused("retry") == "already_applied"
    assert away.refused("settle", actualCost="4") == "inconsistent_settlement"


def test_a_late_duplicate_brings_it_back(away: Desk) -> None:
    away.do("settle")
    assert away.operation()["disposition"] == "CONFIRMED_APPLIED"
    assert away.state["approvals"]["ok"]["seq"] == "3"  # type: ignore[index]


def test_it_can_be_corrected_and_compensated(away: Desk) -> None:
    away.do("compensate")
    put_away(away, "o")
    assert away.refused("compensate", operationId="v", attemptId="v1") == "already_compensated"
    away.do("dispatch", attemptId="u1")
    away.do("settle", attemptId="u1")
    away.do("correct")
    assert away.money() == ("3", "0")


def test_a_later_word_on_it_joins_the_earlier_ones(away: Desk) -> None:
    away.do("approve", approval_id="no", approval_decision="REJECTED")
    assert set(away.state["approvals"]) == {"no", "ok"}  # type: ignore[call-overload]


def test_an_operation_that_holds_a_reservation_stays(desk: Desk) -> None:
    desk.do("admit")
    desk.sent("p", "b")
    for name, code in [("o", "attempt_open"), ("p", "effect_unknown"), ("x", "operation_unknown")]:
        with pytest.raises(CommandRejected) as caught:
            retire(desk.state, name)
        assert caught.value.code == code


def test_a_mission_that_puts_everything_away_ends_where_another_ends() -> None:
    plain, tidy = Desk.ready(), Desk.ready()
    for desk in (plain, tidy):
        desk.do("registerGraph")
        desk.do("attachGraph")
        desk.failed(nodeId="task")
        desk.do("retry")
        desk.do("dispatch", attemptId="a2", nodeId="task")
        desk.do("settle", attemptId="a2")
        if desk is tidy:
            put_away(desk, "o")
        desk.do("completeNode")
        if desk is tidy:
            put_away(desk, "o")
        desk.do("completeNode", nodeId="reconcile")
        desk.do("compensate")
        desk.do("dispatch", attemptId="u1", nodeId="undo")
        if desk is tidy:
            put_away(desk, *(name for name in ("o",) if name in desk.state.parts.operations))
        desk.do("settle", attemptId="u1")
        if desk is tidy:
            put_away(desk, "u")
        result = {"operationId": "u", "originalOperationId": "o"}
        desk.do("completeNode", nodeId="undo", result=result)
        desk.do("settle", attemptId="a", effect="CONFIRMED_NOT_APPLIED", actualCost="0")
        desk.do("finishRun")
    assert canonical_state_bytes(plain.state) == canonical_state_bytes(tidy.state)
