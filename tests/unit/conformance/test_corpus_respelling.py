"""Ids are respelled so that no answer can be looked up, and what makes a case stays as it is."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from counterfoil.conformance import generate
from counterfoil.conformance.respell_record import respelled
from counterfoil.reader.verdict import Malformed, judge_bytes

if TYPE_CHECKING:
    from counterfoil.conformance.corpus.building import Case

CASES = [case for corpus in generate.corpora() for case in corpus.cases]
BARE = {  # these hold no id
    "empty-object",
    "contract-alone-of-another",
    "contract-of-another-and-a-name-twice",
    "document-that-is-empty",
    "utf-16",
}


def answer(data: bytes) -> str:
    verdict = judge_bytes(data)
    return "malformed" if isinstance(verdict, Malformed) else verdict.reason


@pytest.mark.parametrize("seed", [1, 2])
def test_a_respelled_case_gets_the_same_answer(seed: int) -> None:
    for case in CASES:
        assert answer(respelled(case.data, random.Random(seed))) == answer(case.data), case.id


def test_every_case_that_holds_an_id_is_another_file() -> None:
    same = {case.id for case in CASES if respelled(case.data, random.Random(1)) == case.data}
    assert same == BARE


def test_no_byte_but_letters_and_digits_changes() -> None:
    for case in CASES:
        changed = respelled(case.data, random.Random(5))
        assert len(changed) == len(case.data)
        for old, new in zip(case.data, changed, strict=True):
            assert old == new or (chr(old).isalnum() and chr(new).isalnum()), case.id


def test_a_seed_respells_the_same_way_again() -> None:
    data = CASES[0].data
    assert respelled(data, random.Random(9)) == respelled(data, random.Random(9))
    assert respelled(data, random.Random(9)) != respelled(data, random.Random(8))


def keys(case_id: str) -> list[str]:
    case: Case = next(one for one in CASES if one.id == case_id)
    record = json.loads(respelled(case.data, random.Random(4)))
    return [attempt["idempotencyKey"] for attempt in record["attempts"]]


def test_keys_that_differ_by_case_or_by_a_mark_still_do() -> None:
    lower, upper = keys("keys-that-differ-by-case")
    assert lower != upper
    assert lower.upper() == upper
    plain, marked = keys("keys-that-differ-by-a-mark-of-no-width")
    assert marked.replace("\u200b", "")[:3] == plain[:3]
    composed, decomposed = keys("keys-that-differ-by-normal-form")
    assert composed[-1] == "\u00e9"
    assert decomposed[-2:] == "e\u0301"
    assert composed[:-1] == decomposed[:-2]


def test_a_key_spelled_with_an_escape_is_still_the_same_key() -> None:
    first, second = keys("key-spelled-with-an-escape")
    assert first == second
    assert first != "key-5d20c7"


def test_a_record_is_left_alone_where_respelling_would_change_its_verdict() -> None:
    # With its colon escaped, the name of the algorithm cannot be told from the digits.
    data = CASES[0].data.replace(b"sha256:", b"sha256\\u003a")
    assert answer(data) == "effect_held"
    assert respelled(data, random.Random(1)) == data
