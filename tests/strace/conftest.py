"""Makes the processes that crash under a tracer importable, and shares the one that starts them."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from crash_process import Processes


@pytest.fixture(scope="session")
def processes() -> Iterator[Processes]:
    with Processes() as started:
        yield started


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is one: many databases are made, and no power fails."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() else None
    with tempfile.TemporaryDirectory(dir=place, prefix="counterfoil-") as made:
        yield Path(made)
