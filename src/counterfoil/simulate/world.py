"""The values of a search: what an owner promises and does, how far to look, and one moment.

A moment (``World``) holds small integers and tuples only, so that millions of them can be told
apart quickly: streams and carryings are kept once, in tables, and named by their number.

Time is a count of ticks. A tick is longer than a lease and than a time to settle, so every bound
that the rules know is either not begun or over after a few ticks.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from counterfoil.operation.promises import Fences, Promises
from counterfoil.simulate.carrying import Remembered

if TYPE_CHECKING:
    from counterfoil.operation.replies import Answer

TICK_S = 100
"""Seconds of one step of time."""

LEASE_S = 60.0
"""A lease ends within the tick after the one in which it was taken."""

SETTLES_S = 100.0
"""A time to settle: the owner's last moment is one tick after the end of a call."""

PAUSE_S = 100.0
"""The longest pause of a sender: it may write one tick after its dispatch, and no later."""

RETENTION_S = 250.0
"""A key is kept for two ticks and may be forgotten in the third."""

DEADLINE_S = 1.0
"""A call's own time: shorter than a tick, so a call is over in the tick in which it began."""

WALL_JUMP_TICKS = 8
"""How far a wall clock steps forward, where a search lets it."""


class Owner(NamedTuple):
    """One kind of owner: what it promises, and what else it may do without breaking a promise.

    ``refuses``: it may refuse a request. ``claims_final``: the look-up calls every absence final,
    though nobody promised that. ``partial_views``: it may answer from a view that lacks effects,
    and says that it did. ``can_be_asked``: there is a look-up.
    """

    name: str
    promises: Promises = Promises()
    refuses: bool = False
    claims_final: bool = False
    partial_views: bool = False
    can_be_asked: bool = True


class Bounds(NamedTuple):
    """How far a search looks, and which faults of ours it injects.

    ``workers`` counts all that may ever start, ``at_once`` those alive together. ``runs``: how
    often a worker may be told to carry the operation. ``questions`` are counted for each worker.
    ``hangs``: a call may run past its deadline and go on. ``same_host``: a death can be proven;
    else a person declares it. ``backends_lie``: a proof of death that a freed lock of a database
    would give, for a worker that is alive (T14). ``stalls``: time may pass between a decision and
    its commit.
    """

    workers: int = 2
    at_once: int = 1
    attempts: int = 3
    questions: int = 2
    runs: int = 1
    ticks: int = 2
    crashes: int = 1
    lease_moves: int = 1
    retries: int = 0
    hangs: bool = False
    interrupts: bool = False
    same_host: bool = True
    clock_steps: bool = False
    backends_lie: bool = False
    relays: int = 0
    stalls: bool = False
    lease_s: float = LEASE_S


class Phase(IntEnum):
    """Where a worker is."""

    IDLE = 0
    RUNNING = 1
    DEAD = 2


class Worker(NamedTuple):
    """A process that may send: its carrying, by number, and what it knows from those before."""

    phase: Phase = Phase.IDLE
    carrying: int = -1
    runs: int = 0
    remembered: Remembered = Remembered()


class Place(IntEnum):
    """How far the request of an attempt has come."""

    NOT_WRITTEN = 0
    IN_FLIGHT = 1
    CONFIRMED = 2
    REFUSED = 3
    TOKEN_REFUSED = 4
    LOST = 5  # it never lands


class CallIs(IntEnum):
    """What the sender knows of its call."""

    DISPATCHED = 0  # stored, and not yet begun
    RUNNING = 1
    OVERDUE = 2  # past its deadline, and still running
    ENDED = 3


class Request(NamedTuple):
    """What was sent, or may be, for one attempt; times in ticks, 0 where no promise counts them.

    ``token`` is the one that it carries.
    """

    sender: int
    token: int = 0
    place: Place = Place.NOT_WRITTEN
    call: CallIs = CallIs.DISPATCHED
    dispatched_t: int = 0
    written_t: int = 0
    ended_t: int = 0


class Ledger(NamedTuple):
    """The owner's own state, which nobody but the owner and the invariants may read.

    ``effects`` holds the key of each effect; ``remembered`` the keys that are deduplicated, with
    the tick of their first use; ``spent`` the keys whose refusal is replayed; ``bar`` the least
    token that is let in; ``lease`` the token of the lease that the owner grants.
    """

    effects: tuple[str, ...] = ()
    remembered: tuple[tuple[str, int], ...] = ()
    spent: tuple[str, ...] = ()
    bar: int = 0
    lease: int = 1


class Page(NamedTuple):
    """A person's question: opened after ``asked_after`` events, with the owner's answer on it.

    ``known_s`` tells how long each attempt's end had been known when the page was opened.
    """

    asked_after: int
    asked_t: int
    answer: Answer
    known_s: tuple[tuple[int, float], ...]


class World(NamedTuple):
    """One moment: what every party holds. ``stream`` numbers the operation's stored events."""

    t: int
    stream: int
    workers: tuple[Worker, ...]
    requests: tuple[Request, ...]
    ledger: Ledger
    crashes: int = 0
    retries: int = 0
    relays: int = 0
    wall_jumped: bool = False
    page: Page | None = None


def promised(
    *,
    dedupes: bool = False,
    forgets: bool = False,
    final: bool = False,
    settles: bool = False,
    fences: Fences = Fences.NO,
    replays: bool = False,
) -> Promises:
    """Return promises with the durations of this module."""
    return Promises(
        deduplicates=dedupes,
        key_retention_s=RETENTION_S if forgets else None,
        settles_within_s=SETTLES_S if settles else None,
        final_by_answer=final,
        fences=fences,
        replays_refusals=replays,
        sender_pause_max_s=PAUSE_S if forgets else None,
    )


OWNERS: tuple[Owner, ...] = (
    Owner("promises nothing", claims_final=True),
    Owner("final", promised(final=True), refuses=True),
    Owner("final, partial views", promised(final=True), partial_views=True),
    Owner("settles", promised(settles=True), claims_final=True),
    Owner("settles, partial views", promised(settles=True), partial_views=True),
    Owner("dedupes", promised(dedupes=True), refuses=True),
    Owner("dedupes, never asked", promised(dedupes=True), can_be_asked=False),
    Owner("dedupes, final", promised(dedupes=True, final=True), refuses=True),
    Owner("dedupes, forgets", promised(dedupes=True, forgets=True, settles=True)),
    Owner("replays refusals", promised(final=True, replays=True), refuses=True),
    Owner("dedupes, replays refusals", promised(dedupes=True, replays=True), refuses=True),
    Owner("fences on send", promised(fences=Fences.ON_SEND), claims_final=True),
    Owner("fences on ask", promised(fences=Fences.ON_ASK)),
    Owner("fences by call", promised(fences=Fences.BY_CALL)),
    Owner("fences by lease", promised(fences=Fences.BY_LEASE)),
    Owner("fences by lease, final", promised(final=True, fences=Fences.BY_LEASE)),
    Owner("fences on ask, dedupes", promised(dedupes=True, fences=Fences.ON_ASK), refuses=True),
)
"""The kinds that a search goes through: each rule of belief has one that rests on it alone."""


def owner_named(name: str) -> Owner:
    """Return one of ``OWNERS``. Raises ``KeyError``."""
    return {owner.name: owner for owner in OWNERS}[name]
