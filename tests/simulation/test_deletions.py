"""Each rule of belief and of take-over, taken out: the search then finds what it is there against.

One worker at a time meets all of them but one: that an old answer is judged against attempts that
were made after it takes two workers, and is T6 among the interleavings.
"""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import NamedTuple

import pytest

from counterfoil.operation import belief, takeover
from counterfoil.operation.events import Dispatched, Event, Opened
from counterfoil.operation.history import fold
from counterfoil.operation.promises import Fences, Promises
from counterfoil.operation.replies import Answer, Result
from counterfoil.simulate import deletions as d
from counterfoil.simulate.explore import search
from counterfoil.simulate.invariants import NOT_RUN_AND_EFFECT, OUTSIDE_LEASE, TWO_EFFECTS
from counterfoil.simulate.space import Space
from counterfoil.simulate.timeline import timeline
from counterfoil.simulate.world import Bounds, owner_named


class Case(NamedTuple):
    deletion: d.Deletion
    owner: str
    bounds: Bounds
    wrong: str


ONE = Bounds(attempts=1, ticks=0, crashes=0)
TWO = Bounds(attempts=2, ticks=0, crashes=0)
RETRIED = Bounds(attempts=1, ticks=0, questions=1, retries=1)
KEPT = Bounds(attempts=2, ticks=3, questions=1, crashes=0)

ONE_WORKER = [
    Case(d.VIEW_IS_PARTIAL, "final, partial views", ONE, NOT_RUN_AND_EFFECT),
    Case(d.FENCE_STRICTLY, "fences by lease", TWO, TWO_EFFECTS),
    Case(d.FENCE_AT_ALL, "promises nothing", TWO, TWO_EFFECTS),
    Case(d.END_FIRST, "final", TWO._replace(hangs=True), TWO_EFFECTS),
    Case(d.PROMISED_FINAL, "promises nothing", TWO, TWO_EFFECTS),
    Case(d.PROMISED_FINAL, "fences on send", TWO, TWO_EFFECTS),
    Case(d.FINAL_AT_ALL, "final", TWO, TWO_EFFECTS),
    Case(d.TIME_TO_SETTLE, "settles", TWO, TWO_EFFECTS),
    Case(d.MONOTONIC_CLOCK, "settles", TWO._replace(clock_steps=True), TWO_EFFECTS),
    Case(d.INSIDE_RETENTION, "dedupes, forgets", KEPT, TWO_EFFECTS),
    Case(d.PAUSE_OF_THE_RESENDER, "dedupes, forgets", KEPT, TWO_EFFECTS),
    Case(d.MAY_SEND_AGAIN, "promises nothing", TWO, TWO_EFFECTS),
    Case(d.LAST_LEASE, "promises nothing", RETRIED, OUTSIDE_LEASE),
    Case(d.HOLDER_IS_EXCLUDED, "promises nothing", RETRIED, OUTSIDE_LEASE),
    Case(d.LEASE_IS_RUNNING, "promises nothing", RETRIED, OUTSIDE_LEASE),
    Case(d.STANDING, "promises nothing", RETRIED, OUTSIDE_LEASE),
]


def check(case: Case) -> None:
    owner = owner_named(case.owner)
    with d.without(case.deletion):
        space = Space(owner, case.bounds)
        found = search(space, only=frozenset({case.wrong}))
    print(f"without {case.deletion.name}: {timeline(space, found)}")
    assert found.wrong == case.wrong


@pytest.mark.parametrize(
    "case", ONE_WORKER, ids=[f"{case.deletion.name}, {case.owner}" for case in ONE_WORKER]
)
def test_one_worker_goes_wrong_without_a_rule(case: Case) -> None:
    check(case)


def test_an_answer_under_another_key_covers_nothing_though_no_search_meets_one() -> None:
    """The protocol asks under the key in doubt, so only a relay could bring such an answer."""
    opened = Opened("act", "owner", "key.2", "sha256:" + 64 * "0", "{}", None, {})
    events = (
        Event(1, 1, "w0", None, opened),
        Event(2, 2, "w0", 2, Dispatched(1, "key.2", 60.0, None, "first_attempt")),
    )
    question = belief.Question("key", asked_after=2, asked_at_us=3, fence=5)
    promises, absent = Promises(fences=Fences.ON_ASK), Answer(Result.ABSENT)
    assert belief.basis_of_belief(fold(events), question, absent, promises) is None
    with d.without(d.UNDER_ITS_KEY):
        assert belief.basis_of_belief(fold(events), question, absent, promises) == belief.FENCE


def test_every_rule_of_belief_and_of_take_over_is_taken_out_somewhere() -> None:
    rules = set(_functions_from(belief, "attempts_in_doubt"))
    rules |= set(_functions_from(takeover, "standing")) - {"workers_in_question"}
    here = {name for case in ONE_WORKER for _, name, _ in case.deletion.replaced}
    in_t6, above = "attempts_in_doubt", "asked_under_its_key"
    assert rules == here | {in_t6, above}


def _functions_from(module: ModuleType, first: str) -> list[str]:
    """Name a module's own functions from ``first`` on, in the order in which they are written."""
    names = [
        name
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__
    ]
    return names[names.index(first) :]
