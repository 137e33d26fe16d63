"""Check 6, what may follow an unknown attempt, and the outcome that the answers support."""

from __future__ import annotations

import pytest

from .trails import (
    CONTROLS,
    KEY,
    OTHER_KEY,
    Json,
    Raw,
    attempt,
    control,
    expect,
    found,
    lost,
    record,
    two,
    with_value,
)

DEDUPLICATES = {"deduplicatesByKey": True}
HELD = "effect_held"
RETRY = "retry_after_unknown"

# --- check 6 -----------------------------------------------------------------------------------


@pytest.mark.parametrize("reply", ["timeout", "connection_lost"])
def test_a_resend_after_an_unknown_attempt_is_denied(reply: str) -> None:
    expect(with_value(two(0, 10), "/attempts/0/reply", reply), RETRY)


@pytest.mark.parametrize("reply", ["confirmed", "no_effect"])
def test_an_attempt_after_a_known_one_passes_check_6(reply: str) -> None:
    expect(with_value(two(0, 10), "/attempts/0/reply", reply), HELD)


@pytest.mark.parametrize(
    ("first", "second", "numbers", "reason"),
    [
        ("0", "0.000000000000000001", (2, 1), RETRY),
        ("10", "10", (1, 2), RETRY),
        ("10", "10", (2, 1), HELD),
        ("10", "9", (1, 2), RETRY),
        ("10", "9", (2, 1), HELD),
    ],
    ids=["later", "same time, higher", "same time, lower", "earlier, higher", "earlier, lower"],
)
def test_either_a_later_time_or_a_higher_number_makes_an_attempt_after_another(
    first: str, second: str, numbers: tuple[int, int], reason: str
) -> None:
    sent = [attempt(numbers[0], first, "timeout"), attempt(numbers[1], second, "confirmed")]
    for attempts in (sent, sent[::-1]):
        expect(record(attempts, "committed"), reason)


@pytest.mark.parametrize(
    ("second", "retention", "reason"),
    [
        ("60", "60", HELD),
        ("60", "60.0", HELD),
        ("60", "6e1", HELD),
        ("60", "600E-1", HELD),
        ("60.000000000000000001", "60", RETRY),
        ("60.000000000000000001", "60.000000000000000001", HELD),
        ("60", "59.99999999999999999999", RETRY),
        ("0.3", "0.3", HELD),
        ("0.3", "0.29999999999999998889", RETRY),
        ("0.1", "0.1000000000000000055511151231257827", HELD),
        ("0.1000000000000000055511151231257827", "0.1", RETRY),
        ("1", "0", RETRY),
        ("0", "0", HELD),
        ("0", "-0", HELD),
        ("0.5", "-0.0e5", RETRY),
        ("0.000000001", "1e-9", HELD),
        ("0.000000001", "9.9e-10", RETRY),
        ("1", "1e-400", RETRY),
        ("0", "1e-400", HELD),
        ("599", "1e308", HELD),
    ],
)
def test_the_retention_window_is_inclusive_and_compared_as_the_decimal_written(
    second: str, retention: str, reason: str
) -> None:
    owner = {**DEDUPLICATES, "keyRetentionSeconds": Raw(retention)}
    expect(two(0, second, owner=owner), reason)


@pytest.mark.parametrize("retention", ["1e-99999999", "1e-999999999999999999999999", "0e999999999"])
def test_a_retention_too_small_to_write_out_is_still_compared(retention: str) -> None:
    owner = {**DEDUPLICATES, "keyRetentionSeconds": Raw(retention)}
    expect(two(0, 1, owner=owner), RETRY)
    expect(two(1, 1, owner=owner), HELD)


def test_no_retention_limit_covers_any_resend() -> None:
    far = with_value(
        two(0, 1, owner=DEDUPLICATES), "/attempts/1/dispatchedAt", "9999-12-31T00:00:00Z"
    )
    expect(far, HELD)


def test_a_retention_of_an_owner_that_does_not_deduplicate_covers_nothing() -> None:
    expect(two(0, 10, owner={"keyRetentionSeconds": 3600}), RETRY)


def test_the_difference_is_signed_so_an_earlier_time_is_inside_any_window() -> None:
    owner = {**DEDUPLICATES, "keyRetentionSeconds": 0}
    expect(two(10, 5, owner=owner), HELD)
    expect(two(5, 10, owner=owner), RETRY)


def test_the_window_runs_from_every_unknown_attempt_and_not_from_the_last() -> None:
    owner = {**DEDUPLICATES, "keyRetentionSeconds": 10}
    sent = [attempt(1, 0, "timeout"), attempt(2, 8, "timeout"), attempt(3, 16, "confirmed")]
    expect(record(sent, "committed", owner=owner), RETRY)
    expect(record(sent[:2], "unknown", owner=owner), HELD)


def test_deduplication_covers_only_the_same_key() -> None:
    other = two(0, 10, owner=DEDUPLICATES)
    other["attempts"][1]["idempotencyKey"] = OTHER_KEY
    expect(other, RETRY)
    other["attempts"][0]["idempotencyKey"] = OTHER_KEY
    expect(other, HELD)


@pytest.mark.parametrize(
    ("answered", "reason"),
    [
        ("9", RETRY),
        ("10", RETRY),
        ("10.00000000000000000001", HELD),
        ("20", HELD),
        ("20.00000000000000000000", HELD),
        ("20.00000000000000000001", RETRY),
    ],
)
def test_an_absent_answer_covers_after_the_first_dispatch_up_to_the_second(
    answered: str, reason: str
) -> None:
    expect(two(10, 20, reconciliations=[found("absent", answered)]), reason)


@pytest.mark.parametrize(
    "answer",
    [
        found("absent", 15, final=False),
        found("present", 15),
        found("absent", 15, key=OTHER_KEY),
    ],
    ids=["not final", "present", "another key"],
)
def test_only_a_final_absent_answer_under_the_unknown_attempts_key_covers(answer: Json) -> None:
    expect(two(10, 20, reconciliations=[answer]), RETRY)


def test_the_answer_must_be_under_the_first_attempts_key_and_not_the_seconds() -> None:
    changed = two(10, 20, reconciliations=[found("absent", 15, key=OTHER_KEY)])
    expect(with_value(changed, "/attempts/1/idempotencyKey", OTHER_KEY), RETRY)
    expect(with_value(changed, "/attempts/0/idempotencyKey", OTHER_KEY), HELD)


def test_every_pair_is_looked_at_and_not_only_neighbours() -> None:
    sent = [attempt(1, 0, "timeout"), attempt(2, 10, "no_effect"), attempt(3, 20, "confirmed")]
    expect(record(sent, "committed", reconciliations=[found("absent", 15)]), RETRY)
    expect(record(sent, "committed", reconciliations=[found("absent", 5)]), HELD)


def test_a_higher_number_with_an_earlier_time_has_no_answer_between() -> None:
    expect(two(20, 10, reconciliations=[found("absent", 15)]), RETRY)


def test_each_unknown_attempt_needs_its_own_answer() -> None:
    sent = [attempt(1, 0, "timeout"), attempt(2, 10, "timeout"), attempt(3, 20, "confirmed")]
    expect(record(sent, "committed", reconciliations=[found("absent", 5)]), RETRY)
    both = [found("absent", 5), found("absent", 15)]
    expect(record(sent, "committed", reconciliations=both), HELD)


# --- checks 9 and 10, and the outcome that the answers support ---------------------------------


@pytest.mark.parametrize("reported", ["committed", "not_run"])
def test_an_unknown_outcome_reported_as_settled_is_denied(reported: str) -> None:
    expect(lost(None, reported), "outcome_settled_without_authority")


@pytest.mark.parametrize("name", CONTROLS)
def test_a_settled_outcome_reported_as_another_is_denied(name: str) -> None:
    right = control(name)["reported"]["outcome"]
    for wrong in {"committed", "not_run", "unknown"} - {right}:
        changed = with_value(control(name), "/reported/outcome", wrong)
        expect(changed, "outcome_disagrees_with_authority")


def supports(outcome: str, attempts: list[Json], *answers: Json) -> None:
    """Hold the reader to this outcome and to no other."""
    owner = {"deduplicatesByKey": True}
    expect(record(attempts, outcome, reconciliations=list(answers), owner=owner), HELD)
    for other in {"committed", "not_run", "unknown"} - {outcome}:
        reason = "disagrees_with" if outcome != "unknown" else "settled_without"
        said_otherwise = record(attempts, other, reconciliations=list(answers), owner=owner)
        expect(said_otherwise, f"outcome_{reason}_authority")


LOST = attempt(1, 10, "timeout")


def test_a_confirmed_attempt_commits_whatever_the_owner_answers() -> None:
    supports("committed", [attempt(1, 10, "confirmed")], found("absent", 20))
    supports("committed", [LOST, attempt(2, 11, "confirmed")], found("absent", 20))


@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("second", [5, 10, 20])
def test_a_present_answer_commits_final_or_not_and_at_any_time(final: bool, second: int) -> None:
    supports("committed", [LOST], found("present", second, final=final))
    supports("committed", [], found("present", second, final=final))


def test_a_present_answer_counts_under_the_operations_key_or_an_attempts() -> None:
    under_other = {**LOST, "idempotencyKey": OTHER_KEY}
    supports("committed", [under_other], found("present", 20, key=OTHER_KEY))
    supports("committed", [under_other], found("present", 20, key=KEY))
    supports("committed", [attempt(1, 1, "no_effect")], found("present", 20))


def test_a_present_answer_under_a_key_that_nobody_used_is_ignored() -> None:
    supports("unknown", [LOST], found("present", 20, key=OTHER_KEY))
    supports("not_run", [], found("present", 20, key=OTHER_KEY))


def test_without_an_unknown_attempt_nothing_ran() -> None:
    supports("not_run", [])
    supports("not_run", [attempt(1, 1, "no_effect"), attempt(2, 2, "no_effect")])


@pytest.mark.parametrize(
    ("second", "outcome"),
    [("9", "unknown"), ("10", "unknown"), ("10.0000000000000000001", "not_run"), ("99", "not_run")],
)
def test_a_final_absent_answer_settles_what_was_sent_before_it(second: str, outcome: str) -> None:
    supports(outcome, [LOST], found("absent", second))


def test_an_absent_answer_that_is_not_final_settles_nothing() -> None:
    supports("unknown", [LOST], found("absent", 20, final=False))


def test_an_absent_answer_under_another_key_settles_nothing() -> None:
    supports("unknown", [LOST], found("absent", 20, key=OTHER_KEY))


def test_the_answer_must_be_later_than_every_unknown_attempt_under_its_key() -> None:
    sent = [LOST, attempt(2, 20, "timeout")]
    supports("unknown", sent, found("absent", 15))
    supports("unknown", sent, found("absent", 20))
    supports("not_run", sent, found("absent", 21))
    backwards = [attempt(1, 20, "timeout"), attempt(2, 10, "timeout")]
    supports("unknown", backwards, found("absent", 15))
    supports("not_run", backwards, found("absent", 21))


def test_a_known_attempt_after_the_answer_does_not_unsettle_it() -> None:
    supports("not_run", [LOST, attempt(2, 30, "no_effect")], found("absent", 20))


def test_each_key_of_an_unknown_attempt_needs_its_own_answer() -> None:
    other = attempt(2, 20, "timeout", idempotencyKey=OTHER_KEY)
    answers = [found("absent", 15), found("absent", 25, key=OTHER_KEY)]
    settled = record([LOST, other], "not_run", reconciliations=answers)
    expect(settled, HELD)
    expect({**settled, "reconciliations": answers[:1]}, "outcome_settled_without_authority")
    half = {**settled, "reconciliations": answers[:1], "reported": {"outcome": "unknown"}}
    expect(half, HELD)


def test_a_notice_settles_nothing_and_permits_nothing() -> None:
    notice = {"at": "2025-03-01T12:00:15Z", "from": "billing", "kind": "invoice", "final": True}
    expect({**lost(None), "notices": [notice]}, HELD)
    expect({**lost(None, "committed"), "notices": [notice]}, "outcome_settled_without_authority")
    expect({**two(10, 20), "notices": [notice]}, RETRY)
