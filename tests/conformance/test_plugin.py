"""The pytest plugin in a project that is not ours."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

WITHOUT = [f"-pno:{name}" for name in ("cacheprovider", "hypothesispytest", "xdist")]
PROJECT = """
from counterfoil import conformance
from counterfoil.conformance.reference import Blind, Reconcile, run_class

POLICY = {policy}

def test_runtime(uncertain_effect):
    assert uncertain_effect.scenario["operation"]["idempotencyKey"]
    assert uncertain_effect.url == uncertain_effect.owner.url
    outcome = run_class(POLICY, uncertain_effect.scenario, uncertain_effect.url)
    assert uncertain_effect.judge(outcome) == []

def test_that_asks_for_nothing():
    pass
"""


def run(folder: Path, *arguments: str, policy: str = "Reconcile") -> tuple[int, str]:
    (folder / "test_theirs.py").write_text(PROJECT.format(policy=policy))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-W", "error", *WITHOUT, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_test_that_asks_for_the_fixture_runs_once_per_core_scenario(tmp_path: Path) -> None:
    code, shown = run(tmp_path, "-q", "-k", "confirmed or definite or nothing or deduplicating")
    assert code == 0, shown
    assert "4 passed, 5 deselected" in shown


def test_a_blind_runtime_fails_with_the_judges_sentence(tmp_path: Path) -> None:
    code, shown = run(tmp_path, "-q", "-k", "commit-then-lost-reply", policy="Blind")
    assert code == 1
    assert "The owner holds 2 effects and the runtime reported committed" in shown
    assert "1 failed, 1 passed, 7 deselected" in shown


def test_the_option_chooses_sets_and_leaves_out_what_needs_a_process(tmp_path: Path) -> None:
    arguments = ("--uncertain-effect-set", "core", "--uncertain-effect-set", "zombie")
    code, shown = run(tmp_path, "--collect-only", "-q", *arguments)
    assert code == 0, shown
    names = re.findall(r"test_runtime\[(.*)\]", shown)
    assert len(names) == 11
    assert "first-call-after-its-resend" in names
    assert "frozen-before-it-sent" not in names


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("crash", "each scenario of crash ends or starts a process; use `counterfoil runtime`"),
        ("most", "invalid choice: 'most'"),
    ],
)
def test_a_choice_that_cannot_be_played_is_a_usage_error(
    tmp_path: Path, name: str, says: str
) -> None:
    code, shown = run(tmp_path, "--uncertain-effect-set", name)
    assert code == pytest.ExitCode.USAGE_ERROR
    assert says in shown
    assert "Traceback" not in shown
