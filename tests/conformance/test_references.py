"""The suite is tested with a good runtime, a bad one, and ten that are wrong in one way each."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from counterfoil import conformance
from counterfoil.conformance import reference
from counterfoil.conformance.mutants import CAUGHT_BY, MUTANTS
from counterfoil.conformance.runtime import run_scenario

if TYPE_CHECKING:
    from counterfoil.conformance.report import Row
    from counterfoil.conformance.scenario import Scenario

SEED = 20
JOBS = 6  # most of a run is waiting
CORE_CAUGHT = {name: one for name, (kind, one) in CAUGHT_BY.items() if kind == "core"}
LATER_CAUGHT = {name: place for name, place in CAUGHT_BY.items() if place[0] != "core"}


def find(set_name: str, scenario_id: str) -> Scenario:
    return next(one for one in conformance.shipped_scenarios(set_name) if one.id == scenario_id)


def judged(kind: type[reference.Runtime], scenario: Scenario) -> list[str]:
    with conformance.effect_owner(scenario) as (url, owner):
        outcome = reference.run_class(kind, scenario, url)
        return conformance.judge(scenario, owner, outcome)


def drive(module: str, option: str, name: str, *scenarios: Scenario) -> list[Row]:
    command = [sys.executable, "-m", f"counterfoil.conformance.{module}", option, name]
    with ThreadPoolExecutor(JOBS) as pool:
        return list(pool.map(lambda one: run_scenario(command, one, seed=SEED), scenarios))


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask for a shorter time: where nobody will ever know, waiting longer shows nothing."""
    monkeypatch.setattr(reference, "PATIENCE_S", 1.0)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("scenario", conformance.shipped_scenarios(), ids=lambda one: one.id)
def test_reconcile_passes_the_core_scenarios_from_its_own_tests(scenario: Scenario) -> None:
    assert judged(reference.Reconcile, scenario) == []


def test_blind_fails_at_least_four_core_scenarios_each_with_a_sentence() -> None:
    found = [judged(reference.Blind, one) for one in conformance.shipped_scenarios()]
    failed = [sentences for sentences in found if sentences]
    assert len(failed) >= 4
    assert all(sentence.endswith(".") for sentences in failed for sentence in sentences)


def test_reconcile_passes_every_scenario_as_a_process() -> None:
    scenarios = conformance.shipped_scenarios("field", "crash", "zombie")
    rows = drive("reference", "--policy", "reconcile", *scenarios)
    assert {row.id: row.findings for row in rows if not row.passed} == {}
    assert {row.id: row.notes for row in rows if row.notes} == {}, "each fault happens"


def test_every_mutant_is_meant_to_be_caught() -> None:
    assert set(CAUGHT_BY) == set(MUTANTS)
    assert len(MUTANTS) == 10


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize(("name", "scenario_id"), CORE_CAUGHT.items())
def test_a_core_scenario_catches_the_mutant(name: str, scenario_id: str) -> None:
    assert judged(MUTANTS[name], find("core", scenario_id))


@pytest.mark.parametrize(("name", "place"), LATER_CAUGHT.items())
def test_a_scenario_of_another_set_catches_the_mutant(name: str, place: tuple[str, str]) -> None:
    [row] = drive("mutants", "--mutant", name, find(*place))
    assert not row.passed


@pytest.mark.parametrize(
    "scenario_id", ["dead-with-the-call-on-the-wire", "frozen-with-the-call-on-the-wire"]
)
def test_asking_and_believing_any_absent_answer_leaves_two_effects(scenario_id: str) -> None:
    [row] = drive("mutants", "--mutant", "trusts_nonfinal_absent", find("zombie", scenario_id))
    assert row.got.startswith("2 effects")
