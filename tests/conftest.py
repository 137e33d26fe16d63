"""What every test shares: a fresh registry for each, and no skip that nobody sees."""

from __future__ import annotations

import os

import pytest

from counterfoil.coordinator import effects


@pytest.fixture(autouse=True)
def effects_of_this_test_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "_registry", {})


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Where skips are not allowed, a run that skipped something has failed."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("COUNTERFOIL_NO_SKIPS") and reporter is not None:
        skipped = reporter.stats.get("skipped", [])
        if skipped and exitstatus == 0:
            reporter.write_line(f"{len(skipped)} tests were skipped, and none may be", red=True)
            session.exitstatus = 1
