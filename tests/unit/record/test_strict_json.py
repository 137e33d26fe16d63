"""Bytes to values: what is refused anywhere in a document, and where the fault is said to be."""

from __future__ import annotations

import json
import math

import pytest

from counterfoil import limits
from counterfoil.errors import MalformedRecord
from counterfoil.record.strict_json import Real, parse, parse_object


def refused(data: bytes | str) -> MalformedRecord:
    with pytest.raises(MalformedRecord) as caught:
        parse(data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data)
    return caught.value


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a": 1, "a": 1}', "/a"),
        ('{"a": 1, "\\u0061": 2}', "/a"),
        ('{"x": [{}, {"a": 1, "b": 2, "a": 1}]}', "/x/1/a"),
        ('{"a/b": {"~": 1, "~": 2}}', "/a~1b/~0"),
        ('{"": {"": 1, "": 2}}', "//"),
    ],
)
def test_a_name_twice_in_one_object_is_refused_where_it_stands(text: str, path: str) -> None:
    error = refused(text)
    assert (error.path, error.detail) == (path, "the name stands twice in its object")


def test_names_are_compared_by_code_point_and_case() -> None:
    names = {"a": 1, "A": 2, "\u00e9": 3, "e\u0301": 4}
    assert parse(json.dumps(names, ensure_ascii=False).encode()) == names


def test_one_name_in_two_objects_is_fine() -> None:
    assert parse(b'[{"a": 1}, {"a": {"a": 2}}]') == [{"a": 1}, {"a": {"a": 2}}]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (r'{"a": "\ud800"}', "/a"),
        (r'{"a": ["x", "\uDFFF y"]}', "/a/1"),
        (r'{"a": "\udc00\ud800"}', "/a"),
        (r'{"\ud83d": 1}', "/\\ud83d"),
        (r'{"b": "\\", "a": "\ud83d\u0041"}', "/a"),
    ],
)
def test_a_lone_surrogate_is_refused_in_strings_and_names(text: str, path: str) -> None:
    error = refused(text)
    assert error.path == path
    assert error.detail.startswith("a lone surrogate")


def test_a_surrogate_pair_is_one_character_and_an_escaped_backslash_hides_none() -> None:
    assert parse(rb'["\ud83d\ude00", "\\ud800"]') == ["\U0001f600", "\\ud800"]


@pytest.mark.parametrize("data", [b'"\xff"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'{"a": "\xe2\x82'])
def test_bytes_that_are_no_utf_8_are_refused(data: bytes) -> None:
    assert refused(data).detail.startswith("not UTF-8 at byte ")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_byte_order_mark_is_refused(encoding: str) -> None:
    assert refused('{"a": 1}'.encode(encoding)).path == ""


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_number_is_refused(text: str) -> None:
    error = refused(f'{{"a": [0, {text}]}}')
    assert (error.path, error.detail) == ("/a/1", f"{text} is not a JSON number")


@pytest.mark.parametrize("text", ["1e309", "-1e400", "1.8e308", "9" * 309, "-" + "9" * 5000])
def test_a_number_that_overflows_a_double_is_refused(text: str) -> None:
    error = refused(f'{{"a": {text}}}')
    assert (error.path, error.detail) == ("/a", "a number too large for a double")


@pytest.mark.parametrize(
    "text", ["1.7976931348623157e308", "1" + "0" * 308, "1" + "0" * 5000 + "e-5000", "1e-400"]
)
def test_a_number_that_a_double_can_hold_is_kept_exactly(text: str) -> None:
    value = parse(text.encode())
    assert isinstance(value, int | Real)
    assert float(value) == float(text)
    assert (value.text if isinstance(value, Real) else str(value)) == text


def test_an_integer_is_one_only_without_a_fraction_and_an_exponent() -> None:
    values = parse(b"[1, -0, 1.0, 1e0, 1E0]")
    assert isinstance(values, list)
    assert [type(value) for value in values] == [int, int, Real, Real, Real]


def test_a_real_keeps_its_text_through_a_copy_by_json() -> None:
    assert json.dumps(parse(b"[0.10]")) == "[0.1]"
    assert math.isclose(Real("0.10"), 0.1)
    assert Real("0.10").text == "0.10"


def nested(depth: int, opening: str = "[", closing: str = "]") -> bytes:
    return (opening * depth + closing * depth).encode()


def test_a_document_may_be_as_deep_as_the_limit_and_no_deeper() -> None:
    deepest = limits.RECORD_DEPTH_MAX
    assert parse(nested(deepest)) is not None
    assert refused(nested(deepest + 1)).detail == f"nested more than {deepest} deep"
    assert parse(b'{"a":' * (deepest - 1) + b"[]" + b"}" * (deepest - 1)) is not None
    assert refused(b'{"a":' * deepest + b"[]" + b"}" * deepest).path == ""


@pytest.mark.parametrize("depth", [10**5, 10**6])
def test_any_depth_is_refused_before_the_parser_recurses(depth: int) -> None:
    for data in (b"[" * depth, b'{"a":' * depth, nested(depth)):
        assert "deep" in refused(data).detail


def test_brackets_in_strings_are_not_depth() -> None:
    text = json.dumps([["[{" * 200 + '\\"[', '\\\\" ]', "\\"] for _ in range(200)])
    assert parse(text.encode()) == json.loads(text)


def test_many_containers_beside_each_other_are_not_deep() -> None:
    assert parse(b"[" + b"[],{}," * 1000 + b"[]]") is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        '{"a"}',
        "{'a': 1}",
        "[1,]",
        "01",
        "+1",
        ".5",
        "1.",
        "0x1",
        "nul",
        '"\n"',
        "1 2",
        "{} {}",
        "\xa0{}",
        "[1]\x00",
        '"\\x"',
        "// x",
        '{"a": 1,}',
        "1_000",
        "\uff11",
        "True",
    ],
)
def test_what_is_no_json_is_refused_with_a_line(text: str) -> None:
    error = refused(text)
    assert error.path == ""
    assert "\n" not in error.detail


def test_white_space_of_json_may_surround_the_value() -> None:
    assert parse(b" \t\r\n{ } \t\r\n") == {}


def test_a_record_is_an_object() -> None:
    for data in (b"[]", b"1", b'"x"', b"null", b"true"):
        with pytest.raises(MalformedRecord, match="one JSON object"):
            parse_object(data)
    assert parse_object(b'{"a": 1}') == {"a": 1}


def test_bytes_beyond_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RECORD_BYTES_MAX", 4)
    assert parse(b"1234") == 1234
    assert refused(b"12345").detail == "longer than 4 bytes"


def test_a_pointer_stops_above_a_name_too_long_to_read() -> None:
    name = "n" * 10_000
    assert refused(f'{{"a": {{"{name}": {{"b": NaN}}}}}}').path == "/a"
