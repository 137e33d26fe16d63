"""The shape of each member: what is malformed, at which JSON Pointer, and its near misses."""

from __future__ import annotations

from typing import Any

import pytest

from counterfoil.reader.verdict import Malformed, judge_briefly, judge_bytes

from . import oracle
from .trails import (
    DIGEST,
    Json,
    Raw,
    attempt,
    expect,
    found,
    full,
    lost,
    place,
    record,
    said,
    two,
    with_value,
    without,
)

HELD = "effect_held"
MALFORMED = oracle.MALFORMED


def expect_at(value: Json, pointer: str) -> None:
    """Hold both of the reader's ways to malformed, at this pointer."""
    expect(value, MALFORMED)
    for judge in (judge_bytes, judge_briefly):
        verdict = judge(said(value))
        assert isinstance(verdict, Malformed)
        assert verdict.path == pointer, f"{judge.__name__}: {verdict.detail}"
        assert verdict.detail.strip()
        assert "\n" not in verdict.detail


def allowed(pointer: str, value: Any) -> None:
    """Say that a member with this value has the right shape: what follows is a decision."""
    changed = with_value(full(), pointer, value)
    told = oracle.judge(said(changed))
    assert told.reason != MALFORMED, "the oracle itself"
    expect(changed, told.reason)


STRINGS = [
    "/operation/id",
    "/operation/action",
    "/effectOwner/id",
    "/leases/0/worker",
    "/reconciliations/0/idempotencyKey",
]
KEYS = ["/operation/idempotencyKey", "/attempts/0/idempotencyKey", "/attempts/1/idempotencyKey"]
DIGESTS = ["/operation/argsDigest", "/attempts/0/argsDigest", "/attempts/1/argsDigest"]
TIMES = [
    "/attempts/0/dispatchedAt",
    "/attempts/1/dispatchedAt",
    "/leases/0/acquiredAt",
    "/leases/1/expiresAt",
    "/reconciliations/0/at",
    "/reservation/expiresAt",
]
BOOLEANS = ["/effectOwner/deduplicatesByKey", "/reconciliations/0/final", "/reservation/charged"]
INTEGERS = ["/attempts/0/attempt", "/leases/0/fencingToken"]
AMOUNTS = ["/reservation/units"]
WORDS = {
    "/attempts/0/reply": ["confirmed", "no_effect", "timeout", "connection_lost"],
    "/reconciliations/0/result": ["present", "absent"],
    "/reported/outcome": ["committed", "not_run", "unknown"],
}
OBJECTS = ["/effectOwner", "/reported"]
LISTS = ["/reconciliations", "/ownerEffects"]
ITEMS = ["/leases/1", "/reconciliations/0", "/ownerEffects/0", "/notices/0"]

MUST_BE_THERE = [
    *STRINGS,
    *TIMES,
    *BOOLEANS,
    *INTEGERS,
    *AMOUNTS,
    *WORDS,
    *OBJECTS,
    *LISTS,
    "/operation",
    "/attempts",
]


@pytest.mark.parametrize("pointer", [*MUST_BE_THERE, "/effectOwner/keyRetentionSeconds"])
def test_a_missing_member_is_malformed_at_its_own_name(pointer: str) -> None:
    expect_at(without(full(), pointer), pointer)


@pytest.mark.parametrize("pointer", [*MUST_BE_THERE, *ITEMS, "/attempts/1"])
def test_null_is_malformed_where_a_member_must_be_there(pointer: str) -> None:
    expect_at(with_value(full(), pointer, None), pointer)


def test_a_null_retention_is_no_limit_and_not_a_missing_one() -> None:
    expect(with_value(full(), "/effectOwner/keyRetentionSeconds", None), HELD)


@pytest.mark.parametrize("name", ["leases", "reservation", "notices"])
def test_null_for_an_optional_member_is_leaving_it_out(name: str) -> None:
    plain = {**full(), "attempts": [attempt(1, 0, "confirmed")], "leases": []}
    expect({**plain, name: None}, HELD)
    expect(without({**plain, name: None}, f"/{name}"), HELD)


@pytest.mark.parametrize("name", ["worker", "fencingToken"])
def test_null_for_an_optional_member_of_an_attempt_is_leaving_it_out(name: str) -> None:
    expect(record([attempt(1, 0, "confirmed", **{name: None})], "committed"), HELD)


@pytest.mark.parametrize("pointer", STRINGS)
def test_a_string_must_not_be_empty(pointer: str) -> None:
    expect_at(with_value(full(), pointer, ""), pointer)
    allowed(pointer, " ")
    allowed(pointer, "\u0000\u202e\ufeff")


@pytest.mark.parametrize("pointer", [*STRINGS, *KEYS, *DIGESTS, *TIMES, *WORDS])
@pytest.mark.parametrize("value", [0, True, [], {}, Raw("1.5")], ids=repr)
def test_what_is_no_string_is_malformed(pointer: str, value: Any) -> None:
    expect_at(with_value(full(), pointer, value), pointer)


def test_the_worker_of_an_attempt_is_optional_and_not_empty() -> None:
    expect_at(with_value(full(), "/attempts/0/worker", ""), "/attempts/0/worker")
    expect_at(with_value(full(), "/attempts/0/worker", 3), "/attempts/0/worker")
    no_leases = record([attempt(1, 0, "confirmed", worker="")], "committed")
    expect_at(no_leases, "/attempts/0/worker")


@pytest.mark.parametrize("pointer", DIGESTS)
@pytest.mark.parametrize(
    "value",
    [
        "5c" * 32,
        "sha256:",
        "sha256:" + "5C" * 32,
        "SHA256:" + "5c" * 32,
        "sha512:" + "5c" * 64,
        "sha256:" + "5c" * 31 + "5",
        "sha256:" + "5c" * 32 + "5",
        "sha256:" + "5c" * 31 + "5g",
        "sha256:" + "5c" * 32 + "\n",
        " sha256:" + "5c" * 32,
        "sha256:" + "5c" * 31 + "\uff15\uff11",
        "sha256:" + "5c" * 31 + "\u0661\u0661",
        "sha256-" + "5c" * 32,
    ],
)
def test_a_digest_is_sha256_and_64_lower_case_digits(pointer: str, value: str) -> None:
    expect_at(with_value(full(), pointer, value), pointer)


@pytest.mark.parametrize("pointer", BOOLEANS)
@pytest.mark.parametrize("value", [0, 1, "true", "", [], {}], ids=repr)
def test_a_boolean_is_true_or_false(pointer: str, value: Any) -> None:
    expect_at(with_value(full(), pointer, value), pointer)
    allowed(pointer, True)
    allowed(pointer, False)


@pytest.mark.parametrize("pointer", [*INTEGERS, "/attempts/0/fencingToken"])
@pytest.mark.parametrize(
    "value",
    [
        Raw("1.0"),
        Raw("1e0"),
        Raw("1E2"),
        Raw("10e-1"),
        Raw("0.5"),
        Raw("9007199254740992"),
        Raw("-9007199254740992"),
        Raw("9" * 300),
        True,
        False,
        "1",
        [],
        {},
    ],
    ids=lambda value: repr(value)[:20],
)
def test_an_integer_is_written_as_one_and_stays_below_2_to_the_53(pointer: str, value: Any) -> None:
    expect_at(with_value(full(), pointer, value), pointer)


@pytest.mark.parametrize("pointer", [*INTEGERS, "/attempts/0/fencingToken"])
def test_the_largest_integer_is_one_below_2_to_the_53(pointer: str) -> None:
    allowed(pointer, 2**53 - 1)


@pytest.mark.parametrize("pointer", ["/leases/0/fencingToken", "/attempts/0/fencingToken"])
@pytest.mark.parametrize("value", ["0", "-0", "-1", "-9007199254740991"])
def test_a_token_may_be_zero_or_negative(pointer: str, value: str) -> None:
    allowed(pointer, Raw(value))


@pytest.mark.parametrize("value", ["0", "-0", "-1", "-9007199254740991"])
def test_an_attempts_number_starts_at_1(value: str) -> None:
    expect_at(with_value(full(), "/attempts/0/attempt", Raw(value)), "/attempts/0/attempt")


def test_no_two_attempts_have_one_number() -> None:
    expect_at(with_value(full(), "/attempts/1/attempt", 1), "/attempts/1/attempt")
    expect(with_value(full(), "/attempts/1/attempt", 3), HELD)
    apart = [attempt(number, number, "no_effect") for number in (5, 1, 9, 1)]
    expect(record(apart, "not_run"), MALFORMED)


@pytest.mark.parametrize("pointer", [*AMOUNTS, "/effectOwner/keyRetentionSeconds"])
@pytest.mark.parametrize(
    "value",
    [Raw("-1"), Raw("-0.0000001"), Raw("-1e-400"), Raw("-1e-99999999"), True, False, "1", [], {}],
    ids=repr,
)
def test_an_amount_is_a_number_and_not_below_zero_as_written(pointer: str, value: Any) -> None:
    expect_at(with_value(full(), pointer, value), pointer)


@pytest.mark.parametrize("pointer", [*AMOUNTS, "/effectOwner/keyRetentionSeconds"])
@pytest.mark.parametrize(
    "value",
    [
        "0", "-0", "-0.0", "-0e5", "0.1", "1e-400", "1E+2", "9007199254740993",
        "1e308", "-0.0E-99999999", "0." + "0" * 5000 + "1", "9" * 308,
    ],
    ids=lambda value: value[:20],
)  # fmt: skip
def test_minus_zero_is_zero_and_an_amount_has_any_number_of_digits(
    pointer: str, value: str
) -> None:
    allowed(pointer, Raw(value))


@pytest.mark.parametrize(("pointer", "words"), WORDS.items(), ids=WORDS)
def test_a_word_is_one_of_its_words_to_the_letter(pointer: str, words: list[str]) -> None:
    for word in words:
        allowed(pointer, word)
        for near in (word.upper(), f"{word} ", f" {word}", f"{word}\n", word[:-1], ""):
            expect_at(with_value(full(), pointer, near), pointer)
    expect_at(with_value(full(), pointer, "held"), pointer)


@pytest.mark.parametrize("pointer", [*OBJECTS, *ITEMS, "/operation", "/attempts/0", "/reservation"])
@pytest.mark.parametrize("value", [[], "text", 1, False], ids=repr)
def test_what_is_no_object_is_malformed(pointer: str, value: Any) -> None:
    expect_at(with_value(full(), pointer, value), pointer)


@pytest.mark.parametrize("pointer", [*LISTS, "/attempts", "/leases", "/notices"])
@pytest.mark.parametrize("value", [{}, "", "text", 0, False], ids=repr)
def test_what_is_no_list_is_malformed(pointer: str, value: Any) -> None:
    expect_at(with_value(full(), pointer, value), pointer)


def test_the_lists_may_be_empty() -> None:
    expect(record([], "not_run", leases=[], notices=[]), HELD)


def test_a_bad_shape_is_malformed_before_any_of_the_checks_4_to_10() -> None:
    """A record that fails check 4, 6, 7 and 9, and has one bad member at its end."""
    denied = two(0, 10, reservation=None)
    denied["attempts"][1]["argsDigest"] = "sha256:" + "00" * 32
    denied["ownerEffects"] = [{}, {}]
    expect(denied, "idempotency_key_args_changed")
    expect_at(with_value(denied, "/reported/outcome", "done"), "/reported/outcome")


def test_what_no_check_reads_still_has_its_shape() -> None:
    settled = lost({"units": "many", "expiresAt": "never", "charged": 1}, "unknown")
    expect(settled, MALFORMED)
    expect({**lost(None), "notices": [None]}, MALFORMED)


# --- times -------------------------------------------------------------------------------------

WELL_FORMED_TIMES = [
    "2025-03-01T12:00:00Z",
    "2025-03-01t12:00:00z",
    "2025-03-01T12:00:00+00:00",
    "2025-03-01T12:00:00-00:00",
    "2025-03-01T12:00:00+23:59",
    "2025-03-01T12:00:00-23:59",
    "2025-03-01T00:00:00Z",
    "2025-03-01T23:59:59.999999999999999999999Z",
    "2025-03-01T12:00:00.0Z",
    "2025-03-01T12:00:00." + "1" * 6000 + "+05:30",
    "2024-02-29T12:00:00Z",
    "2000-02-29T12:00:00Z",
    "0004-02-29T12:00:00Z",
    "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59",
    "9999-12-31T23:59:59.9Z",
]

MALFORMED_TIMES = [
    "",
    "2025-03-01",
    "12:00:00Z",
    "2025-03-01T12:00:00",
    "2025-03-01T12:00:00.5",
    "2025-03-01 12:00:00Z",
    "2025-03-01_12:00:00Z",
    "2025-03-01T12:00:00,5Z",
    "2025-03-01T12:00:00.Z",
    "2025-03-01T12:00Z",
    "2025-03-01T12Z",
    "20250301T120000Z",
    "2025-03-01T24:00:00Z",
    "2025-03-01T25:00:00Z",
    "2025-03-01T12:60:00Z",
    "2025-03-01T12:00:60Z",
    "2016-12-31T23:59:60Z",
    "2025-03-01T12:00:61Z",
    "2025-03-01T12:00:00+24:00",
    "2025-03-01T12:00:00+23:60",
    "2025-03-01T12:00:00-24:00",
    "2025-03-01T12:00:00-99:99",
    "2025-03-01T12:00:00+0100",
    "2025-03-01T12:00:00+01",
    "2025-03-01T12:00:00+1:00",
    "2025-03-01T12:00:00+01:00:00",
    "2025-03-01T12:00:00\u221201:00",
    "2025-03-01T12:00:00ZZ",
    "2025-03-01T12:00:00Z+00:00",
    "2025-03-01T12:00:00 Z",
    "2025-03-01T12:00:00Z ",
    " 2025-03-01T12:00:00Z",
    "2025-03-01T12:00:00Z\n",
    "2025-03-01T12:00:00Z\x00",
    "2025-02-29T12:00:00Z",
    "1900-02-29T12:00:00Z",
    "2025-02-30T12:00:00Z",
    "2025-04-31T12:00:00Z",
    "2025-13-01T12:00:00Z",
    "2025-00-01T12:00:00Z",
    "2025-03-00T12:00:00Z",
    "2025-03-32T12:00:00Z",
    "0000-01-01T00:00:00Z",
    "0000-12-31T23:59:59-23:59",
    "10000-01-01T00:00:00Z",
    "-2025-03-01T12:00:00Z",
    "+2025-03-01T12:00:00Z",
    "25-03-01T12:00:00Z",
    "2025-3-1T12:00:00Z",
    "2025-W09-6T12:00:00Z",
    "2025-060T12:00:00Z",
    "\uff12\uff10\uff12\uff15-03-01T12:00:00Z",
    "2025-03-01T12:00:0\u0660Z",
    "2025-03-01T12:00:00.\u0661Z",
    "2025-03-01T12:00:00.1_0Z",
    "2025-03-01T12:00:00.5e1Z",
    "2025-03-01T12:00:00+0\u0661:00",
    "2025-03-01T12:00:00[UTC]",
    "1740830400",
    "Sat, 01 Mar 2025 12:00:00 GMT",
]  # fmt: skip


@pytest.mark.parametrize("time", WELL_FORMED_TIMES, ids=lambda time: time[:40])
def test_a_time_with_an_offset_is_read(time: str) -> None:
    for pointer in TIMES:
        allowed(pointer, time)


@pytest.mark.parametrize("time", MALFORMED_TIMES, ids=ascii)
def test_what_is_no_time_with_an_offset_is_malformed(time: str) -> None:
    for pointer in TIMES:
        expect_at(with_value(full(), pointer, time), pointer)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("2025-03-01T12:00:00.123456Z", "2025-03-01T12:00:00.123456789Z", "after"),
        ("2025-03-01T12:00:00.5Z", "2025-03-01T12:00:00.50000000000000000000Z", "same"),
        ("2025-03-01T12:00:00Z", "2025-03-01t12:00:00.000z", "same"),
        ("2025-03-01T12:00:00Z", "2025-03-01T13:00:00+01:00", "same"),
        ("2025-03-01T12:00:00Z", "2025-03-02T11:59:00+23:59", "same"),
        ("2025-03-01T12:00:00Z", "2025-03-01T12:00:00-00:01", "after"),
        ("2025-03-01T12:00:00Z", "2025-03-01T12:00:59+00:01", "before"),
        ("2024-02-28T23:59:59Z", "2024-02-29T00:00:00Z", "after"),
        ("2024-12-31T23:59:59.9Z", "2025-01-01T00:00:00+00:00", "after"),
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59", "after"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59", "before"),
        ("9999-12-31T23:59:59-00:01", "9999-12-31T23:59:59.5-00:01", "after"),
        ("0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00+23:58", "after"),
        ("2025-03-01T12:00:00." + "0" * 5000 + "1Z", "2025-03-01T12:00:00." + "0" * 5000 + "2Z",
         "after"),
    ],
    ids=lambda text: text[:36],
)  # fmt: skip
def test_times_are_ordered_exactly_at_any_offset_and_any_number_of_digits(
    first: str, second: str, reason: str
) -> None:
    """A final absent answer settles a time-out if and only if it is later."""
    settled = record([attempt(1, 0, "timeout")], "not_run", reconciliations=[found("absent", 1)])
    at_first = with_value(settled, "/attempts/0/dispatchedAt", first)
    unsettled = "outcome_settled_without_authority"
    expect(
        with_value(at_first, "/reconciliations/0/at", second),
        HELD if reason == "after" else unsettled,
    )
    at_second = with_value(settled, "/attempts/0/dispatchedAt", second)
    expect(
        with_value(at_second, "/reconciliations/0/at", first),
        HELD if reason == "before" else unsettled,
    )


def test_a_difference_over_all_of_time_is_exact() -> None:
    """From the first instant that can be written to the last: 315,537,897,599 s and 2 offsets."""
    owner = {"deduplicatesByKey": True, "keyRetentionSeconds": 315_538_070_279}
    ends = two(0, 1, owner=owner)
    ends = with_value(ends, "/attempts/0/dispatchedAt", "0001-01-01T00:00:00+23:59")
    ends = with_value(ends, "/attempts/1/dispatchedAt", "9999-12-31T23:59:59-23:59")
    expect(ends, HELD)
    short = with_value(ends, "/effectOwner/keyRetentionSeconds", 315_538_070_278)
    expect(short, "retry_after_unknown")


def test_every_member_of_the_full_record_was_tried() -> None:
    """The tables above stand for every member that the page gives a shape."""
    for pointer in [*MUST_BE_THERE, *KEYS, *DIGESTS, *ITEMS]:
        holder, name = place(full(), pointer)
        assert holder[name] is not None
    assert place(full(), DIGESTS[0])[0]["argsDigest"] == DIGEST
