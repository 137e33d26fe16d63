"""A second worker in this process, on a clock that jumps where another would wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.coordinator.book import Book
from counterfoil.coordinator.clock import SystemClock
from counterfoil.coordinator.worker import Worker
from counterfoil.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from pathlib import Path

    from counterfoil.store.witness import Witness


class JumpingClock:
    """This machine's clocks, ahead of them by all that was skipped."""

    def __init__(self) -> None:
        self._real = SystemClock()
        self.skipped_s = 0.0

    def now_us(self) -> int:
        """Return the wall clock in microseconds since 1970."""
        return self._real.now_us() + int(self.skipped_s * 1_000_000)

    def monotonic_s(self) -> float:
        """Return seconds that never go back."""
        return self._real.monotonic_s() + self.skipped_s

    def sleep_until(self, until_s: float) -> None:
        """Jump there."""
        self.skipped_s += max(0.0, until_s - self.monotonic_s())


def open_on(
    database: Path,
    clock: JumpingClock,
    *,
    lease_s: float = 60.0,
    patience_s: float = 7.0,
    witness: Witness | None = None,
) -> Book:
    """Open a book over the database, as `counterfoil.open` does, on this clock."""
    return Book(
        SqliteStore(database, create=False, now_us=clock.now_us, witness=witness),
        Worker(database.with_name(database.name + ".workers")),
        clock,
        lease=lease_s,
        patience=patience_s,
    )
