"""Which owners are searched within which bounds: quick enough for every change, or in full.

The bounds of a plan were chosen by counting: what makes a search long is given only to the owners
that it can tell something about. Time passes only where a promise, or a lease of another host,
counts it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from counterfoil.operation.promises import Fences
from counterfoil.simulate.world import OWNERS, Bounds, owner_named

if TYPE_CHECKING:
    from counterfoil.simulate.world import Owner


class Plan(NamedTuple):
    """One search: an owner and how far to look."""

    owner: Owner
    bounds: Bounds

    @property
    def name(self) -> str:
        """The owner, and every bound that is not the usual one."""
        usual = Bounds()
        given = {
            name: value
            for name, value in self.bounds._asdict().items()
            if value != getattr(usual, name)
        }
        return ", ".join([self.owner.name, *(f"{name}={value}" for name, value in given.items())])


def plans(workers: int, *, full: bool) -> tuple[Plan, ...]:
    """Return the searches for one worker at a time, or for two at once."""
    if workers == 1:
        return (*_one(full=full), *_one_with_faults(full=full))
    return _two(full=full)


def _one(*, full: bool) -> tuple[Plan, ...]:
    """Three attempts, every reply and answer, a crash anywhere and a new worker after it."""
    found = []
    for owner in OWNERS:
        promises = owner.promises
        wide = promises.deduplicates or promises.fences in (Fences.BY_CALL, Fences.BY_LEASE)
        bounds = Bounds(attempts=3 if full or not wide else 2, ticks=0)
        if promises.settles_within_s is not None:
            bounds = Bounds(attempts=2, ticks=5 if full else 4, questions=2 if full else 1)
        if promises.key_retention_s is not None and not full:
            bounds = bounds._replace(crashes=0)
        if owner.partial_views and not full:
            bounds = bounds._replace(attempts=1, ticks=min(bounds.ticks, 2))
        found.append(Plan(owner, bounds))
    return tuple(found)


FAULTY = ("promises nothing", "final", "replays refusals", "fences on ask", "dedupes")


def _one_with_faults(*, full: bool) -> tuple[Plan, ...]:
    """Calls that hang, interrupts, retries, and a crash that nobody on this host can prove."""
    owners = OWNERS if full else tuple(owner_named(name) for name in FAULTY)
    attempts = 2 if full else 1
    each = (
        Bounds(attempts=attempts, ticks=0, questions=1, hangs=True),
        Bounds(attempts=2, ticks=0, questions=1, interrupts=True, runs=2, crashes=0),
        Bounds(attempts=attempts, ticks=0, questions=1, retries=1, runs=2),
        Bounds(attempts=attempts, ticks=1, questions=1, same_host=False),
    )
    return tuple(Plan(owner, bounds) for owner in owners for bounds in each)


DEEP = ("promises nothing", "final", "dedupes", "replays refusals", "fences on ask")
"""The owners that two workers are searched with for two attempts, also when it has to be quick."""

ONLY_IN_FULL = ("fences by lease, final",)


def _two(*, full: bool) -> tuple[Plan, ...]:
    """Two workers at once; the lease of one runs out while it is frozen, and the other goes on."""
    found = []
    for owner in OWNERS:
        if owner.name in ONLY_IN_FULL and not full:
            continue
        promises = owner.promises
        timed = promises.settles_within_s is not None
        deep = full or owner.name in DEEP
        bounds = Bounds(
            at_once=2,
            attempts=3 if full else 2 if deep else 1,
            ticks=3 if timed and full else 1,
            questions=2 if full else 1,
            crashes=1 if full else 0,
        )
        found.append(Plan(owner, bounds))
    return tuple(found)
