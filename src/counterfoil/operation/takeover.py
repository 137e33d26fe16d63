"""When a worker may act on an operation that another worker dispatched.

A lease is a right to dispatch and nothing more. That it ran out proves nothing about its holder's
last request: an earlier sender is out of the way only when it is proven dead, or fenced
(coordinator, "A sender is excluded").
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counterfoil.operation.history import History, Lease


class Standing(Enum):
    """How a worker stands to an operation's lease."""

    FREE = "free"  # nobody holds it, or its holder is excluded
    MINE = "mine"
    EXPIRED = "expired"  # its holder let it run out, and may still be alive
    HELD = "held"  # another worker holds it
    EXCLUDED = "excluded"  # this worker itself was declared dead: it may not dispatch


def standing(history: History, worker: str, now_us: int) -> Standing:
    """Return how ``worker`` stands to the operation's lease at ``now_us`` (store clock)."""
    if worker in history.excluded_workers:
        return Standing.EXCLUDED
    lease = last_lease(history)
    if lease is None or holder_is_excluded(history, lease):
        return Standing.FREE
    if lease.worker == worker:
        return Standing.MINE if now_us < lease.until_us else Standing.EXPIRED
    return Standing.HELD if lease_is_running(lease, now_us) else Standing.EXPIRED


def last_lease(history: History) -> Lease | None:
    """Return the lease that was granted last."""
    return history.leases[-1] if history.leases else None


def holder_is_excluded(history: History, lease: Lease) -> bool:
    """No waiting for a lease whose holder is proven dead."""
    return lease.worker in history.excluded_workers


def lease_is_running(lease: Lease, now_us: int) -> bool:
    """A lease ends at its stamp, by the store's clock."""
    return now_us < lease.until_us


def workers_in_question(history: History, worker: str) -> tuple[str, ...]:
    """The other workers whose death would matter: a running lease, or an attempt without an end.

    A worker whose ends are all stored needs no exclusion to be believed past; it is named only
    while its lease still runs.
    """
    named: dict[str, None] = {}
    for attempt in history.attempts:
        if attempt.uncovered and attempt.ended_n is None:
            named.setdefault(attempt.worker)
    lease = last_lease(history)
    if lease is not None and history.settled is None:
        named.setdefault(lease.worker)
    excluded = history.excluded_workers
    return tuple(name for name in named if name != worker and name not in excluded)
