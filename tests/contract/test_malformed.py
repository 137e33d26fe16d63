"""What is malformed, in any record and anywhere in it, and what only looks so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from counterfoil.reader.verdict import Malformed, judge_briefly, judge_bytes

from . import oracle
from .trails import (
    DIGEST,
    KEY,
    Json,
    Pairs,
    Raw,
    attempt,
    expect,
    full,
    place,
    record,
    said,
    with_value,
    written,
)

HELD = "effect_held"
MALFORMED = oracle.MALFORMED


def named(value: Any) -> str:
    """Return the JSON Pointer at which both of the reader's ways find these bytes malformed."""
    data = value if isinstance(value, bytes) else said(value)
    expect(data, MALFORMED)
    found = [judge(data) for judge in (judge_bytes, judge_briefly)]
    paths = {one.path for one in found if isinstance(one, Malformed)}
    assert len(paths) == 1, f"two ways, two paths: {paths}"
    assert all(isinstance(one, Malformed) and one.detail.strip() for one in found)
    return paths.pop()


# --- places: a fault is one wherever it stands ---------------------------------------------------


def in_extra(fault: Any) -> Json:
    return {**full(), "extra": [{"deep": fault}]}


def in_effect(fault: Any) -> Json:
    return {**full(), "ownerEffects": [{"note": fault}]}


def in_notice(fault: Any) -> Json:
    return {**full(), "notices": [{"note": {"of": fault}}]}


def in_other_contract(fault: Any) -> Json:
    return {"contractId": "another", "body": fault}


def in_no_contract(fault: Any) -> Json:
    return {"body": fault}


def in_identity_missing(fault: Any) -> Json:
    return {**with_value(full(), "/operation/argsDigest", None), "body": fault}


def in_denied(fault: Any) -> Json:
    return {**full(), "ownerEffects": [{}, {}], "body": fault}


PLACES = [
    in_extra,
    in_effect,
    in_notice,
    in_other_contract,
    in_no_contract,
    in_identity_missing,
    in_denied,
]
FAULTS: dict[str, Any] = {
    "a name twice": Raw('{"a": 1, "a": 1}'),
    "a name twice, once escaped": Raw('{"a": 1, "\\u0061": 2}'),
    "a name twice, surrogates once escaped": Raw('{"\U0001f600": 1, "\\ud83d\\ude00": 2}'),
    "a name twice, another slash": Raw('{"/": 1, "\\/": 2}'),
    "an empty name twice": Raw('{"": 1, "": 2}'),
    "a name twice with others between": Raw('{"a": 1, "b": {"a": 1}, "c": 3, "a": 4}'),
    "a high surrogate alone": Raw('"\\ud800"'),
    "a low surrogate alone": Raw('"x\\udfffx"'),
    "surrogates the wrong way round": Raw('"\\ude00\\ud83d"'),
    "a high surrogate before a pair": Raw('"\\ud83d\\ud83d\\ude00"'),
    "a lone surrogate in a name": Raw('{"\\udc00": 1}'),
    "NaN": Raw("NaN"),
    "Infinity": Raw("Infinity"),
    "-Infinity": Raw("-Infinity"),
    "nan": Raw("nan"),
    "a number over a double": Raw("1e309"),
    "a negative number over a double": Raw("-1e400"),
    "the least that rounds to infinity": Raw("1.797693134862315808e308"),
    "an integer over a double": Raw("1" + "0" * 309),
    "an integer of 5000 digits": Raw("9" * 5000),
    "an exponent that is huge": Raw("1e999999999999999999999"),
    "a leading zero": Raw("01"),
    "a leading plus": Raw("+1"),
    "no digit before the point": Raw(".5"),
    "no digit after the point": Raw("1."),
    "an exponent without digits": Raw("1e"),
    "an underscore": Raw("1_000"),
    "fullwidth digits": Raw("\uff11"),
    "Arabic digits": Raw("\u0661"),
    "hexadecimal": Raw("0x10"),
    "a minus alone": Raw("-"),
    "a raw line feed in a string": Raw('"a\nb"'),
    "a raw tab in a string": Raw('"a\tb"'),
    "a raw NUL in a string": Raw('"a\x00b"'),
    "a bad escape": Raw('"\\x41"'),
    "a short escape": Raw('"\\u12"'),
    "an escape in other digits": Raw('"\\u\uff10\uff10\uff14\uff11"'),
    "an escape with a sign": Raw('"\\u+041"'),
    "an escape with a space": Raw('"\\u 041"'),
    "an escape with an underscore": Raw('"\\u0_41"'),
    "single quotes": Raw("'a'"),
    "a name without quotes": Raw("{a: 1}"),
    "a comma too many in a list": Raw("[1,]"),
    "a comma too many in an object": Raw('{"a": 1,}'),
    "a comma missing": Raw("[1 2]"),
    "a comment": Raw("1 /* one */"),
    "True": Raw("True"),
    "nothing": Raw(""),
    "a no-break space": Raw("\u00a01"),
    "a form feed": Raw("\f1"),
    "a byte order mark inside": Raw("\ufeff1"),
    "brackets crossed": Raw("[{]}"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_text_is_malformed_wherever_it_stands(fault: str) -> None:
    for where in PLACES:
        expect(where(FAULTS[fault]), MALFORMED)


NEAR_MISSES: dict[str, Any] = {
    "names that differ in case": Raw('{"a": 1, "A": 2}'),
    "names that look alike": Raw('{"caf\u00e9": 1, "cafe\u0301": 2}'),
    "one name in two objects": Raw('[{"a": 1}, {"a": {"a": 2}}]'),
    "a name with a zero-width space": Raw('{"a": 1, "a\u200b": 2}'),
    "an escaped pair": Raw('"\\uD83D\\uDe00"'),
    "an escaped reverse solidus before a u": Raw('"\\\\ud800"'),
    "noncharacters": Raw('"\\uffff\ufffe\\u0000"'),
    "NaN as a string": "NaN",
    "the largest double": Raw("1.7976931348623157e308"),
    "the largest that rounds to it": Raw("1.797693134862315807e308"),
    "an underflow": Raw("1e-400"),
    "a huge negative exponent": Raw("1e-999999999999999999999"),
    "zero with a huge exponent": Raw("0e999999999999999999999"),
    "an integer of 309 digits": Raw("1" + "0" * 308),
    "5000 digits behind the point": Raw("0." + "3" * 5000),
    "an integer past 2**53": Raw("9007199254740993"),
    "minus zero": Raw("-0"),
    "minus zero with all parts": Raw("-0.0E-0"),
    "a plus in the exponent": Raw("1E+2"),
    "a leading zero in the exponent": Raw("1e007"),
    "DEL and C1 in a string": Raw('"\x7f\x80"'),
    "every short escape": Raw('"\\"\\\\\\/\\b\\f\\n\\r\\t"'),
    "line separators in a string": Raw('"\u2028\u2029"'),
    "the four white spaces": Raw(" \t\n\r1 \t\n\r"),
    "empty containers": Raw("[[], {}, [ ], { }]"),
    "brackets in strings": Raw('"' + "[{" * 400 + '"'),
    "a text that says infinity": Raw('"-Infinity"'),
    "a long string": "x" * 100_000,
}


@pytest.mark.parametrize("near", NEAR_MISSES)
def test_what_only_looks_malformed_is_read(near: str) -> None:
    for where in (in_extra, in_effect, in_notice):
        expect(where(NEAR_MISSES[near]), HELD)
    expect(in_other_contract(NEAR_MISSES[near]), "contract_id_unknown")
    expect(in_no_contract(NEAR_MISSES[near]), "contract_id_missing")


@pytest.mark.parametrize(("depth", "reason"), [(127, HELD), (128, MALFORMED)])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_a_document_may_be_128_containers_deep(depth: int, reason: str, brackets: str) -> None:
    """The document itself is the first."""
    opening = "[" if brackets == "[]" else '{"a": '
    inner = Raw(opening * (depth - 1) + brackets + brackets[1] * (depth - 1))
    expect({**full(), "extra": inner}, reason)
    expect({**full(), "extra": inner, "more": inner}, reason)


def test_depth_is_not_how_many_containers_there_are() -> None:
    expect({**full(), "extra": Raw("[" + "[[]], " * 300 + "{}]")}, HELD)


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":', '{"contractId":['])
def test_a_hundred_thousand_containers_are_malformed_without_a_crash(opening: str) -> None:
    expect(opening.encode() * 100_000, MALFORMED)
    expect(said({**full(), "extra": Raw(opening * 100_000)}), MALFORMED)


# --- the document ------------------------------------------------------------------------------

TEXT = written(full())

DOCUMENTS: dict[str, bytes] = {
    "nothing": b"",
    "white space": b" \n",
    "NUL": b"\x00",
    "null": b"null",
    "true": b"true",
    "a number": b"1",
    "a string": b'"text"',
    "a list": b"[]",
    "a list of a record": b"[" + TEXT.encode() + b"]",
    "a byte order mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "UTF-16": TEXT.encode("utf-16"),
    "UTF-16 without a mark": TEXT.encode("utf-16-le"),
    "UTF-32": TEXT.encode("utf-32"),
    "two records": (TEXT * 2).encode(),
    "text behind it": TEXT.encode() + b" x",
    "a NUL behind it": TEXT.encode() + b"\x00",
    "a bracket too many": TEXT.encode() + b"}",
    "the last byte missing": TEXT.encode()[:-1],
    "the first byte missing": TEXT.encode()[1:],
    "a vertical tab before it": b"\x0b" + TEXT.encode(),
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_is_not_one_object_is_malformed(name: str) -> None:
    expect(DOCUMENTS[name], MALFORMED)


@pytest.mark.parametrize("name", ["null", "a number", "a string", "a list"])
def test_a_document_that_is_no_object_is_named_by_the_empty_pointer(name: str) -> None:
    assert named(DOCUMENTS[name]) == ""


def test_white_space_around_a_record_is_nothing() -> None:
    expect(b" \r\n\t" + TEXT.encode() + b"\n\n", HELD)


BAD_BYTES = {
    "a continuation alone": b"\x80",
    "a lead alone": b"\xc3",
    "an overlong solidus": b"\xc0\xaf",
    "an overlong NUL": b"\xc0\x80",
    "three bytes for two": b"\xe0\x80\xaf",
    "a surrogate": b"\xed\xa0\x80",
    "a surrogate pair": b"\xed\xa0\xbd\xed\xb8\x80",
    "past the last code point": b"\xf4\x90\x80\x80",
    "0xff": b"\xff",
    "a pair cut short": b"\xf0\x9f\x98",
}


@pytest.mark.parametrize("name", BAD_BYTES)
def test_bytes_that_are_not_utf_8_are_malformed_wherever_they_stand(name: str) -> None:
    for where in PLACES:
        for held in ("HERE", {"HERE": 1}):
            expect(said(where(held)).replace(b"HERE", BAD_BYTES[name]), MALFORMED)


def test_a_duplicate_of_a_contract_member_is_malformed_even_with_the_same_value() -> None:
    for name, value in full().items():
        expect(said(Pairs(*full().items(), (name, value))), MALFORMED)
    operation = Pairs(*full()["operation"].items(), ("idempotencyKey", KEY))
    expect({**full(), "operation": operation}, MALFORMED)


# --- lexical pointers: never a lie -------------------------------------------------------------


@pytest.mark.parametrize("fault", FAULTS)
def test_the_pointer_of_a_fault_of_the_text_leads_towards_it(fault: str) -> None:
    """The page fixes no depth; what is named must be the fault's place or hold it."""
    twisted = {**full(), "a/b~c": [0, {"x": FAULTS[fault]}]}
    path = named(twisted)
    assert ("/a~1b~0c/1/x" + "/").startswith(path + "/") or path.startswith("/a~1b~0c/1/x/")


# --- a truncated record ------------------------------------------------------------------------


def test_a_record_cut_anywhere_is_malformed() -> None:
    data = said(full())
    for length in range(0, len(data), 7):
        expect(data[:length], MALFORMED)


def test_a_record_with_any_byte_turned_over_gets_one_answer() -> None:
    data = said(record([attempt(1, 0, "timeout")], "unknown"))
    for index in range(len(data)):
        turned = data[:index] + bytes([data[index] ^ 0x80]) + data[index + 1 :]
        expect(turned, MALFORMED)


# --- helpers kept honest -----------------------------------------------------------------------


def test_the_writer_says_what_json_says() -> None:
    assert json.loads(said(full())) == full()
    assert place(full(), "/operation/argsDigest")[0]["argsDigest"] == DIGEST
