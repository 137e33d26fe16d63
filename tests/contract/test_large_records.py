"""Large records are judged in time that grows with their length and not with its square."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from counterfoil.reader.verdict import judge_bytes

from .trails import (
    OTHER_KEY,
    Json,
    Raw,
    attempt,
    expect,
    found,
    full,
    reason_of,
    record,
    said,
    two,
    with_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable

DEDUPLICATES = {"deduplicatesByKey": True, "keyRetentionSeconds": None}
SMALL, GROWTH = 800, 4


def moment(index: int) -> str:
    return f"2025-03-01T{index // 3600:02}:{index // 60 % 60:02}:{index % 60:02}.{index:06}Z"


def sent(index: int, reply: str, **over: object) -> Json:
    return {**attempt(index + 1, 0, reply), "dispatchedAt": moment(index), **over}


def answer(index: int, result: str, key: str = OTHER_KEY) -> Json:
    return {**found(result, 0, key=key), "at": moment(index)}


def deduplicated(count: int) -> Json:
    owner = {**DEDUPLICATES, "keyRetentionSeconds": 10**9}
    return record([sent(index, "timeout") for index in range(count)], "unknown", owner=owner)


def answered_one_by_one(count: int) -> Json:
    lost = [sent(2 * index, "timeout", idempotencyKey=OTHER_KEY) for index in range(count)]
    answers = [answer(2 * index + 1, "absent") for index in range(count)]
    return record(lost, "not_run", reconciliations=answers)


def answered_under_many_keys(count: int) -> Json:
    lost = [sent(0, "timeout", idempotencyKey=f"k{count - 1}")]
    answers = [answer(index + 1, "absent", key=f"k{index}") for index in range(count)]
    return record(lost, "not_run", reconciliations=answers)


def leased_one_by_one(count: int) -> Json:
    held = [
        {
            "worker": "a",
            "fencingToken": index,
            "acquiredAt": moment(index),
            "expiresAt": moment(80000),
        }
        for index in range(count)
    ]
    refused = [sent(index, "no_effect", worker="a", fencingToken=index) for index in range(count)]
    return record(refused, "not_run", leases=held)


def numbered_backwards(count: int) -> Json:
    refused = [sent(index, "no_effect", attempt=count - index) for index in range(count)]
    return record(refused, "not_run")


def confirmed_again_and_again(count: int) -> Json:
    confirmed = [sent(2 * index, "confirmed") for index in range(count)]
    answers = [answer(2 * index + 1, "present", key="key-1") for index in range(count)]
    answers += [answer(2 * count + index, "absent", key="key-1") for index in range(count)]
    return record(confirmed, "committed", reconciliations=answers)


def seconds(data: bytes) -> float:
    """Return the processor time of judging, at best."""
    taken = []
    for _ in range(2):
        start = time.process_time()
        verdict = judge_bytes(data)
        taken.append(time.process_time() - start)
        assert reason_of(verdict) == "effect_held"
    return min(taken)


@pytest.mark.parametrize(
    "shape",
    [
        deduplicated,
        answered_one_by_one,
        answered_under_many_keys,
        leased_one_by_one,
        numbered_backwards,
        confirmed_again_and_again,
    ],
)
def test_four_times_the_record_takes_nowhere_near_sixteen_times_as_long(
    shape: Callable[[int], Json],
) -> None:
    small, large = said(shape(SMALL)), said(shape(GROWTH * SMALL))
    assert seconds(large) < 2.5 * GROWTH * seconds(small)


DIGITS = 200_000

LONG: dict[str, tuple[Json, str]] = {
    "a fraction of a second": (
        with_value(full(), "/attempts/0/dispatchedAt", f"2025-03-01T12:00:00.{'1' * DIGITS}Z"),
        "effect_held",
    ),
    "a retention": (
        two(
            0, 1, owner={"deduplicatesByKey": True, "keyRetentionSeconds": Raw("1." + "0" * DIGITS)}
        ),
        "effect_held",
    ),
    "an exponent": (
        with_value(full(), "/reservation/units", Raw("1e-" + "9" * DIGITS)),
        "effect_held",
    ),
    "a token": (
        with_value(full(), "/attempts/0/fencingToken", Raw("-" + "0" * DIGITS)),
        "malformed",
    ),
    "an amount below zero": (
        with_value(full(), "/reservation/units", Raw("-0." + "0" * DIGITS + "1")),
        "malformed",
    ),
    "a number that nobody reads": ({**full(), "x": Raw("9" * DIGITS)}, "malformed"),
}


@pytest.mark.parametrize("name", LONG)
def test_a_number_of_any_length_is_read_exactly_and_at_once(name: str) -> None:
    value, reason = LONG[name]
    start = time.process_time()
    verdict = judge_bytes(said(value))
    assert time.process_time() - start < 2
    assert reason_of(verdict) == reason


@pytest.mark.parametrize(
    ("fraction", "reason"), [("0", "effect_held"), ("1", "retry_after_unknown")]
)
def test_a_difference_in_the_last_of_thousands_of_digits_decides(
    fraction: str, reason: str
) -> None:
    owner = {"deduplicatesByKey": True, "keyRetentionSeconds": 1}
    expect(two(0, "1." + "0" * 7000 + fraction, owner=owner), reason)
