"""The nine advisories: what the ten checks let pass, each with its near misses."""

from __future__ import annotations

from typing import Any

import pytest

from counterfoil.reader.verdict import Verdict, judge_briefly, judge_bytes

from .trails import (
    CONTROLS,
    OTHER_DIGEST,
    OTHER_KEY,
    Json,
    Raw,
    attempt,
    control,
    effects,
    found,
    full,
    held,
    place,
    record,
    said,
    two,
    with_value,
)

CODES = {
    "resend_after_committed",
    "absent_after_retention",
    "unknown_beside_confirmed",
    "ledger_disagrees",
    "present_before_dispatch",
    "answers_contradict",
    "foreign_arguments",
    "token_shared",
    "order_disagrees",
}
DEDUPLICATES = {"deduplicatesByKey": True}


def judged(value: Json) -> Verdict:
    """Judge both ways; hold them to the same advisories and each to what it must carry."""
    full_verdict, brief = judge_bytes(said(value)), judge_briefly(said(value))
    assert isinstance(full_verdict, Verdict)
    assert isinstance(brief, Verdict)
    assert full_verdict.advisories == brief.advisories
    for advisory in full_verdict.advisories:
        assert advisory.code in CODES
        assert advisory.detail.strip()
        assert advisory.members, f"{advisory.code} names no member"
        for pointer in advisory.members:
            holder, name = place(value, pointer)
            assert holder[name] is not None, pointer
    return full_verdict


def codes(value: Json) -> set[str]:
    """Return the codes of a record that is allowed."""
    verdict = judged(value)
    assert verdict.reason == "effect_held"
    return {str(advisory.code) for advisory in verdict.advisories}


def members(value: Json, code: str) -> set[str]:
    return {
        pointer
        for advisory in judged(value).advisories
        if advisory.code == code
        for pointer in advisory.members
    }


def about(pointers: set[str], prefix: str) -> bool:
    return any(pointer == prefix or pointer.startswith(prefix + "/") for pointer in pointers)


def sent(*attempts: Json, outcome: str = "committed", **over: Any) -> Json:
    """Return a record whose ledger agrees with its outcome."""
    over.setdefault("ownerEffects", effects(1 if outcome == "committed" else 0))
    return record(list(attempts), outcome, **over)


@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_of_the_seed_has_no_advisory(name: str) -> None:
    assert codes(control(name)) == set()


def test_a_record_with_every_optional_member_has_no_advisory() -> None:
    assert codes(full()) == set()


def test_an_empty_trail_has_no_advisory() -> None:
    assert codes(sent(outcome="not_run")) == set()


def test_a_denied_record_keeps_its_advisories() -> None:
    denied = sent(
        attempt(1, 0, "timeout", idempotencyKey=OTHER_KEY, argsDigest=OTHER_DIGEST),
        attempt(2, 10, "confirmed"),
    )
    verdict = judged(denied)
    assert verdict.reason == "retry_after_unknown"
    assert "foreign_arguments" in {advisory.code for advisory in verdict.advisories}


# --- resend_after_committed --------------------------------------------------------------------

CONFIRMED_TWICE = sent(attempt(1, 0, "confirmed"), attempt(2, 10, "confirmed"))


def test_an_attempt_after_a_confirmed_one_is_a_resend_after_committed() -> None:
    assert codes(CONFIRMED_TWICE) == {"resend_after_committed"}
    assert about(members(CONFIRMED_TWICE, "resend_after_committed"), "/attempts/1")


def test_an_attempt_after_a_present_answer_is_a_resend_after_committed() -> None:
    resent = sent(
        attempt(1, 0, "no_effect"),
        attempt(2, 10, "confirmed"),
        reconciliations=[found("present", 5)],
    )
    assert "resend_after_committed" in codes(resent)
    assert about(members(resent, "resend_after_committed"), "/attempts/1")


def test_a_resend_that_the_owner_deduplicates_is_no_resend_after_committed() -> None:
    assert codes({**CONFIRMED_TWICE, "effectOwner": owner(None)}) == set()
    assert codes({**CONFIRMED_TWICE, "effectOwner": owner(10)}) == set()
    assert codes({**CONFIRMED_TWICE, "effectOwner": owner(9)}) == {"resend_after_committed"}


def test_a_resend_under_another_key_is_not_deduplicated() -> None:
    resent = with_value(CONFIRMED_TWICE, "/attempts/1/idempotencyKey", OTHER_KEY)
    assert codes({**resent, "effectOwner": owner(None)}) == {"resend_after_committed"}


def test_an_attempt_before_the_confirmed_one_is_no_resend() -> None:
    assert codes(sent(attempt(1, 0, "no_effect"), attempt(2, 10, "confirmed"))) == set()
    waited = sent(attempt(1, 0, "timeout"), reconciliations=[found("present", 5)])
    assert codes(waited) == set()


def owner(retention_s: Any) -> Json:
    return {"id": "owner-1", "deduplicatesByKey": True, "keyRetentionSeconds": retention_s}


# --- absent_after_retention --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answered", "retention_s", "is_so"),
    [
        ("61", Raw("60"), True),
        ("60.000000000000000001", Raw("60"), True),
        ("60", Raw("60"), False),
        ("59", Raw("60"), False),
        ("0.3", Raw("0.29999999999999998889"), True),
        ("0.3", Raw("0.3"), False),
        ("599", None, False),
    ],
)
def test_an_absent_answer_after_the_retention_may_have_forgotten(
    answered: str, retention_s: Any, is_so: bool
) -> None:
    trail = sent(
        attempt(1, 0, "timeout"),
        outcome="not_run",
        effectOwner=owner(retention_s),
        reconciliations=[found("absent", answered)],
    )
    assert codes(trail) == ({"absent_after_retention"} if is_so else set())
    if is_so:
        assert about(members(trail, "absent_after_retention"), "/reconciliations/0")


def test_a_present_answer_after_the_retention_forgot_nothing() -> None:
    trail = sent(
        attempt(1, 0, "timeout"), effectOwner=owner(60), reconciliations=[found("present", 90)]
    )
    assert codes(trail) == set()


# --- unknown_beside_confirmed ------------------------------------------------------------------


def test_an_unknown_attempt_beside_a_confirmed_one_may_be_a_second_effect() -> None:
    trail = sent(attempt(1, 0, "confirmed"), attempt(2, 10, "timeout"))
    assert "unknown_beside_confirmed" in codes(trail)
    assert about(members(trail, "unknown_beside_confirmed"), "/attempts/1")


def test_an_unknown_attempt_that_is_covered_or_deduplicated_is_no_second_effect() -> None:
    trail = sent(attempt(1, 0, "confirmed"), attempt(2, 10, "timeout"))
    covered = {**trail, "reconciliations": [found("absent", 20)]}
    assert "unknown_beside_confirmed" not in codes(covered)
    assert "unknown_beside_confirmed" not in codes({**trail, "effectOwner": owner(None)})
    before = two(0, 10, reconciliations=[found("absent", 5)])
    assert codes(before) == set()


def test_an_answer_that_does_not_cover_leaves_the_unknown_attempt_beside() -> None:
    trail = sent(attempt(1, 0, "confirmed"), attempt(2, 10, "timeout"))
    for answer in (found("absent", 10), found("absent", 20, final=False)):
        assert "unknown_beside_confirmed" in codes({**trail, "reconciliations": [answer]})


def test_a_refused_attempt_beside_a_confirmed_one_is_known() -> None:
    trail = sent(attempt(1, 0, "no_effect"), attempt(2, 10, "confirmed"))
    assert codes(trail) == set()


# --- ledger_disagrees --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "outcome", "count", "is_so"),
    [
        ("confirmed", "committed", 0, True),
        ("confirmed", "committed", 1, False),
        ("no_effect", "not_run", 1, True),
        ("no_effect", "not_run", 0, False),
        ("timeout", "unknown", 0, False),
        ("timeout", "unknown", 1, False),
    ],
)
def test_the_ledger_and_a_settled_outcome_should_agree(
    reply: str, outcome: str, count: int, is_so: bool
) -> None:
    trail = sent(attempt(1, 0, reply), outcome=outcome, ownerEffects=effects(count))
    assert codes(trail) == ({"ledger_disagrees"} if is_so else set())
    if is_so:
        assert about(members(trail, "ledger_disagrees"), "/ownerEffects")


# --- present_before_dispatch -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answered", "is_so"), [("9", True), ("9.9999999999", True), ("10", False), ("11", False)]
)
def test_an_effect_found_before_anything_was_sent_is_strange(answered: str, is_so: bool) -> None:
    trail = sent(attempt(1, 10, "timeout"), reconciliations=[found("present", answered)])
    assert ("present_before_dispatch" in codes(trail)) is is_so
    if is_so:
        assert about(members(trail, "present_before_dispatch"), "/reconciliations/0")


def test_an_effect_found_absent_before_anything_was_sent_is_not_strange() -> None:
    trail = sent(attempt(1, 10, "confirmed"), reconciliations=[found("absent", 5)])
    assert codes(trail) == set()


# --- answers_contradict ------------------------------------------------------------------------


def answered(*answers: Json) -> Json:
    return sent(attempt(1, 0, "timeout"), reconciliations=list(answers))


def test_present_and_then_final_absent_contradict() -> None:
    trail = answered(found("present", 5), found("absent", 10))
    assert codes(trail) == {"answers_contradict"}
    pointers = members(trail, "answers_contradict")
    assert about(pointers, "/reconciliations/0")
    assert about(pointers, "/reconciliations/1")


def test_answers_are_ordered_by_their_times_and_not_by_the_list() -> None:
    assert codes(answered(found("absent", 10), found("present", 5))) == {"answers_contradict"}
    assert codes(answered(found("present", 10), found("absent", 5))) == set()


def test_a_late_commit_or_an_answer_that_is_not_final_is_no_contradiction() -> None:
    assert codes(answered(found("absent", 5), found("present", 10))) == set()
    assert codes(answered(found("present", 5), found("absent", 10, final=False))) == set()


def test_a_present_answer_that_is_not_final_is_contradicted_too() -> None:
    trail = answered(found("present", 5, final=False), found("absent", 10))
    assert codes(trail) == {"answers_contradict"}


def test_answers_under_two_keys_do_not_contradict() -> None:
    trail = answered(found("present", 5), found("absent", 10, key=OTHER_KEY))
    assert codes(trail) == set()


# --- foreign_arguments, token_shared, order_disagrees ------------------------------------------


def test_an_attempt_with_other_arguments_under_another_key_is_foreign() -> None:
    other = attempt(1, 0, "confirmed", idempotencyKey=OTHER_KEY, argsDigest=OTHER_DIGEST)
    assert codes(sent(other)) == {"foreign_arguments"}
    assert about(members(sent(other), "foreign_arguments"), "/attempts/0")


def test_the_operations_own_arguments_under_another_key_are_not_foreign() -> None:
    assert codes(sent(attempt(1, 0, "confirmed", idempotencyKey=OTHER_KEY))) == set()


def leased(*leases: Json) -> Json:
    return sent(attempt(1, 5, "confirmed", worker="worker-1", fencingToken=1), leases=list(leases))


def test_one_token_with_two_workers_is_shared() -> None:
    trail = leased(held("worker-1", 1, 0, 10), held("worker-2", 1, 20, 30))
    assert codes(trail) == {"token_shared"}
    pointers = members(trail, "token_shared")
    assert about(pointers, "/leases/0")
    assert about(pointers, "/leases/1")


def test_a_renewed_lease_or_another_token_is_not_shared() -> None:
    assert codes(leased(held("worker-1", 1, 0, 10), held("worker-1", 1, 9, 30))) == set()
    assert codes(leased(held("worker-1", 1, 0, 10), held("worker-2", 2, 20, 30))) == set()
    assert codes(leased(held("worker-1", 1, 0, 10), held("worker-1", 2, 20, 30))) == set()


def test_numbers_against_times_disagree() -> None:
    trail = sent(attempt(1, 10, "no_effect"), attempt(2, 5, "no_effect"), outcome="not_run")
    assert codes(trail) == {"order_disagrees"}
    pointers = members(trail, "order_disagrees")
    assert about(pointers, "/attempts/0")
    assert about(pointers, "/attempts/1")


def test_a_reordered_list_gaps_or_equal_times_do_not_disagree() -> None:
    first, second = attempt(1, 5, "no_effect"), attempt(4, 10, "no_effect")
    assert codes(sent(second, first, outcome="not_run")) == set()
    assert (
        codes(sent(first, {**second, "dispatchedAt": first["dispatchedAt"]}, outcome="not_run"))
        == set()
    )


def test_times_that_differ_in_the_last_digit_disagree() -> None:
    first = attempt(1, "5.00000000000000000002", "no_effect")
    second = attempt(2, "5.00000000000000000001", "no_effect")
    assert codes(sent(first, second, outcome="not_run")) == {"order_disagrees"}


def test_an_advisory_never_changes_the_decision() -> None:
    """The most dangerous lawful trail is still allowed, with more than one advisory."""
    trail = sent(
        attempt(1, 10, "confirmed"),
        attempt(2, 5, "no_effect", idempotencyKey=OTHER_KEY, argsDigest=OTHER_DIGEST),
        reconciliations=[found("present", 1), found("absent", 4)],
        ownerEffects=[],
    )
    assert {"ledger_disagrees", "order_disagrees", "foreign_arguments"} <= codes(trail)
