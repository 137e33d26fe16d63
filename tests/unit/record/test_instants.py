"""RFC 3339 times: what is one, how they compare, and how far they are apart. Exactly."""

from __future__ import annotations

import random

import pytest

from counterfoil.errors import BadInput
from counterfoil.record.instants import Instant, from_unix_us, more_than_apart, parse
from counterfoil.record.strict_json import Real

NOON = "2026-03-01T12:00:00Z"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (NOON, NOON),
        ("2026-03-01t12:00:00z", NOON),
        ("2026-03-01T12:00:00-00:00", NOON),
        ("2026-03-01T12:00:00.000Z", NOON),
        ("2026-03-01T12:00:00.120Z", "2026-03-01T12:00:00.12Z"),
        ("2026-03-01T12:00:00.1234567890Z", "2026-03-01T12:00:00.123456789Z"),
        ("2026-03-01T17:30:00.5+05:30", "2026-03-01T12:00:00.5Z"),
        ("2026-02-28T23:59:59-23:59", "2026-03-01T23:58:59Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
        ("2000-02-29T00:00:00Z", "2000-02-29T00:00:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999999Z"),
        ("0001-01-01T00:00:00+00:01", "0001-01-01T23:58:00+23:59"),
        ("9999-12-31T23:59:59.5-00:01", "9999-12-31T00:01:59.5-23:59"),
    ],
)
def test_a_time_is_read_and_written_in_one_form(text: str, written: str) -> None:
    assert str(parse(text)) == written
    assert parse(written) == parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-03-01",
        "12:00:00Z",
        "2026-03-01T12:00Z",
        "2026-03-01 12:00:00Z",
        "2026-03-01T12:00:00",
        "2026-03-01T12:00:00.5",
        "2026-03-01T12:00:00,5Z",
        "2026-03-01T12:00:00.Z",
        "2026-03-01T12:00:00.5.5Z",
        "2026-03-01T12:00:00. 5Z",
        "2026-03-01T12:00:00.5_0Z",
        "2026-03-01T12:00:00.\u00bdZ",
        "2026-03-01T12:00:00.\uff15Z",
        "2026-03-01T24:00:00Z",
        "2026-03-01T12:60:00Z",
        "2026-03-01T12:00:60Z",
        "2026-03-01T12:00:00+24:00",
        "2026-03-01T12:00:00+23:60",
        "2026-03-01T12:00:00+0530",
        "2026-03-01T12:00:00+05",
        "2026-03-01T12:00:00+5:30",
        "2026-03-01T12:00:00\u221205:30",
        "2026-03-01T12:00:00 Z",
        "2026-03-01T12:00:00ZZ",
        "2026-03-01T12:00:00Z\n",
        "2026-03-01T12:00:Z\x00.5Z",
        "2026-03-01T12:00:00.5Z\x00Z",
        "0000-01-01T00:00:00Z",
        "-001-01-01T00:00:00Z",
        "12026-03-01T12:00:00Z",
        "2026-00-01T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-03-00T12:00:00Z",
        "2026-04-31T12:00:00Z",
        "2026-02-29T12:00:00Z",
        "1900-02-29T12:00:00Z",
        "2026-W09-7T12:00:00Z",
        "20260301T120000.5Z",
        "\uff12026-03-01T12:00:00Z",
        "2026-03-01T12:00:0 Z",
        "2026-03-01T+2:00:00Z",
        "1772366400",
    ],
)
def test_any_other_text_is_no_time(text: str) -> None:
    with pytest.raises(BadInput, match="RFC 3339"):
        parse(text)


@pytest.mark.parametrize("value", [None, True, 1772366400, 1.5, [], ["2"] * 27, {}, b"x" * 20])
def test_what_is_no_text_is_no_time(value: object) -> None:
    with pytest.raises(BadInput, match="RFC 3339"):
        parse(value)


def test_times_compare_exactly_at_any_number_of_digits() -> None:
    digits = ["", ".1", ".123456", ".1234560001", ".123456789", ".12345679", ".2"]
    digits += ["." + "9" * 5000, "." + "9" * 5001]
    times = [parse(f"2026-03-01T12:00:00{fraction}Z") for fraction in digits]
    times.append(parse("2026-03-01T12:00:01Z"))
    assert times == sorted(times)
    assert len(set(times)) == len(times)


def test_times_compare_across_offsets_and_outside_four_digit_years() -> None:
    times = [
        parse(text)
        for text in (
            "0001-01-01T00:00:00+23:59",
            "0001-01-01T00:00:00+00:01",
            "0001-01-01T00:00:00Z",
            "2026-03-01T12:00:00+00:01",
            NOON,
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59-23:59",
        )
    ]
    assert times == sorted(times)


def test_microseconds_since_1970_make_the_instant_of_the_same_text() -> None:
    assert str(from_unix_us(0)) == "1970-01-01T00:00:00Z"
    assert str(from_unix_us(-1)) == "1969-12-31T23:59:59.999999Z"
    assert from_unix_us(1_772_366_400_250_000) == parse("2026-03-01T12:00:00.25Z")
    first, last = -62_135_596_800_000_000, 253_402_300_799_999_999
    assert str(from_unix_us(first)) == "0001-01-01T00:00:00Z"
    assert str(from_unix_us(last)) == "9999-12-31T23:59:59.999999Z"


@pytest.mark.parametrize(
    "us", [-62_135_596_800_000_001, 253_402_300_800_000_000, 10**30, -(10**30)]
)
def test_microseconds_outside_the_years_1_to_9999_are_refused(us: int) -> None:
    with pytest.raises(BadInput, match="years 1 to 9999"):
        from_unix_us(us)


def after(fraction: str) -> Instant:
    return parse(f"2026-03-01T12:00:10{fraction}Z")


@pytest.mark.parametrize(
    ("earlier", "later", "seconds", "expected"),
    [
        ("", "", 0, False),
        ("", ".000001", 0, True),
        ("", "." + "0" * 400 + "1", 0, True),
        (".5", ".4", 0, False),
        (".25", ".75", Real("0.5"), False),
        (".25", ".75", Real("0.49999999999999999999"), True),
        (".25", ".75", 0.5, False),
        ("", ".1", 0.1, False),
        ("", ".1", Real("1e-1"), False),
        ("", ".1000000000000000000001", Real("0.1"), True),
        (".9999999", ".99999991", Real("1e-8"), False),
        (".9999999", ".999999911", Real("1e-8"), True),
        ("", ".1", Real("1e-999999999"), True),
        ("", "", Real("1e-999999999"), False),
        ("", "", Real("0e999999999"), False),
        ("", "." + "0" * 20 + "1", Real("1e-99999999999999999999"), True),
        ("", ".9", Real("1e300"), False),
        ("", ".9", 10**300, False),
        ("", ".5", Real("0." + "0" * 100_000 + "5e100000"), False),
        ("", "." + "9" * 5000, Real("0." + "9" * 5000), False),
        ("", "." + "9" * 5001, Real("0." + "9" * 5000), True),
        ("." + "1" * 5000, "." + "3" * 5000, Real("0." + "2" * 5000), False),
    ],
)
def test_how_far_apart_two_times_are_is_compared_exactly(
    earlier: str, later: str, seconds: float, expected: bool
) -> None:
    assert more_than_apart(after(earlier), after(later), seconds) is expected


def test_whole_seconds_apart_are_compared_at_both_ends() -> None:
    begin = parse(NOON)
    assert not more_than_apart(begin, after(""), 10)
    assert more_than_apart(begin, after(""), 9)
    assert more_than_apart(begin, after(".1"), 10)
    assert not more_than_apart(after(""), begin, 0)
    assert more_than_apart(begin, after(""), Real("9.99"))
    assert not more_than_apart(parse("2026-03-01T12:00:00.9Z"), after(".8"), Real("9.9"))


def test_the_common_form_and_the_general_one_are_read_alike() -> None:
    """The quick reader is the standard library's, which takes more than RFC 3339."""
    choice = random.Random(3339).choice
    seeds = (NOON, "2026-03-01T23:59:59.123456Z", "2024-02-29T00:00:00.5Z", "2026-W09-7T12:00:00Z")
    for _ in range(30_000):
        text = list(choice(seeds))
        for _ in range(choice((1, 1, 2))):
            text[choice(range(len(text)))] = choice("0123456789-:.,TZW+ \x00\uff12\u0660")
        common = "".join(text)
        # A lower-case z means the same and is never read by the quick reader.
        general = common[:-1] + "z" if common.endswith("Z") else common
        assert _read(common) == _read(general), common


def _read(text: str) -> Instant | None:
    try:
        return parse(text)
    except BadInput:
        return None
