"""The two clocks of a driver: one for people and leases, one that never goes back."""

from __future__ import annotations

import time

_MONOTONIC = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    """This machine's clocks."""

    def now_us(self) -> int:
        """Return the wall clock in microseconds since 1970."""
        return time.time_ns() // 1000

    def monotonic_s(self) -> float:
        """Return seconds that never go back and go on while the machine sleeps."""
        return time.clock_gettime(_MONOTONIC)

    def sleep_until(self, until_s: float) -> None:
        """Sleep until ``monotonic_s`` reaches ``until_s``."""
        left_s = until_s - self.monotonic_s()
        if left_s > 0:
            time.sleep(left_s)
