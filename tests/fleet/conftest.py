"""Makes the fleet's processes importable, and shares the one that starts them."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import counterfoil as cf

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from fleet_process import Processes


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    with Processes() as started:
        yield started


@pytest.fixture
def database() -> Iterator[Path]:
    """A new database, in memory where there is such a place: no power fails here."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place, prefix="counterfoil-") as made:
        path = Path(made, "effects.db")
        cf.open(path, create=True).close()
        yield path
