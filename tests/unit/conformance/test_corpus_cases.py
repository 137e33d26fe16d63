"""The shipped corpora: what they hold, that every check is needed, and who wrote them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any

import pytest

from counterfoil import conformance
from counterfoil.conformance import generate
from counterfoil.conformance.manifest import SHIPPED, load_corpus, shipped_names
from counterfoil.reader.checks import REASONS
from counterfoil.reader.verdict import Malformed, judge_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from counterfoil.conformance.corpus.building import Case, Corpus

CORE, HARD = generate.corpora()
BOTH = pytest.mark.parametrize("corpus", [CORE, HARD], ids=lambda one: one.name)
SEED_CONTROLS = [
    "timeout-reconciled-as-absent",
    "resend-after-a-final-absent-answer",
    "resend-under-the-same-key-deduplicated",
    "lease-handed-over-and-reconciled",
    "late-commit-waited-for",
]


def answer(data: bytes, without: frozenset[str] = frozenset()) -> tuple[str, str]:
    verdict = judge_bytes(data, without)
    if isinstance(verdict, Malformed):
        return "malformed", "malformed_record"
    return verdict.decision, verdict.reason


@BOTH
def test_our_reader_answers_every_case_as_expected(corpus: Corpus) -> None:
    wrong = [case.id for case in corpus.cases if answer(case.data) != (case.decision, case.reason)]
    assert wrong == []


@BOTH
@pytest.mark.parametrize("reason", REASONS)
def test_with_a_check_switched_off_some_case_is_answered_otherwise(
    corpus: Corpus, reason: str
) -> None:
    changed = [
        case.id
        for case in corpus.cases
        if answer(case.data, frozenset({reason})) != (case.decision, case.reason)
    ]
    assert changed


@BOTH
def test_no_one_answer_is_due_in_half_of_the_cases(corpus: Corpus) -> None:
    [(_, most)] = Counter((case.decision, case.reason) for case in corpus.cases).most_common(1)
    assert 2 * most < len(corpus.cases)


@BOTH
def test_controls_come_first_and_every_other_case_names_one(corpus: Corpus) -> None:
    controls = [case.id for case in corpus.cases if case.parent is None]
    assert [case.id for case in corpus.cases][: len(controls)] == controls
    assert {case.parent for case in corpus.cases} <= {None, *controls}
    assert all(case.decision == "allow" for case in corpus.cases if case.parent is None)


@BOTH
def test_every_case_names_a_core_scenario_and_says_what_was_done(corpus: Corpus) -> None:
    scenarios = {scenario.id for scenario in conformance.shipped_scenarios()}
    assert {case.scenario for case in corpus.cases} <= scenarios
    assert all(case.edit for case in corpus.cases)


def test_the_seeds_controls_come_first_in_its_order() -> None:
    assert [case.id for case in CORE.cases][:5] == SEED_CONTROLS


def test_each_check_has_two_denials_at_least_in_the_order_of_the_checks() -> None:
    reasons = [case.reason for case in CORE.cases if case.decision == "deny"]
    assert min(Counter(reasons).values()) >= 2
    assert list(dict.fromkeys(reasons)) == list(REASONS)


def test_every_core_scenario_is_paired_with_a_case() -> None:
    assert {case.scenario for case in CORE.cases} == {
        scenario.id for scenario in conformance.shipped_scenarios()
    }


# --- one edit ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", [case for case in CORE.cases if case.parent], ids=lambda one: one.id
)
def test_a_denial_is_one_edit_away_from_its_parent(case: Case) -> None:
    parent = next(one for one in CORE.cases if one.id == case.parent)
    assert edits(json.loads(parent.data), json.loads(case.data)) == 1


def edits(old: Any, new: Any) -> int:
    """Count the members and entries that were changed, taken out or put in."""
    if isinstance(old, dict) and isinstance(new, dict):
        shared = old.keys() & new.keys()
        return len(old.keys() ^ new.keys()) + sum(edits(old[name], new[name]) for name in shared)
    if isinstance(old, list) and isinstance(new, list):
        if len(old) == len(new):
            return sum(edits(*pair) for pair in zip(old, new, strict=True))
        shorter, longer = sorted((old, new), key=len)
        one_more = [longer[:place] + longer[place + 1 :] for place in range(len(longer))]
        return 1 if shorter in one_more else len(longer)
    return int(old != new)


# --- off the boundaries --------------------------------------------------------------------------


@pytest.mark.parametrize("case", CORE.cases, ids=lambda one: one.id)
def test_no_two_times_that_a_check_compares_are_equal(case: Case) -> None:
    record = json.loads(case.data)
    times = [entry["dispatchedAt"] for entry in record["attempts"]]
    times += [entry["at"] for entry in record["reconciliations"]]
    times += chain(*((one["acquiredAt"], one["expiresAt"]) for one in record.get("leases", [])))
    assert len(set(times)) == len(times)


@pytest.mark.parametrize("case", CORE.cases, ids=lambda one: one.id)
def test_the_owner_is_asked_about_the_operations_own_key_only(case: Case) -> None:
    record = json.loads(case.data)
    asked = {entry["idempotencyKey"] for entry in record["reconciliations"]}
    assert asked <= {record["operation"].get("idempotencyKey")}


# --- the writer ----------------------------------------------------------------------------------


@pytest.mark.parametrize("hash_seed", ["0", "4242"])
def test_the_corpora_are_written_byte_for_byte_the_same(tmp_path: Path, hash_seed: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "counterfoil.conformance.generate", str(tmp_path)],
        check=True,
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    for name in shipped_names():
        assert files_below(tmp_path / name) == files_below(SHIPPED / name)


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_case_that_is_no_longer_there_is_taken_away(tmp_path: Path) -> None:
    generate.write(CORE, tmp_path)
    stale = tmp_path / CORE.name / "cases" / "stale"
    stale.mkdir()
    (stale / "record.json").write_text("{}")
    generate.write(CORE, tmp_path)
    assert load_corpus(tmp_path / CORE.name).digest == load_corpus(SHIPPED / CORE.name).digest
    assert not stale.exists()


@BOTH
def test_each_readme_says_what_a_pass_establishes_and_what_not(corpus: Corpus) -> None:
    text = (SHIPPED / corpus.name / "README.md").read_text("utf-8")
    assert "## What a pass establishes" in text
    assert "## What a pass does not establish" in text
