"""Money: exact, reserved before and charged after, never quietly more than there was."""

from __future__ import annotations

import itertools

import pytest
from mission_desk import Desk, check_derived

from counterfoil.mission import canonical_state_bytes

BIG = "9" * 33 + "." + "9" * 29 + "1"
HUGE = "7" * 60


def test_an_operation_released_before_dispatch_gives_its_reservation_back(desk: Desk) -> None:
    desk.do("admit")
    assert desk.money() == ("0", "10")
    desk.do("release")
    assert desk.money() == ("0", "0")
    assert desk.attempt()["status"] == "RELEASED"


def test_a_settlement_moves_the_reservation_to_the_actual_cost(desk: Desk) -> None:
    desk.applied()
    assert desk.money() == ("3", "0")
    assert (desk.grant()["spent"], desk.grant()["reserved"]) == ("3", "0")


def test_an_unknown_settlement_keeps_the_reservation(desk: Desk) -> None:
    desk.sent()
    desk.do("settle", effect="UNKNOWN", actualCost="0")
    assert desk.money() == ("0", "10")
    assert desk.attempt()["effect"] == "UNKNOWN"
    assert desk.attempt()["actualCost"] is None


def test_the_cost_of_a_failed_attempt_stays_spent(desk: Desk) -> None:
    desk.sent()
    desk.do("settle", effect="CONFIRMED_NOT_APPLIED", actualCost="4")
    desk.do("retry")
    assert desk.money() == ("4", "10")


def test_a_cost_above_the_reservation_is_recorded_and_nothing_goes_out_any_more() -> None:
    desk = Desk.ready(budget="20")
    desk.do("admit", operationId="p", attemptId="b")
    desk.sent()
    desk.do("settle", actualCost="10.5")
    assert desk.money() == ("10.5", "10")
    assert desk.refused("dispatch", attemptId="b") == "budget_exceeded"
    assert desk.refused("admit", operationId="q", attemptId="c", amount="0") == "budget_exceeded"


def test_a_grant_that_was_passed_dispatches_nothing_any_more() -> None:
    desk = Desk.ready()
    desk.do("grant", grant_id="small", grant_limit="20")
    desk.do("admit", operationId="p", attemptId="b", grantId="small")
    desk.sent(grantId="small")
    desk.do("settle", actualCost="10.5")
    assert desk.refused("dispatch", attemptId="b") == "grant_limit_exceeded"


def test_the_same_settlement_twice_is_one_charge_and_two_events(desk: Desk) -> None:
    desk.applied()
    events = int(str(desk.state["events"]))
    before = desk.state.plain()
    desk.do("settle")
    assert desk.state.plain() == {**before, "events": str(events + 1)}


def test_a_settlement_is_the_same_if_its_cost_is_the_same_number(desk: Desk) -> None:
    desk.applied()
    desk.do("settle", actualCost="3.00")
    assert desk.money() == ("3", "0")


def test_exactly_the_limit_and_exactly_the_budget_are_fine() -> None:
    desk = Desk.ready(budget="30")
    desk.do("grant", grant_id="small", grant_limit="10")
    desk.do("admit", grantId="small", amount="10")
    desk.do("admit", operationId="p", attemptId="b", amount="20")
    assert desk.money() == ("0", "30")


def test_the_nearest_grant_is_asked_first_and_the_budget_last() -> None:
    desk = Desk.ready(budget="5")
    desk.do("grant", grant_id="top", grant_limit="7")
    desk.do("delegate", parentGrantId="top", grant_id="low", grant_limit="7")
    assert "'low'" in rejection(desk, "low", "8")
    desk.do("grant", grant_id="top2", grant_limit="7")
    desk.do("delegate", parentGrantId="top2", grant_id="low2", grant_limit="7")
    desk.do("delegate", parentGrantId="top2", grant_id="low3", grant_limit="7")
    desk.do("admit", grantId="low3", amount="3")
    assert "'top2'" in rejection(desk, "low2", "5")
    assert rejection(desk, "low2", "3").startswith("budget_exceeded")


def rejection(desk: Desk, grant: str, amount: str) -> str:
    from counterfoil.mission import CommandRejected

    with pytest.raises(CommandRejected) as caught:
        desk.do("admit", operationId="p", attemptId="b", grantId=grant, amount=amount)
    return str(caught.value)


def test_a_delegation_reserves_nothing_and_its_spending_counts_above(desk: Desk) -> None:
    desk.do("delegate")
    assert desk.money() == ("0", "0")
    desk.applied(grantId="g2")
    assert (desk.grant("g2")["spent"], desk.grant("g")["spent"]) == ("3", "3")


def test_sixty_digits_and_thirty_decimals_are_exact() -> None:
    desk = Desk.ready(budget="9" * 64)
    desk.do("grant", grant_id="vast", grant_limit="9" * 64)
    for number, amount in enumerate([HUGE, BIG, "0." + "0" * 29 + "1", "0.1", "0.2"]):
        desk.do(
            "admit", operationId=f"o{number}", attemptId=f"a{number}", grantId="vast", amount=amount
        )
    expected = int(HUGE) * 10**30 + int(BIG.replace(".", "")) + 1 + 3 * 10**29
    whole, rest = divmod(expected, 10**30)
    assert desk.state["reserved"] == f"{whole}.{rest:030d}".rstrip("0").rstrip(".")
    check_derived(desk.state)


def test_amounts_are_written_without_trailing_zeros_and_compared_as_numbers(desk: Desk) -> None:
    desk.do("admit", amount="10.50")
    assert desk.attempt()["amount"] == "10.5"
    desk.do("admit", operationId="p", attemptId="b", amount="89.500")
    assert desk.state["reserved"] == "100"


def test_zero_is_an_amount(desk: Desk) -> None:
    desk.do("admit", amount="0")
    assert desk.money() == ("0", "0")


def test_any_order_of_settlements_gives_the_same_money() -> None:
    costs = ["0.1", "0.2", "12", "0", "3.05"]
    after = set()
    for order in itertools.permutations(range(5)):
        desk = Desk.ready()
        for number in range(5):
            desk.sent(f"o{number}", f"a{number}")
        for number in order:
            desk.do("settle", attemptId=f"a{number}", actualCost=costs[number])
        after.add(canonical_state_bytes(desk.state))
        assert desk.money() == ("15.35", "0")
    assert len(after) == 1


def test_a_correction_moves_spent_by_the_difference_in_the_grants_too(desk: Desk) -> None:
    desk.do("delegate")
    desk.applied(grantId="g2")
    desk.do("correct", effect="CONFIRMED_APPLIED", actualCost="5.5")
    assert desk.state["spent"] == "5.5"
    assert (desk.grant("g2")["spent"], desk.grant("g")["spent"]) == ("5.5", "5.5")
