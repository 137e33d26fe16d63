"""Each of the ten reasons, the seed's five controls, and the edges of the readings."""

from __future__ import annotations

import json

import pytest
from building import (
    OTHER_DIGEST,
    OTHER_KEY,
    absent,
    answer,
    attempt,
    held,
    judged,
    lease,
    present,
    reason,
    trail,
)

from counterfoil.reader.checks import CHECKS, REASONS
from counterfoil.reader.verdict import Decision, Malformed, Verdict, judge_bytes

RESERVATION = {"units": 1, "expiresAt": "2026-03-01T10:00:30Z", "charged": True}


def test_the_reasons_are_the_seeds_and_in_its_order() -> None:
    assert REASONS == (
        "contract_id_missing",
        "contract_id_unknown",
        "operation_identity_missing",
        "idempotency_key_args_changed",
        "dispatch_beyond_lease",
        "retry_after_unknown",
        "duplicate_effect",
        "unknown_released",
        "outcome_settled_without_authority",
        "outcome_disagrees_with_authority",
    )


DENIED = {
    "contract_id_missing": {
        name: member
        for name, member in trail("committed", attempt(1, 0, "confirmed")).items()
        if name != "contractId"
    },
    "contract_id_unknown": trail("committed", contractId="https://example.com/another"),
    "operation_identity_missing": trail("committed", attempt(1, 0, "confirmed", key="")),
    "idempotency_key_args_changed": trail(
        "committed", attempt(1, 0, "confirmed", argsDigest=OTHER_DIGEST)
    ),
    "dispatch_beyond_lease": trail(
        "committed", held(1, 61, "confirmed", "w1", 1), leases=[lease("w1", 1, 0, 60)]
    ),
    "retry_after_unknown": trail("committed", attempt(1, 0, "timeout"), attempt(2, 5, "confirmed")),
    "duplicate_effect": trail("committed", attempt(1, 0, "confirmed"), effects=2),
    "unknown_released": trail(
        "unknown", attempt(1, 0, "timeout"), reservation={**RESERVATION, "charged": False}
    ),
    "outcome_settled_without_authority": trail("not_run", attempt(1, 0, "timeout")),
    "outcome_disagrees_with_authority": trail("not_run", attempt(1, 0, "confirmed"), effects=1),
}


@pytest.mark.parametrize("expected", REASONS)
def test_a_record_is_denied_with_the_first_check_that_fails(expected: str) -> None:
    verdict = judged(DENIED[expected])
    assert (verdict.decision, verdict.reason) == (Decision.DENY, expected)


@pytest.mark.parametrize("expected", REASONS[2:])
def test_a_denial_names_what_it_is_about(expected: str) -> None:
    verdict = judged(DENIED[expected])
    assert verdict.explanation
    assert verdict.members
    for pointer in verdict.members:
        found = json.loads(json.dumps(DENIED[expected]))
        for token in pointer.split("/")[1:]:
            found = found[int(token)] if isinstance(found, list) else found[token]


@pytest.mark.parametrize("expected", REASONS)
def test_without_its_check_the_record_is_not_denied_for_that_reason(expected: str) -> None:
    other = judge_bytes(json.dumps(DENIED[expected]).encode(), without={expected})
    assert isinstance(other, Malformed) or other.reason != expected


def test_every_check_has_a_docstring_with_its_number() -> None:
    for number, check in enumerate(CHECKS, 1):
        assert f"Check {number}:" in (check.run.__doc__ or "")


# --- the seed's controls -------------------------------------------------------------------------

CONTROLS = {
    "a timeout reconciled as absent": trail(
        "not_run", attempt(1, 0, "timeout"), answers=[absent(30)], effects=0
    ),
    "a resend after a final absent answer": trail(
        "committed",
        attempt(1, 0, "timeout"),
        attempt(2, 60, "confirmed"),
        answers=[absent(30)],
    ),
    "a resend under the same key to an owner that deduplicates": trail(
        "committed",
        attempt(1, 0, "connection_lost"),
        attempt(2, 60, "confirmed"),
        deduplicates=True,
        retention=86_400,
    ),
    "a lease handed over and reconciled": trail(
        "committed",
        held(1, 5, "connection_lost", "w1", 7),
        held(2, 95, "confirmed", "w2", 8),
        answers=[absent(90)],
        leases=[lease("w1", 7, 0, 60), lease("w2", 8, 70, 130)],
    ),
    "a late commit waited for": trail(
        "committed",
        attempt(1, 0, "connection_lost"),
        answers=[answer(10, "absent", final=False), answer(40, "present", final=False)],
    ),
}


@pytest.mark.parametrize("name", CONTROLS)
def test_the_seeds_control_is_allowed(name: str) -> None:
    verdict = judged(CONTROLS[name])
    assert (verdict.decision, verdict.reason) == (Decision.ALLOW, "effect_held")
    assert verdict.advisories == ()


# --- checks 1 to 3 -------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, 1, [], {}, "", "uncertain-effect"])
def test_any_other_contract_is_unknown_whatever_the_rest_is(value: object) -> None:
    assert reason({"contractId": value, "attempts": 7}) == "contract_id_unknown"


def test_a_record_of_no_contract_is_not_called_malformed() -> None:
    assert reason({}) == "contract_id_missing"


@pytest.mark.parametrize("missing", [None, "", "left out"])
@pytest.mark.parametrize("name", ["idempotencyKey", "argsDigest"])
@pytest.mark.parametrize("place", ["operation", "attempt"])
def test_an_identity_that_is_absent_null_or_empty_is_missing(
    place: str, name: str, missing: str | None
) -> None:
    values = trail("committed", attempt(1, 0, "timeout"), attempt(2, 9, "confirmed"))
    part = values["operation"] if place == "operation" else values["attempts"][1]
    part[name] = missing
    if missing == "left out":
        del part[name]
    assert reason(values) == "operation_identity_missing"


def test_a_missing_identity_comes_before_any_other_shape() -> None:
    values = trail("committed", attempt(1, 0, "confirmed", key=""), reservation=5)
    assert reason(values) == "operation_identity_missing"


# --- check 4 -------------------------------------------------------------------------------------


def test_other_arguments_under_another_key_are_not_check_4() -> None:
    values = trail("committed", attempt(1, 0, "confirmed", key=OTHER_KEY, argsDigest=OTHER_DIGEST))
    assert reason(values) == "effect_held"


# --- check 5 -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-1, "dispatch_beyond_lease"),
        (0, "effect_held"),
        (60, "effect_held"),
        (60.000001, "dispatch_beyond_lease"),
    ],
)
def test_a_lease_holds_from_its_first_instant_to_its_last(seconds: float, expected: str) -> None:
    values = trail(
        "committed", held(1, seconds, "confirmed", "w1", 1), leases=[lease("w1", 1, 0, 60)]
    )
    assert reason(values) == expected


@pytest.mark.parametrize("leases", [[], None])
def test_a_token_without_any_lease_is_beyond_a_lease(leases: list[object] | None) -> None:
    values = trail("committed", held(1, 0, "confirmed", "w1", 1), leases=leases)
    assert reason(values) == "dispatch_beyond_lease"


def test_a_worker_alone_needs_no_lease() -> None:
    assert reason(trail("committed", attempt(1, 0, "confirmed", worker="w1"))) == "effect_held"


@pytest.mark.parametrize("member", [{"worker": "w1"}, {"fencingToken": 1}, {}])
def test_where_there_are_leases_each_attempt_names_worker_and_token(
    member: dict[str, object],
) -> None:
    values = trail(
        "committed", attempt(1, 5, "confirmed", **member), leases=[lease("w1", 1, 0, 60)]
    )
    assert reason(values) == "dispatch_beyond_lease"


@pytest.mark.parametrize(("worker", "token"), [("w2", 1), ("w1", 2)])
def test_a_lease_of_another_worker_or_token_does_not_count(worker: str, token: int) -> None:
    values = trail(
        "committed", held(1, 5, "confirmed", worker, token), leases=[lease("w1", 1, 0, 60)]
    )
    assert reason(values) == "dispatch_beyond_lease"


@pytest.mark.parametrize(
    ("granted", "expected"), [(5, "dispatch_beyond_lease"), (5.000001, "effect_held")]
)
def test_a_higher_token_supersedes_from_the_instant_it_is_granted(
    granted: float, expected: str
) -> None:
    values = trail(
        "committed",
        held(1, 5, "confirmed", "w1", 1),
        leases=[lease("w1", 1, 0, 60), lease("w2", 2, granted, 90)],
    )
    assert reason(values) == expected


def test_a_lease_that_ends_before_it_begins_holds_nothing_and_still_supersedes() -> None:
    void = lease("w2", 2, 3, 1)
    superseded = trail(
        "committed", held(1, 5, "confirmed", "w1", 1), leases=[lease("w1", 1, 0, 60), void]
    )
    beyond = trail("committed", held(1, 2, "confirmed", "w2", 2), leases=[void])
    assert [reason(superseded), reason(beyond)] == ["dispatch_beyond_lease"] * 2


def test_a_renewed_lease_counts_whatever_the_order_it_is_listed_in() -> None:
    values = trail(
        "committed",
        held(1, 90, "confirmed", "w1", 1),
        leases=[lease("w1", 1, 60, 120), lease("w1", 1, 0, 60)],
    )
    assert reason(values) == "effect_held"


def test_a_higher_token_listed_first_is_seen() -> None:
    values = trail(
        "committed",
        held(1, 90, "confirmed", "w1", 1),
        leases=[lease("w2", 2, 100, 110), lease("w3", 3, 80, 85), lease("w1", 1, 60, 120)],
    )
    assert reason(values) == "dispatch_beyond_lease"


# --- check 6 -------------------------------------------------------------------------------------


def resent(answers: list[dict[str, object]], second: float = 60, **more: object) -> object:
    values = trail(
        "committed",
        attempt(1, 0, "timeout"),
        attempt(2, second, "confirmed"),
        answers=answers,
        **more,  # type: ignore[arg-type]
    )
    return reason(values)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (0, "retry_after_unknown"),  # at the dispatch that it should cover
        (0.000001, "effect_held"),
        (60, "effect_held"),  # at the dispatch that it permits
        (60.000001, "retry_after_unknown"),
    ],
)
def test_an_absent_answer_covers_between_the_dispatches(seconds: float, expected: str) -> None:
    assert resent([absent(seconds)]) == expected


def test_an_absent_answer_that_is_not_final_covers_nothing() -> None:
    assert resent([answer(30, "absent", final=False)]) == "retry_after_unknown"


def test_an_absent_answer_about_another_key_covers_nothing() -> None:
    assert resent([absent(30, OTHER_KEY)]) == "retry_after_unknown"


@pytest.mark.parametrize(
    ("retention", "expected"),
    [
        (None, "effect_held"),
        (60, "effect_held"),
        (59, "retry_after_unknown"),
        (59.999999, "retry_after_unknown"),
        (60.0, "effect_held"),
    ],
)
def test_deduplication_holds_to_the_end_of_its_window(retention: object, expected: str) -> None:
    assert resent([], deduplicates=True, retention=retention) == expected


def test_the_window_is_compared_as_the_decimal_that_was_written() -> None:
    values = trail(
        "committed",
        attempt(1, 0, "timeout"),
        attempt(2, 60, "confirmed", dispatchedAt="2026-03-01T10:01:00.00000000000000000001Z"),
        deduplicates=True,
        retention="WINDOW",
    )
    text = json.dumps(values)
    reasons = []
    for window in ("60.00000000000000000001", "60.000000000000000000009", "6e1"):
        verdict = judge_bytes(text.replace('"WINDOW"', window).encode())
        assert isinstance(verdict, Verdict)
        reasons.append(verdict.reason)
    assert reasons == ["effect_held", "retry_after_unknown", "retry_after_unknown"]


def test_another_key_is_not_deduplicated() -> None:
    values = trail(
        "committed",
        attempt(1, 0, "timeout"),
        attempt(2, 60, "confirmed", key=OTHER_KEY),
        deduplicates=True,
    )
    assert reason(values) == "retry_after_unknown"


def test_a_higher_number_is_a_follower_even_at_an_earlier_time() -> None:
    values = trail("committed", attempt(1, 60, "timeout"), attempt(2, 0, "confirmed"))
    assert reason(values) == "retry_after_unknown"


def test_a_follower_with_an_earlier_time_is_inside_any_window() -> None:
    values = trail(
        "committed",
        attempt(1, 60, "timeout"),
        attempt(2, 0, "confirmed"),
        deduplicates=True,
        retention=0,
    )
    assert reason(values) == "effect_held"


def test_a_later_time_is_a_follower_even_with_a_lower_number() -> None:
    values = trail("committed", attempt(2, 0, "timeout"), attempt(1, 60, "confirmed"))
    assert reason(values) == "retry_after_unknown"


def test_every_pair_is_looked_at_and_the_first_that_fails_is_named() -> None:
    values = trail(
        "committed",
        attempt(1, 0, "timeout"),
        attempt(2, 60, "timeout"),
        attempt(3, 90, "no_effect"),
        attempt(4, 120, "confirmed"),
        answers=[absent(30)],
    )
    verdict = judged(values)
    assert verdict.members == ("/attempts/2", "/attempts/1")
    assert "attempt 3 follows attempt 2" in verdict.explanation


def test_an_earlier_attempt_with_a_higher_number_is_seen_behind_one_that_is_deduplicated() -> None:
    values = trail(
        "unknown",
        attempt(5, 0, "no_effect", key=OTHER_KEY),
        attempt(9, 10, "no_effect"),
        attempt(4, 20, "timeout"),
        deduplicates=True,
    )
    assert judged(values).members == ("/attempts/0", "/attempts/2")
    del values["attempts"][0]
    assert reason(values) == "effect_held"


def test_what_follows_a_definite_refusal_is_free() -> None:
    values = trail("committed", attempt(1, 0, "no_effect"), attempt(2, 1, "confirmed"))
    assert reason(values) == "effect_held"


# --- checks 7 to 10 ------------------------------------------------------------------------------


@pytest.mark.parametrize("effects", [0, 1])
def test_one_effect_is_no_duplicate(effects: int) -> None:
    assert reason(trail("unknown", attempt(1, 0, "timeout"), effects=effects)) == "effect_held"


def test_what_an_effect_holds_is_not_read() -> None:
    values = trail("committed", attempt(1, 0, "confirmed"), ownerEffects=[{"id": 5, "at": "when"}])
    assert reason(values) == "effect_held"


def test_an_unknown_outcome_keeps_its_reservation_after_it_expired() -> None:
    values = trail("unknown", attempt(1, 60, "timeout"), reservation=RESERVATION)
    assert reason(values) == "effect_held"


def test_a_settled_outcome_may_release_its_reservation() -> None:
    values = trail(
        "committed", attempt(1, 0, "confirmed"), reservation={**RESERVATION, "charged": False}
    )
    assert reason(values) == "effect_held"


def test_a_notice_settles_nothing() -> None:
    values = trail(
        "committed",
        attempt(1, 0, "timeout"),
        notices=[{"at": "soon", "from": "billing", "kind": "invoice", "final": True, "units": 1}],
    )
    assert reason(values) == "outcome_settled_without_authority"


def test_unknown_reported_where_the_owner_said_it_is_check_10() -> None:
    values = trail("unknown", attempt(1, 0, "timeout"), answers=[present(5)], effects=1)
    assert reason(values) == "outcome_disagrees_with_authority"


def test_an_operation_without_attempts_is_not_run() -> None:
    assert reason(trail("not_run", answers=[absent(0)], effects=0)) == "effect_held"
