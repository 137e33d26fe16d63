"""Makes the desk importable, and hands out a mission with a run and a grant."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from mission_desk import Desk  # found on the path above


@pytest.fixture
def desk() -> Desk:
    """A mission with run r and grant g, at time 10."""
    return Desk.ready()
