"""RFC 8785 bytes and digests of arguments, and what is refused before them."""

from __future__ import annotations

import json
from enum import IntEnum, StrEnum

import pytest

from counterfoil import limits
from counterfoil.errors import InvalidArguments
from counterfoil.record.digests import arguments_digest, canonical_bytes, is_digest


class Word(StrEnum):
    REFUND = "refund"


class Level(IntEnum):
    HIGH = 3


def refused(value: object) -> InvalidArguments:
    with pytest.raises(InvalidArguments) as caught:
        canonical_bytes(value)
    return caught.value


def test_the_bytes_are_those_of_rfc_8785() -> None:
    value = {
        "b": [1.0, 1e21, 0.000001, 1e-7, -0.0, 4.5],
        "a": None,
        "\u20ac": '\u000f\n"é/',
        "": (),
    }
    assert canonical_bytes(value) == (
        b'{"":[],"a":null,"b":[1,1e+21,0.000001,1e-7,0,4.5],'
        b'"\xe2\x82\xac":"\\u000f\\n\\"\xc3\xa9/"}'
    )


def test_names_are_sorted_by_their_utf_16_code_units() -> None:
    assert canonical_bytes({"\ufb33": 1, "\U0001f600": 2}) == '{"\U0001f600":2,"\ufb33":1}'.encode()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([1.0, 100.0], [1, 1e2]),
        ((1, 2), [1, 2]),
        (json.loads('"\\u0041\\/"'), "A/"),
        ({"a": Word.REFUND, "b": Level.HIGH}, {"a": "refund", "b": 3}),
        (-0.0, 0),
    ],
)
def test_equal_arguments_have_one_digest(one: object, other: object) -> None:
    assert arguments_digest(one) == arguments_digest(other)


def test_different_arguments_have_different_digests() -> None:
    values = [None, False, 0, "", [], {}, "0", [0], {"a": None}, "e\u0301", "\u00e9", 1, True]
    assert len({arguments_digest(value) for value in values}) == len(values)


def test_a_digest_is_sha256_and_64_hex_digits() -> None:
    digest = arguments_digest({})
    assert digest == "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert is_digest(digest)


@pytest.mark.parametrize(
    "text",
    [
        None,
        5,
        "",
        "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "sha256:" + "A" * 64,
        "SHA256:" + "a" * 64,
        "sha512:" + "a" * 64,
        "sha256:" + "a" * 63,
        "sha256:" + "a" * 65,
        "sha256:" + "g" * 64,
        "sha256:" + "a" * 62 + "  ",
        "sha256:" + "a " * 32,
        "sha256:" + "\uff11" * 64,
    ],
)
def test_anything_else_is_no_digest(text: object) -> None:
    assert not is_digest(text)


@pytest.mark.parametrize("value", [limits.INTEGER_MAX + 1, -limits.INTEGER_MAX - 1, 10**4000])
def test_an_integer_that_json_cannot_carry_is_refused_where_it_stands(value: int) -> None:
    assert refused({"a": [0, value]}).path == "/a/1"
    assert canonical_bytes([limits.INTEGER_MAX, -limits.INTEGER_MAX])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_nan_and_the_infinities_are_refused(value: float) -> None:
    assert refused({"a/b": {"~": value}}).path == "/a~1b/~0"


def test_a_lone_surrogate_is_refused_in_values_and_names() -> None:
    assert refused(["\ud800"]).path == "/0"
    assert refused({"\udfff": 1}).path == "/\\udfff"


@pytest.mark.parametrize("name", [1, None, True, (), b"a", 10**4000])
def test_a_name_that_is_no_text_is_refused(name: object) -> None:
    assert "not text" in refused({"a": {name: 1}}).detail


@pytest.mark.parametrize("value", [b"x", {1}, object(), 1j, range(3), bytearray(), (i for i in ())])
def test_any_other_type_is_refused_by_its_name(value: object) -> None:
    error = refused({"a": value})
    assert error.path == "/a"
    assert type(value).__name__ in error.detail


def test_a_value_that_contains_itself_is_refused() -> None:
    values: dict[str, object] = {"a": {}}
    values["a"] = [values]
    assert refused(values).detail == "the value contains itself"


def test_a_value_that_stands_in_two_places_is_fine() -> None:
    shared = {"b": 1}
    assert canonical_bytes([shared, shared]) == b'[{"b":1},{"b":1}]'


def test_arguments_may_be_as_deep_as_the_limit_and_no_deeper() -> None:
    value: object = []
    for _ in range(limits.ARGUMENTS_DEPTH_MAX - 1):
        value = [value]
    assert canonical_bytes(value)
    assert "deep" in refused([value]).detail
    for _ in range(100_000):
        value = [value]
    assert "deep" in refused(value).detail


def test_arguments_longer_than_the_limit_are_refused() -> None:
    assert (
        len(canonical_bytes("x" * (limits.ARGUMENTS_BYTES_MAX - 2))) == limits.ARGUMENTS_BYTES_MAX
    )
    assert "longer" in refused("x" * (limits.ARGUMENTS_BYTES_MAX - 1)).detail
    assert "longer" in refused("\u20ac" * (limits.ARGUMENTS_BYTES_MAX // 2)).detail


def test_a_value_that_multiplies_itself_is_refused_before_it_is_written_out() -> None:
    value: object = "x"
    for _ in range(40):
        value = [value, value]
    assert "longer" in refused(value).detail
