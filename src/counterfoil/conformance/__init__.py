"""Judges readers and runtimes that are not ours.

A Python runtime can be driven from its own tests::

    from counterfoil import conformance

    for scenario in conformance.shipped_scenarios():
        with conformance.effect_owner(scenario) as (url, owner):
            outcome = run_my_runtime(url, scenario["operation"])
            assert conformance.judge(scenario, owner, outcome) == []

Any executable is judged by ``counterfoil runtime``. Knows ``record`` and ``reader`` and nothing of
the coordinating half.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counterfoil.conformance.judging import judge
    from counterfoil.conformance.loading import load_file, load_folder, shipped_scenarios
    from counterfoil.conformance.owner_server import effect_owner
    from counterfoil.conformance.scenario import Scenario, ScenarioError

__all__ = [
    "Scenario",
    "ScenarioError",
    "effect_owner",
    "judge",
    "load_file",
    "load_folder",
    "shipped_scenarios",
]

_MODULES = {
    "judge": "judging",
    "load_file": "loading",
    "load_folder": "loading",
    "shipped_scenarios": "loading",
    "effect_owner": "owner_server",
    "Scenario": "scenario",
    "ScenarioError": "scenario",
}


if not TYPE_CHECKING:

    def __getattr__(name):
        """Import a public name when it is asked for: runtimes under test start often."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
