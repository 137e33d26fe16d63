"""What must hold in every moment of a search, told by code apart from the rules.

Read here are the owner's ledger, the requests on the wire and the plain stream of events; never
what the rules concluded of them. Each check returns a sentence that says what is wrong, or None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.operation.events import (
    Dispatched,
    Event,
    Excluded,
    Leased,
    Opened,
    Reopened,
    Replied,
    Settled,
)
from counterfoil.operation.identity import StreamId
from counterfoil.operation.promises import Fences
from counterfoil.operation.replies import Refusal, Status
from counterfoil.operation.trail import record_of
from counterfoil.reader.checks import RECORD_CHECKS
from counterfoil.reader.supported_outcome import find
from counterfoil.simulate import owner as owners
from counterfoil.simulate.streams import outcome_of
from counterfoil.simulate.world import CallIs, Owner, Phase, Place, World

if TYPE_CHECKING:
    from counterfoil.operation.history import History
    from counterfoil.operation.task import Ended
    from counterfoil.simulate.streams import Stream

STREAM = StreamId("simulated", "default", "operation-1")

TWO_EFFECTS = "two effects for one operation"
NOT_RUN_AND_EFFECT = "settled as not run, and the owner holds an effect"
NOT_RUN_AND_OPEN = "settled as not run, and a request can still commit"
COMMITTED_WITHOUT = "settled as committed, and the owner holds no effect"
DISPUTED = "disputed, though the owner kept its promises"
OUTSIDE_LEASE = "dispatched while another worker held the lease"
EXCLUDED_SENDS = "dispatched by a worker that was declared dead"
TOKEN_FELL = "a token that did not grow"
SENT_AFTER_SETTLED = "dispatched after it was settled"
SETTLED_TWICE = "settled twice"
KEY_CHANGED = "another key without a refusal and a retry between"
OPENED_TWICE = "opened twice: the key would carry other arguments"
REPORTED_ELSE = "reported an outcome that its stream does not hold"
TRAIL_DENIED = "its trail is denied by the reader"


# --- the ledger and the wire ---------------------------------------------------------------------


def wrong_world(owner: Owner, world: World, stream: Stream) -> str | None:
    """Compare what is settled with what the owner holds and may still come to hold (I1, I3)."""
    effects = len(world.ledger.effects)
    if effects > 1:
        return TWO_EFFECTS
    settled = stream.outcome
    if settled is Status.NOT_RUN:
        if effects:
            return NOT_RUN_AND_EFFECT
        if any(can_commit(owner, world, i, stream.events) for i in range(len(world.requests))):
            return NOT_RUN_AND_OPEN
    if settled is Status.COMMITTED and not effects:
        return COMMITTED_WITHOUT
    return None


def can_commit(owner: Owner, world: World, index: int, events: tuple[Event, ...]) -> bool:
    """Whether a request may still make an effect, sent already or not."""
    request = world.requests[index]
    if request.place is Place.NOT_WRITTEN:
        dead = world.workers[request.sender].phase is Phase.DEAD
        if dead or request.call is CallIs.ENDED or not owners.in_pause(owner, request, world.t):
            return False
    elif not owners.may_land(owner, request, world.t):
        return False
    key = keys_sent(events)[index]
    return owners.would_commit(owner, world.ledger, key, request.token)


def keys_sent(events: tuple[Event, ...]) -> list[str]:
    """Return the key of each dispatch of a stream, in order."""
    return [event.body.key for event in events if isinstance(event.body, Dispatched)]


# --- the stream ----------------------------------------------------------------------------------


def wrong_stream(owner: Owner, events: tuple[Event, ...], history: History) -> str | None:
    """Look at a whole stream: leases, tokens, keys, settlements, and the trail of it (I5, I6)."""
    return (
        wrong_leases(owner, events)
        or wrong_settlements(events)
        or wrong_keys(events)
        or (DISPUTED if history.disputed is not None else None)
        or wrong_trail(events, history)
    )


def wrong_leases(owner: Owner, events: tuple[Event, ...]) -> str | None:
    """No dispatch under another worker's live lease, none by the dead; tokens only grow (I6)."""
    holder, until_us, last_token = "", 0, 0
    dead: set[str] = set()
    for event in events:
        body = event.body
        if isinstance(body, Excluded):
            dead.add(body.worker)
        if not isinstance(body, Dispatched | Leased):
            continue
        token = event.token or 0
        granted_elsewhere = owner.promises.fences is Fences.BY_LEASE
        if token < last_token or (token == last_token and not granted_elsewhere):
            return TOKEN_FELL
        if isinstance(body, Dispatched):
            if event.worker in dead:
                return EXCLUDED_SENDS
            others = holder not in ("", event.worker) and holder not in dead
            if others and event.at_us < until_us:
                return OUTSIDE_LEASE
        holder, last_token = event.worker, token
        until_us = event.at_us + round(body.lease_s * 1_000_000)
    return None


def wrong_settlements(events: tuple[Event, ...]) -> str | None:
    """Settled once, and nothing is dispatched afterwards unless it was reopened."""
    settled = False
    for event in events:
        match event.body:
            case Settled():
                if settled:
                    return SETTLED_TWICE
                settled = True
            case Reopened():
                settled = False
            case Dispatched():
                if settled:
                    return SENT_AFTER_SETTLED
            case _:
                pass
    return None


def wrong_keys(events: tuple[Event, ...]) -> str | None:
    """One set of arguments, and one key until a refusal has spent it and a retry was asked (I5)."""
    first = events[0].body
    assert isinstance(first, Opened)
    if any(isinstance(event.body, Opened) for event in events[1:]):
        return OPENED_TWICE
    key, refused, reopened = first.key, False, False
    for event in events:
        body = event.body
        if isinstance(body, Replied) and body.refusal is Refusal.DEFINITE:
            refused = True
        if isinstance(body, Reopened):
            reopened = True
        if isinstance(body, Dispatched):
            if body.key != key and not (refused and reopened):
                return KEY_CHANGED
            key, refused, reopened = body.key, False, False
    return None


def wrong_trail(events: tuple[Event, ...], history: History) -> str | None:
    """The exported trail is allowed, and tells the outcome that was settled (I11)."""
    found = find(record_of(STREAM, history))
    for check in RECORD_CHECKS:
        if check.run(found) is not None:
            return f"{TRAIL_DENIED}: {check.reason}"
    settled = outcome_of(events)
    if settled is not None and str(settled) != str(found.outcome):
        return f"{TRAIL_DENIED}: settled {settled}, and its answers support {found.outcome}"
    return None


# --- the end of a run ----------------------------------------------------------------------------


def wrong_end(ended: Ended, events: tuple[Event, ...]) -> str | None:
    """What a caller is told is what the stream holds: unknown unless it is settled (I3)."""
    settled = outcome_of(events)
    told = ended.status
    if told is Status.UNKNOWN:
        return None if settled is None else REPORTED_ELSE
    return None if told is settled else REPORTED_ELSE
