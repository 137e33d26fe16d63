"""The counting effect owner without its sockets: what it holds, promises and was asked.

Every method may be called from any thread; a call takes effect under one lock. The owner keeps its
promises: an absent answer that it calls final is never followed by the commit of a request that
left its sender before the question.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from counterfoil.conformance.scenario import (
    CallStep,
    Fences,
    Json,
    LandsWhen,
    LookupStep,
    Promises,
    Says,
    Scenario,
)

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_TOKEN = 1
"""The fencing token that is in force when a scenario begins."""

_TICK_S = 0.02  # how often a waiting reply looks whether its call has landed


class Kind(StrEnum):
    """What kind of request the owner saw."""

    CALL = "call"
    LOOKUP = "lookup"
    LEASE = "lease"
    FENCE = "fence"
    OTHER = "other"
    MALFORMED = "malformed"


class Did(StrEnum):
    """What became of a call at the owner."""

    UNSENT = "unsent"  # its sender is frozen before its first byte
    ARRIVED = "arrived"  # read, and not yet acted on
    WAITING = "waiting"  # on the wire: it will land later
    COMMITTED = "committed"
    DEDUPLICATED = "deduplicated"
    CONFLICT = "conflict"  # a key that is known with other arguments
    SUPERSEDED = "superseded"  # its token is below the bar, or missing
    DROPPED = "dropped"  # never lands, or came after a final absent answer
    NONE = "none"  # no call


_ON_THE_WIRE = (Did.ARRIVED, Did.WAITING)
_OPEN = (*_ON_THE_WIRE, Did.UNSENT)


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect that the owner holds."""

    id: str
    key: str


@dataclass(slots=True)
class Event:
    """One request as the owner saw it. A tally holds copies, which no thread changes."""

    number: int
    """Counts the requests of this kind from 1."""
    kind: Kind
    at_ms: int
    """Milliseconds since the owner started."""
    key: str | None = None
    args: str | None = None
    """The arguments as JSON text with sorted names: equal arguments give equal text."""
    token: int | None = None
    token_in_force: int | None = None
    """The lease's token when the request left its sender; None without a lease."""
    did: Did = Did.NONE
    effect_id: str | None = None
    answer: str = ""
    """What went back, in a few words."""
    connection: int = 0
    """Connections are numbered in the order in which they were accepted."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What was left at the owner, taken once nothing is on the wire any more."""

    effects: tuple[Effect, ...]
    events: tuple[Event, ...]

    @property
    def calls(self) -> tuple[Event, ...]:
        """The calls that could be read, in the order of their arrival."""
        return tuple(event for event in self.events if event.kind is Kind.CALL)


@dataclass(slots=True)
class _Pending:
    event: Event
    when: LandsWhen
    target: float


class Ledger:
    """The owner's state. ``clock`` gives seconds and never goes back."""

    def __init__(self, scenario: Scenario, clock: Callable[[], float] = time.monotonic) -> None:
        self._calls = scenario.calls
        self._lookups = scenario.lookups
        self.promises: Promises = scenario.promises
        self._clock = clock
        self._started_s = clock()
        self._changed = threading.Condition()
        self._events: list[Event] = []
        self._effects: list[Effect] = []
        self._known: dict[str, tuple[Effect, str, float]] = {}
        self._pending: list[_Pending] = []
        self._final_before: dict[str, int] = {}
        self._lease = None if scenario.worker is None else FIRST_TOKEN
        self._bar = 0
        self._acted = 0
        self._answered = 0
        self._closed = False

    # --- what the wire brings --------------------------------------------------------------------

    def record(self, kind: Kind, connection: int) -> Event:
        """Note a request and return its event."""
        with self._changed:
            return self._note(kind, connection)

    def call_arrived(
        self, key: str, args: str, token: int | None, connection: int
    ) -> tuple[Event, CallStep]:
        """Note a call and say which step of the script it meets; the last step repeats."""
        with self._changed:
            event = self._note(Kind.CALL, connection, key=key, args=args, token=token)
            step = self._calls[min(event.number, len(self._calls)) - 1]
            event.did = Did.UNSENT if step.landing.when is LandsWhen.WAKE else Did.ARRIVED
            return event, step

    def act(self, event: Event, step: CallStep) -> Did:
        """Let a call take effect, or put it on the wire, as its step says."""
        with self._changed:
            self._land_due()
            self._acted += 1
            match step.landing.when:
                case LandsWhen.NOW:
                    self._land(event)
                case LandsWhen.NEVER:
                    event.did = Did.DROPPED
                case when:
                    if when is not LandsWhen.WAKE:
                        event.did = Did.WAITING
                    base = {
                        LandsWhen.LOOKUPS: self._answered,
                        LandsWhen.CALLS: self._acted,
                        LandsWhen.SECONDS: self._clock(),
                    }.get(when, 0)
                    self._pending.append(_Pending(event, when, base + step.landing.count))
            self._land_due()
            if step.moves_lease:
                self._move_lease()
            self._changed.notify_all()
            return event.did

    def wait_until_landed(self, event: Event) -> Did:
        """Wait until a call is on the wire no more, or the owner closes."""
        with self._changed:
            while event.did in _OPEN and not self._closed:
                self._land_due()
                if event.did in _OPEN:
                    self._changed.wait(_TICK_S)
            return event.did

    def lookup_arrived(self, key: str, token: int | None, connection: int) -> Event:
        """Note a question; where questions fence, its token is in force from here on."""
        with self._changed:
            event = self._note(Kind.LOOKUP, connection, key=key, token=token)
            if self.promises.fences is Fences.ON_ASK and token is not None:
                self._bar = max(self._bar, token)
            return event

    def lookup_step(self, event: Event) -> LookupStep:
        """Say which step of the script a question meets; the last step repeats."""
        return self._lookups[min(event.number, len(self._lookups)) - 1]

    def answer(self, event: Event, says: Says) -> dict[str, Json]:
        """Return the owner's answer; calls that wait for a look-up land right after it."""
        with self._changed:
            self._land_due()
            assert event.key is not None
            body: dict[str, Json] = {"result": "absent", "final": False}
            match says:
                case Says.TRUTH:
                    body = self._truth(event.key, event.connection)
                case Says.PARTIAL:
                    body["partial"] = True
                case _:
                    pass
            self._answered += 1
            self._land_due()
            self._changed.notify_all()
            return body

    def lease(self, connection: int) -> Event:
        """Note a question about the lease; ``token_in_force`` is None where none are granted."""
        return self.record(Kind.LEASE, connection)

    def raise_bar(self, token: int, connection: int) -> tuple[Event, int | None]:
        """Fence by a call of its own: return the bar, or None where the owner takes no such call.

        A call under a lower token commits nothing from here on.
        """
        with self._changed:
            event = self._note(Kind.FENCE, connection, token=token)
            if self.promises.fences is not Fences.BY_CALL:
                return event, None
            self._bar = max(self._bar, token)
            return event, self._bar

    # --- what a fault does -----------------------------------------------------------------------

    def deliver(self) -> None:
        """Deliver what the network holds."""
        self._land_all(LandsWhen.RELEASE)

    def wake(self) -> None:
        """Let a sender that woke write what it had not written: a call that is new here."""
        with self._changed:
            for entry in self._pending:
                if entry.when is LandsWhen.WAKE:
                    entry.event.token_in_force = self._lease
            self._land_all(LandsWhen.WAKE)

    def move_lease(self) -> None:
        """Grant the lease to another worker."""
        with self._changed:
            self._move_lease()

    def settle(self) -> None:
        """Let everything land that is still on the wire; what was never written never lands."""
        for when in LandsWhen:
            if when is not LandsWhen.WAKE:
                self._land_all(when)

    def close(self) -> None:
        """Wake whoever waits for a landing."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def tally(self) -> Tally:
        """Let everything land, and return copies of what is there."""
        self.settle()
        with self._changed:
            return Tally(tuple(self._effects), tuple(replace(event) for event in self._events))

    # --- inside the lock -------------------------------------------------------------------------

    def _note(
        self,
        kind: Kind,
        connection: int,
        *,
        key: str | None = None,
        args: str | None = None,
        token: int | None = None,
    ) -> Event:
        event = Event(
            number=1 + sum(earlier.kind is kind for earlier in self._events),
            kind=kind,
            at_ms=round(1000 * (self._clock() - self._started_s)),
            key=key,
            args=args,
            token=token,
            token_in_force=self._lease,
            connection=connection,
        )
        self._events.append(event)
        return event

    def _truth(self, key: str, connection: int) -> dict[str, Json]:
        for effect in self._effects:
            if effect.key == key:
                final = self.promises.final_by_answer
                return {"result": "present", "final": final, "effectId": effect.id}
        on_the_wire = any(event.key == key and event.did in _ON_THE_WIRE for event in self._events)
        final = self.promises.final_by_answer and not on_the_wire
        if final:
            # What was sent before this question and is still unread may commit no more.
            self._final_before[key] = connection
        return {"result": "absent", "final": final}

    def _land(self, event: Event) -> None:
        """Let one call take effect, by the token, the key and the final answers given so far."""
        assert event.key is not None
        assert event.args is not None
        now_s = self._clock()
        known = self._known.get(event.key) if self.promises.deduplicates else None
        retention_s = self.promises.key_retention_s
        if known and retention_s is not None and now_s - known[2] > retention_s:
            known = None
        was_sent = event.did is not Did.UNSENT
        if was_sent and event.connection < self._final_before.get(event.key, 0):
            event.did = Did.DROPPED
        elif self._is_fenced(event.token):
            event.did = Did.SUPERSEDED
        elif known:
            event.did = Did.DEDUPLICATED if known[1] == event.args else Did.CONFLICT
            event.effect_id = known[0].id
        else:
            effect = Effect(f"effect-{len(self._effects) + 1}", event.key)
            self._effects.append(effect)
            self._known[event.key] = (effect, event.args, now_s)
            event.did, event.effect_id = Did.COMMITTED, effect.id

    def _is_fenced(self, token: int | None) -> bool:
        """Whether a token is below the bar; one that passes raises it."""
        fences = self.promises.fences
        if fences is Fences.NO:
            return False
        bar = self._bar
        if fences is Fences.BY_LEASE and self._lease is not None:
            bar = self._lease
        if (token or 0) < bar:
            return True
        self._bar = max(self._bar, token or 0)
        return False

    def _move_lease(self) -> None:
        assert self._lease is not None
        self._lease += 1

    def _land_due(self) -> None:
        reached = {
            LandsWhen.LOOKUPS: self._answered,
            LandsWhen.CALLS: self._acted,
            LandsWhen.SECONDS: self._clock(),
        }
        due = [
            entry
            for entry in self._pending
            if entry.when in reached and reached[entry.when] >= entry.target
        ]
        self._land_entries(due)

    def _land_all(self, when: LandsWhen) -> None:
        with self._changed:
            self._land_entries([entry for entry in self._pending if entry.when is when])
            self._changed.notify_all()

    def _land_entries(self, entries: list[_Pending]) -> None:
        for entry in entries:
            self._pending.remove(entry)
            self._land(entry.event)
