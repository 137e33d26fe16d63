"""The digest of arguments: RFC 8785 bytes, equal for equal arguments, refused with a path."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.errors import InvalidArguments
from counterfoil.record.digests import arguments_digest, canonical_bytes

from .oracle import DIGEST

WRITTEN: list[tuple[Any, bytes]] = [
    ({}, b"{}"),
    ([], b"[]"),
    (None, b"null"),
    ([True, False], b"[true,false]"),
    ({"b": 1, "a": 2}, b'{"a":2,"b":1}'),
    ("\u20ac\u00e9", '"\u20ac\u00e9"'.encode()),
    ('"\\/', b'"\\"\\\\/"'),
    ("\b\t\n\f\r", b'"\\b\\t\\n\\f\\r"'),
    ("\x00\x1f\x7f\x80", b'"\\u0000\\u001f\x7f\xc2\x80"'),
    (0, b"0"),
    (-0.0, b"0"),
    (1.0, b"1"),
    (4.50, b"4.5"),
    (2e-3, b"0.002"),
    (1e-6, b"0.000001"),
    (1e-7, b"1e-7"),
    (1e20, b"100000000000000000000"),
    (1e21, b"1e+21"),
    (333333333.33333329, b"333333333.3333333"),
    (0.1 + 0.2, b"0.30000000000000004"),
    (5e-324, b"5e-324"),
    (1.7976931348623157e308, b"1.7976931348623157e+308"),
    (2**53 - 1, b"9007199254740991"),
    (-(2**53) + 1, b"-9007199254740991"),
]


@pytest.mark.parametrize(("value", "expected"), WRITTEN, ids=lambda value: ascii(value)[:30])
def test_a_value_has_the_bytes_of_rfc_8785(value: Any, expected: bytes) -> None:
    assert canonical_bytes(value) == expected


def test_names_are_sorted_by_utf_16_code_units_and_not_by_code_points() -> None:
    """U+1F600 begins with a surrogate, so it comes before U+FB33 there and after it elsewhere."""
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    ordered = list(json.loads(canonical_bytes(dict.fromkeys(names, 1))))
    assert ordered == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ('{"amount": 1.0}', '{"amount": 1}'),
        ('{"a": 1, "b": {"c": 2, "d": 3}}', '{ "b": {"d": 3, "c": 2}, "a": 1 }'),
        ('{"a": "\\u00e9\\/"}', '{"\\u0061": "\u00e9/"}'),
        ("[1e2, -0, 0.10]", "[100, 0, 1e-1]"),
        ('["\\ud83d\\ude00"]', '["\U0001f600"]'),
    ],
)
def test_equal_arguments_have_one_digest(one: str, other: str) -> None:
    assert arguments_digest(json.loads(one)) == arguments_digest(json.loads(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, "1"),
        (1, True),
        (0, False),
        (None, "null"),
        ("", None),
        ([], {}),
        ([1, 2], [2, 1]),
        ("caf\u00e9", "cafe\u0301"),
        ({"a": 1}, {"A": 1}),
        ({"a": None}, {}),
        (0.1, 0.1 + 1e-17 + 1e-17),
    ],
)
def test_other_arguments_have_another_digest(one: Any, other: Any) -> None:
    assert arguments_digest(one) != arguments_digest(other)


def test_the_digest_is_the_sha_256_of_those_bytes() -> None:
    value = {"b": [1.5, "\u20ac"], "a": None}
    digest = arguments_digest(value)
    assert digest == "sha256:" + hashlib.sha256(canonical_bytes(value)).hexdigest()
    assert DIGEST.fullmatch(digest)


@pytest.mark.parametrize(
    ("bad", "pointer"),
    [
        (2**53 + 1, ""),
        (-(2**53) - 1, ""),
        (float("nan"), ""),
        (float("inf"), ""),
        ("\ud800", ""),
        (b"bytes", ""),
        (object(), ""),
        ({1: 2}, ""),
    ],
    ids=["past 2**53", "below", "NaN", "infinity", "surrogate", "bytes", "object", "a name"],
)
def test_what_rfc_8785_cannot_carry_is_refused_with_its_path(bad: Any, pointer: str) -> None:
    for wrapped, prefix in ((bad, ""), ({"a/b": [0, bad]}, "/a~1b/1"), ([{"~": bad}], "/0/~0")):
        with pytest.raises(InvalidArguments) as refusal:
            canonical_bytes(wrapped)
        assert refusal.value.path.startswith(prefix + pointer)
        assert "\n" not in str(refusal.value)
        with pytest.raises(InvalidArguments):
            arguments_digest(wrapped)


def test_a_value_that_contains_itself_or_is_too_deep_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    for value in (loop, deep):
        with pytest.raises(InvalidArguments):
            canonical_bytes(value)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(
        st.characters(exclude_categories=["Cs"])), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@settings(deadline=None, max_examples=100)
@given(VALUES)
def test_canonical_bytes_say_the_same_value_and_are_their_own_canonical_form(value: Any) -> None:
    """Every number is read back as a double here: past 2**53 only a double may be written."""
    data = canonical_bytes(value)
    again = json.loads(data, parse_int=float)
    assert again == value
    assert canonical_bytes(again) == data
