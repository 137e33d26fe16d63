"""A pytest plugin: a test that asks for ``uncertain_effect`` runs once per scenario.

::

    def test_my_runtime(uncertain_effect):
        outcome = run_my_runtime(uncertain_effect.url, uncertain_effect.scenario["operation"])
        assert uncertain_effect.judge(outcome) == []

``--uncertain-effect-set`` chooses the sets. Scenarios that kill, freeze or restart the runtime are
left out: nobody ends the process that runs the tests, so those are for ``counterfoil runtime``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from counterfoil.conformance import Scenario
    from counterfoil.conformance.owner_server import OwnerServer

OPTION = "--uncertain-effect-set"
FIXTURE = "uncertain_effect"


@dataclass(frozen=True, slots=True)
class UncertainEffect:
    """One scenario, and the counting owner that plays it at ``url`` while the test runs."""

    scenario: Scenario
    url: str
    owner: OwnerServer

    def judge(self, outcome: str) -> list[str]:
        """Return what was not accepted, one sentence each; an empty list is a pass.

        ``outcome`` is what the runtime reports: committed, not_run or unknown.
        """
        from counterfoil import conformance

        return conformance.judge(self.scenario, self.owner, outcome)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that chooses the sets."""
    parser.getgroup("counterfoil").addoption(
        OPTION,
        action="append",
        choices=("core", "field", "crash", "zombie"),
        help="a set of scenarios for the fixture uncertain_effect, more than once for more sets; "
        "without it: core",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a choice of sets of which nothing can be played beside a test."""
    sets = config.getoption(OPTION)
    if sets and not _scenarios(sets):
        raise pytest.UsageError(
            f"{OPTION}: each scenario of {', '.join(sets)} ends or starts a process; "
            "use `counterfoil runtime`"
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that asks for the fixture once per scenario of the chosen sets."""
    if FIXTURE in metafunc.fixturenames:
        scenarios = _scenarios(metafunc.config.getoption(OPTION))
        metafunc.parametrize(
            FIXTURE, scenarios, indirect=True, ids=[scenario.id for scenario in scenarios]
        )


@pytest.fixture
def uncertain_effect(request: pytest.FixtureRequest) -> Iterator[UncertainEffect]:
    """Serve one scenario of uncertain-effect/v1 by a counting owner, and judge what was left."""
    from counterfoil import conformance

    with conformance.effect_owner(request.param) as (url, owner):
        yield UncertainEffect(request.param, url, owner)


def _scenarios(sets: list[str] | None) -> list[Scenario]:
    """Return the scenarios that can be played beside a test, in the order of the sets."""
    from counterfoil import conformance

    scenarios = conformance.shipped_scenarios(*dict.fromkeys(sets or ()))
    return [scenario for scenario in scenarios if not scenario.needs_a_process]
