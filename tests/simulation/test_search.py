"""The whole search, as far as its bounds go: nothing is wrong, and what was seen is counted."""

from __future__ import annotations

import pytest

from counterfoil.operation.replies import Status
from counterfoil.simulate.deletions import LOOK_AT_THE_WINDOW, without
from counterfoil.simulate.explore import Found, follow, search
from counterfoil.simulate.invariants import TWO_EFFECTS
from counterfoil.simulate.plans import Plan, plans
from counterfoil.simulate.space import Space
from counterfoil.simulate.timeline import timeline
from counterfoil.simulate.world import Bounds, owner_named


def ids(found: tuple[Plan, ...]) -> list[str]:
    return [plan.name for plan in found]


def check(plan: Plan) -> None:
    space = Space(plan.owner, plan.bounds)
    found = search(space)
    print(f"{plan.name}: {found.states} states, {found.transitions} transitions")
    assert found.wrong is None, timeline(space, found)
    settled = {space.streams[number].outcome for number in range(len(space.streams))}
    assert {None, Status.COMMITTED, Status.NOT_RUN} == settled  # the search came to an end of each


ONE = plans(1, full=False)


@pytest.mark.parametrize("plan", ONE, ids=ids(ONE))
def test_one_worker_leaves_at_most_one_effect_and_a_true_outcome(plan: Plan) -> None:
    check(plan)


TWO = plans(2, full=False)


@pytest.mark.parametrize("plan", TWO, ids=ids(TWO))
def test_two_workers_leave_at_most_one_effect_and_a_true_outcome(plan: Plan) -> None:
    check(plan)


def test_a_resend_that_was_decided_long_before_its_commit_keeps_inside_the_window() -> None:
    """Each pause is within the promise, one before the dispatch is stored and one after it; the
    lease covers both, so only the window, looked at again, stops the second."""
    found = decided_long_before_its_commit()
    assert found.wrong is None
    with without(LOOK_AT_THE_WINDOW):
        found = decided_long_before_its_commit()
    assert found.wrong == TWO_EFFECTS


def decided_long_before_its_commit() -> Found:
    bounds = Bounds(attempts=2, ticks=4, questions=1, crashes=0, stalls=True, lease_s=250.0)
    space = Space(owner_named("dedupes, forgets"), bounds)
    sent_again = """w0 starts; w0 appends; a1 is written; a1 times out; w0 appends;
        w0 gets no answer; a1 lands and commits; time passes; w0 appends"""
    start = follow(space, [step.strip() for step in sent_again.split(";")])
    found = search(space, start, only=frozenset({TWO_EFFECTS}))
    print(timeline(space, found))
    return found


def test_a_carrying_that_is_built_again_wants_what_the_first_one_wanted() -> None:
    """The second search of a space takes every step from its tables, the first one made them."""
    space = Space(ONE[0].owner, ONE[0].bounds)
    assert search(space) == search(space) == search(Space(ONE[0].owner, ONE[0].bounds))
