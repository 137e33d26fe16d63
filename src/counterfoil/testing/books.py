"""A book in memory, and a clock that jumps where another would wait."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NoReturn

from counterfoil.coordinator.book import ATTEMPTS_MAX, Book
from counterfoil.coordinator.worker import Worker
from counterfoil.errors import BadInput
from counterfoil.limits import LEASE_S, PATIENCE_S
from counterfoil.store.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from counterfoil.coordinator.drive import Clock
    from counterfoil.coordinator.effects import Effect
    from counterfoil.operation.promises import Duration

VIRTUAL_PATIENCE_S = 600.0
"""Seconds that `perform` waits by default on a clock that jumps: waiting costs nothing there."""

EPOCH_US = 1_767_225_600_000_000
"""Where a virtual clock begins: 2026-01-01T00:00:00Z, in microseconds since 1970."""


class VirtualClock:
    """A clock that stands still until somebody waits on it, and then jumps.

    ``before_jump`` is told, in seconds, how far each jump will go, and runs before it: what should
    happen meanwhile happens there.
    """

    def __init__(self, before_jump: Callable[[float], None] | None = None) -> None:
        self._before_jump = before_jump
        self._lock = threading.Lock()
        self._elapsed_us = 0

    def now_us(self) -> int:
        """Return the wall clock in microseconds since 1970."""
        return EPOCH_US + self._elapsed_us

    def monotonic_s(self) -> float:
        """Return seconds since this clock was made."""
        return self._elapsed_us / 1_000_000

    def sleep_until(self, until_s: float) -> None:
        """Jump to ``until_s``; never back."""
        left_s = until_s - self.monotonic_s()
        if left_s <= 0:
            return
        if self._before_jump is not None:
            self._before_jump(left_s)
        with self._lock:
            # One microsecond more than asked for: rounding must not leave us short of it.
            self._elapsed_us = max(self._elapsed_us, int(until_s * 1_000_000) + 1)

    def advance(self, seconds: float) -> None:
        """Jump ahead by so many seconds, as if they had passed between two calls."""
        self.sleep_until(self.monotonic_s() + seconds)


class _BookOnVirtualTime(Book):
    """Its async face is refused: under asyncio waiting is real, and this clock would not move."""

    async def perform_async(
        self, effect: Effect[..., Any], operation_id: str, /, *args: Any, **given: Any
    ) -> NoReturn:
        """Raise ``BadInput``: a virtual clock cannot be waited on under asyncio."""
        del args, given
        raise BadInput(
            f"{effect.name!r} for {operation_id!r}: perform_async needs a clock that runs; make "
            "the book with memory_book(clock=SystemClock())"
        )


def memory_book(
    *,
    clock: Clock | None = None,
    namespace: str = "default",
    patience: Duration | None = None,
    lease: Duration = LEASE_S,
    attempts_max: int = ATTEMPTS_MAX,
) -> Book:
    """Return a real book over a store that forgets when the process ends.

    On the default clock, a ``VirtualClock``, nothing waits: ``settles_within="2m"`` passes in no
    time, and ``patience`` is ten minutes unless you say. With ``clock=SystemClock()`` waiting is
    real and ``patience`` is that of ``counterfoil.open``. Raises ``BadInput`` as ``open`` does.
    """
    if clock is None:
        clock = VirtualClock()
    is_virtual = isinstance(clock, VirtualClock)
    if patience is None:
        patience = VIRTUAL_PATIENCE_S if is_virtual else PATIENCE_S
    kind = _BookOnVirtualTime if is_virtual else Book
    return kind(
        MemoryStore(clock.now_us),
        Worker(None),
        clock,
        namespace=namespace,
        patience=patience,
        lease=lease,
        attempts_max=attempts_max,
    )
