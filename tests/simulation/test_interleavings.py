"""The interleavings T1 to T14, each on the real protocol: a script leads to the crux, and a search
goes through all that can follow. With its rule nothing is wrong; without it the wrong is found.

T9 needs a store that forgot a dispatch, which these searches do not have: it is in the fleet's
tests, with real processes and a real copy (test_forgotten_dispatch.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.coordinator.worker import Worker
from counterfoil.simulate.deletions import (
    END_FIRST,
    EVERY_ATTEMPT_NOW,
    EXCLUSION_IS_NO_FINALITY,
    FENCE_STRICTLY,
    FINAL_AT_ALL,
    INSIDE_RETENTION,
    KEY_UNTIL_REFUSED,
    MONOTONIC_CLOCK,
    NEW_TOKEN,
    PAUSE_OF_THE_RESENDER,
    REFUSAL_ALONE,
    RELAY_BEGINS_AT_OPENING,
    TOKEN_IS_NOT_ADOPTED,
    UNKNOWN_COMES_FIRST,
    VIEW_IS_PARTIAL,
)
from counterfoil.simulate.explore import follow, search
from counterfoil.simulate.invariants import NOT_RUN_AND_EFFECT, TWO_EFFECTS
from counterfoil.simulate.space import Space
from counterfoil.simulate.timeline import timeline
from counterfoil.simulate.world import Bounds, owner_named

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from counterfoil.simulate.deletions import Deletion
    from counterfoil.simulate.world import Owner

    RuleIsNeeded = Callable[[Owner, Bounds, str, tuple[Deletion, ...], str], None]

ALONE = Bounds(attempts=1, ticks=0, crashes=0)
TIMED_OUT = "w0 starts; w0 appends; a1 is written; a1 times out; w0 appends"


def test_t1_a_lease_at_the_attempts_own_token_stops_nothing(rule_is_needed: RuleIsNeeded) -> None:
    owner = owner_named("fences by lease")
    rule_is_needed(owner, ALONE, TIMED_OUT, (FENCE_STRICTLY,), NOT_RUN_AND_EFFECT)


def test_t1_a_question_with_the_attempts_own_token_stops_nothing(
    rule_is_needed: RuleIsNeeded,
) -> None:
    owner = owner_named("fences on ask")
    deleted = (FENCE_STRICTLY, NEW_TOKEN)
    rule_is_needed(owner, ALONE, "w0 starts; w0 appends", deleted, NOT_RUN_AND_EFFECT)


def test_t2_a_frozen_worker_that_adopts_the_lease_has_unfenced_itself(
    rule_is_needed: RuleIsNeeded,
) -> None:
    bounds = Bounds(at_once=2, attempts=1, ticks=1, questions=1, crashes=0)
    script = """w0 starts; w0 reads the owner's token 1; w0 appends; w0 reads the owner's token 1;
        time passes; the owner's lease moves to 2; w1 starts"""
    owner = owner_named("fences by lease")
    rule_is_needed(owner, bounds, script, (TOKEN_IS_NOT_ADOPTED,), NOT_RUN_AND_EFFECT)


RETAINED = Bounds(attempts=2, ticks=4, questions=1, crashes=0)
COMMITTED_UNHEARD = """w0 starts; w0 appends; a1 is written; a1 lands and commits;
    a1: the reply is lost; w0 appends"""


def test_t3_a_resend_lands_before_its_key_can_be_forgotten(rule_is_needed: RuleIsNeeded) -> None:
    owner = owner_named("dedupes, forgets")
    rule_is_needed(owner, RETAINED, COMMITTED_UNHEARD, (INSIDE_RETENTION,), TWO_EFFECTS)


def test_t3_the_pause_of_the_resender_is_inside_the_window(rule_is_needed: RuleIsNeeded) -> None:
    owner = owner_named("dedupes, forgets")
    rule_is_needed(owner, RETAINED, COMMITTED_UNHEARD, (PAUSE_OF_THE_RESENDER,), TWO_EFFECTS)


def test_t4_a_refusal_settles_nothing_while_a_resend_is_unknown(
    rule_is_needed: RuleIsNeeded,
) -> None:
    bounds = Bounds(at_once=2, attempts=2, ticks=1, questions=1, crashes=0)
    script = """w0 starts; w0 appends; a1 is written; a1 lands and is refused; time passes;
        w1 starts; w1 appends; w1 gets no answer; w1 appends"""
    owner = owner_named("dedupes")
    rule_is_needed(owner, bounds, script, (REFUSAL_ALONE,), NOT_RUN_AND_EFFECT)


def test_t5_a_refusal_opens_no_other_key_while_an_attempt_is_unknown(
    rule_is_needed: RuleIsNeeded,
) -> None:
    bounds = Bounds(workers=1, attempts=2, ticks=0, questions=1, crashes=0, retries=1, runs=2)
    script = "w0 starts; w0 appends; a1 is written; a1 times out"
    owner = owner_named("dedupes")
    rule_is_needed(owner, bounds, script, (UNKNOWN_COMES_FIRST, KEY_UNTIL_REFUSED), TWO_EFFECTS)


def test_t6_an_old_answer_is_judged_against_every_attempt_now_in_the_store(
    rule_is_needed: RuleIsNeeded,
) -> None:
    bounds = Bounds(at_once=2, attempts=2, ticks=2, questions=1, crashes=0, stalls=True)
    script = """w0 starts; w0 appends; time passes; w1 starts; w1 appends;
        the owner answers w1: absent, final; a1 is not sent; w0 finds that the stream moved;
        w0 appends"""
    owner = owner_named("final")
    rule_is_needed(owner, bounds, script, (EVERY_ATTEMPT_NOW,), NOT_RUN_AND_EFFECT)


def test_t7_a_true_exclusion_makes_no_answer_final(rule_is_needed: RuleIsNeeded) -> None:
    bounds = Bounds(attempts=1, ticks=0, questions=1, relays=1)
    owner = owner_named("promises nothing")
    script = f"{TIMED_OUT}; w0 crashes"
    rule_is_needed(owner, bounds, script, (EXCLUSION_IS_NO_FINALITY,), NOT_RUN_AND_EFFECT)


def test_t8_a_relayed_answer_is_as_old_as_the_page_it_was_read_on(
    rule_is_needed: RuleIsNeeded,
) -> None:
    bounds = Bounds(attempts=1, ticks=2, questions=1, crashes=0, relays=1)
    owner = owner_named("settles")
    script = f"{TIMED_OUT}; a person opens the page and the owner says: absent, final"
    rule_is_needed(owner, bounds, script, (RELAY_BEGINS_AT_OPENING,), NOT_RUN_AND_EFFECT)


def test_t10_a_clock_that_steps_forward_makes_no_answer_final(
    rule_is_needed: RuleIsNeeded,
) -> None:
    bounds = Bounds(attempts=1, ticks=1, questions=2, crashes=0, clock_steps=True)
    owner = owner_named("settles")
    rule_is_needed(owner, bounds, TIMED_OUT, (MONOTONIC_CLOCK,), NOT_RUN_AND_EFFECT)


def test_t11_absent_in_a_view_that_forgets_is_no_answer(rule_is_needed: RuleIsNeeded) -> None:
    bounds = Bounds(attempts=1, ticks=2, crashes=0)
    owner = owner_named("settles, partial views")
    rule_is_needed(owner, bounds, COMMITTED_UNHEARD, (VIEW_IS_PARTIAL,), NOT_RUN_AND_EFFECT)


def test_t12_a_request_in_the_backlog_outlives_its_socket(rule_is_needed: RuleIsNeeded) -> None:
    bounds = Bounds(attempts=2, ticks=0, crashes=0)
    owner = owner_named("promises nothing")
    rule_is_needed(owner, bounds, TIMED_OUT, (FINAL_AT_ALL,), TWO_EFFECTS)


def test_t13_a_question_begins_after_the_end_was_stored(rule_is_needed: RuleIsNeeded) -> None:
    bounds = Bounds(at_once=2, attempts=2, ticks=1, questions=1, crashes=0)
    script = """w0 starts; w0 appends; time passes; w1 starts; w1 appends;
        the owner answers w1: absent, final"""
    rule_is_needed(owner_named("final"), bounds, script, (END_FIRST,), TWO_EFFECTS)


def test_t14_a_freed_lock_of_a_database_would_prove_no_death() -> None:
    owner = owner_named("final")
    bounds = Bounds(at_once=2, attempts=2, ticks=0, questions=1, crashes=0)
    frozen = ["w0 starts", "w0 appends", "w1 starts"]
    space = Space(owner, bounds)
    found = search(space, follow(space, frozen))
    assert found.wrong is None, timeline(space, found)
    space = Space(owner, bounds._replace(backends_lie=True))
    found = search(space, follow(space, frozen), frozenset({TWO_EFFECTS}))
    print(timeline(space, found))
    assert found.wrong == TWO_EFFECTS


def test_t14_the_lock_of_a_worker_that_lives_proves_no_death(tmp_path: Path) -> None:
    frozen, other = Worker(tmp_path), Worker(tmp_path)
    assert other.proof_of_death(frozen.record) is None
    frozen.end(leave_no_trace=False)
    assert other.proof_of_death(frozen.record) is not None
    other.end(leave_no_trace=False)
