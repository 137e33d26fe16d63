"""Any bytes get one answer from the reader, and it is the answer of the page's second statement."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from counterfoil.reader.verdict import (
    Malformed,
    Verdict,
    judge_briefly,
    judge_bytes,
    judge_record,
)
from counterfoil.record.codec import decode, encode

from . import generated, oracle
from .trails import CONTROLS, control, full, reason_of, said

UNHURRIED = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
few = settings(deadline=None, max_examples=100, suppress_health_check=UNHURRIED)
CHOICES = st.randoms(use_true_random=False)


def compare(data: bytes, hint: str = "") -> str:
    """Judge by the oracle and by both of the reader's ways; return the oracle's answer."""
    told = oracle.judge(data)
    whole, brief = judge_bytes(data), judge_briefly(data)
    differs = f"{hint} {data!r}: {whole}"
    assert reason_of(whole) == told.reason, differs
    if isinstance(whole, Malformed):
        assert whole == brief, differs
    else:
        assert isinstance(brief, Verdict), f"{brief} for {differs}"
        assert (whole.decision, whole.outcome) == (told.decision, told.outcome), differs
        assert said_of(whole) == said_of(brief), differs
    return told.reason


def said_of(verdict: Verdict) -> tuple[object, ...]:
    """Return all that a verdict says, but for the record that it may carry."""
    return (
        verdict.decision,
        verdict.reason,
        verdict.outcome,
        verdict.explanation,
        verdict.members,
        verdict.advisories,
    )


SEEDS = 3000
SHARES = 2


@pytest.mark.parametrize("share", range(SHARES))
def test_the_reader_and_the_oracle_agree_on_thousands_of_records(share: int) -> None:
    """Each answer must be met often enough for its agreement to mean something."""
    seen: Counter[str] = Counter()
    for seed in range(share, SEEDS, SHARES):
        data = generated.anything(Random(seed))
        seen[compare(data, hint=f"generated.anything(Random({seed})):")] += 1
    rare = [answer for answer in oracle.ANSWERS if seen[answer] < seen.total() / 100]
    assert not rare, f"of {seen.total()}: {seen}"


@few
@given(CHOICES)
def test_the_reader_and_the_oracle_agree_on_a_record_that_hypothesis_chooses(r: Random) -> None:
    compare(generated.anything(r))


@few
@given(st.binary(max_size=200))
def test_any_bytes_get_an_answer(data: bytes) -> None:
    compare(data)


@few
@given(st.text(alphabet='{}[]":,\\ue0-1.x\ud83d\ufeff \n', max_size=60))
def test_any_text_gets_an_answer(text: str) -> None:
    compare(text.encode("utf-8", "surrogatepass"))


def typed(values: Any) -> Any:
    """Return JSON values with every number as itself: True is not 1 here."""
    if isinstance(values, dict):
        return {name: typed(value) for name, value in values.items()}
    if isinstance(values, list):
        return [typed(value) for value in values]
    return (type(values), values)


@pytest.mark.parametrize("name", CONTROLS)
def test_a_record_that_is_decoded_and_encoded_is_judged_alike(name: str) -> None:
    record = decode(control(name))
    assert decode(encode(record)) == record
    again = judge_record(record)
    assert reason_of(again) == "effect_held"
    assert reason_of(judge_bytes(said(encode(record)))) == "effect_held"


def test_encoding_keeps_what_was_decoded() -> None:
    kept = {**full(), "extra": {"deep": [1, True, None, "text"]}}
    assert typed(encode(decode(kept))) == typed(kept)


def test_a_record_that_was_judged_is_judged_alike_as_a_value_and_keeps_every_advisory() -> None:
    for seed in range(300):
        verdict = judge_bytes(generated.anything(Random(seed)))
        if isinstance(verdict, Malformed) or verdict.record is None:
            continue
        again = judge_record(verdict.record)
        assert isinstance(again, Verdict)
        assert (again.reason, again.advisories) == (verdict.reason, verdict.advisories), seed
        assert decode(encode(verdict.record)) == verdict.record, seed
