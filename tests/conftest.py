"""What every test shares: effects that are declared in one test are not there in the next."""

from __future__ import annotations

import pytest

from counterfoil.coordinator import effects


@pytest.fixture(autouse=True)
def effects_of_this_test_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "_registry", {})
