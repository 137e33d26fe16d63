"""A stream of events folded into what `next_step` reads: the operation as it stands now.

The fold judges nothing that is not in the events: whether an absent answer was believed was decided
when the answer was recorded, and stands in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, assert_never

from counterfoil.operation.events import (
    FORGOTTEN,
    Answered,
    Closed,
    Corrected,
    Dispatched,
    Event,
    Excluded,
    Leased,
    Opened,
    Reopened,
    Replied,
    Settled,
    Supposed,
    Verified,
)
from counterfoil.operation.replies import Code, Reason, Refusal, ReplyKind, Result, Status

if TYPE_CHECKING:
    from collections.abc import Iterable


class Attempt(NamedTuple):
    """One authorized effort: what was dispatched, what came back, whether it can still be sent.

    ``ended_n`` is the place of its end in the stream: its reply or time-out, stored by its own
    worker after the call returned, or the exclusion of its sender. ``covered_n`` is the place of
    the believed absent answer that covers it.
    """

    number: int
    key: str
    worker: str
    token: int
    dispatched_n: int
    dispatched_at_us: int
    lease_until_us: int
    deadline_s: float | None
    redelivery: bool
    reply: Replied | None = None
    replied_at_us: int | None = None
    ended_n: int | None = None
    ended_at_us: int | None = None
    covered_n: int | None = None

    @property
    def confirmed(self) -> bool:
        """The owner's documented confirmation came back."""
        return self.reply is not None and self.reply.kind is ReplyKind.CONFIRMED

    @property
    def left_no_effect(self) -> bool:
        """A documented refusal came back, or not one byte was sent."""
        return self.reply is not None and self.reply.kind is ReplyKind.NO_EFFECT

    @property
    def refused(self) -> bool:
        """The owner refused the operation itself."""
        return self.left_no_effect and (
            self.reply is not None and self.reply.refusal is Refusal.DEFINITE
        )

    @property
    def uncovered(self) -> bool:
        """May still have an effect, or get one: not confirmed, not refused, not covered."""
        return not self.confirmed and not self.left_no_effect and self.covered_n is None


class Lease(NamedTuple):
    """A worker's right to dispatch; stamps in microseconds of the store."""

    worker: str
    token: int
    acquired_at_us: int
    until_us: int


class History(NamedTuple):
    """An operation as it stands after ``n`` events."""

    opened: Opened
    opened_at_us: int
    n: int = 1
    last_at_us: int = 0
    attempts: tuple[Attempt, ...] = ()
    answers: tuple[Event, ...] = ()
    leases: tuple[Lease, ...] = ()
    excluded: tuple[Event, ...] = ()
    settled: Settled | None = None
    settled_n: int | None = None
    reopened: int = 0
    reopened_n: int | None = None
    disputed: Reason | None = None
    closed: Closed | None = None
    supposed: str | None = None
    """Why the store was suspect when a forgotten dispatch was last supposed here."""
    verified: Verified | None = None

    @property
    def uncovered(self) -> tuple[Attempt, ...]:
        """The attempts that may still have an effect, or get one."""
        return tuple(a for a in self.attempts if a.uncovered)

    @property
    def sent(self) -> tuple[Attempt, ...]:
        """The attempts that were dispatched here, those only supposed left out."""
        return tuple(a for a in self.attempts if a.worker != FORGOTTEN)

    @property
    def excluded_workers(self) -> frozenset[str]:
        """The workers that can send nothing any more."""
        return frozenset(e.body.worker for e in self.excluded if isinstance(e.body, Excluded))

    @property
    def found(self) -> Answered | None:
        """The first answer that found this operation's effect, if any.

        What the owner held before the first dispatch is a baseline, and no answer.
        """
        first_n = self.attempts[0].dispatched_n if self.attempts else self.n + 1
        baseline = self.baseline
        for event in self.answers:
            body = event.body
            if not isinstance(body, Answered) or event.n < first_n:
                continue
            if body.result is Result.PRESENT and body.effect_id not in baseline:
                return body
        return None

    @property
    def baseline(self) -> frozenset[str]:
        """The effects that the owner held before the first dispatch."""
        first_n = self.attempts[0].dispatched_n if self.attempts else self.n + 1
        bodies = (e.body for e in self.answers if e.n < first_n)
        return frozenset(b.effect_id for b in bodies if isinstance(b, Answered) and b.effect_id)

    @property
    def confirmed(self) -> Attempt | None:
        """The first confirmed attempt, if any."""
        for attempt in self.attempts:
            if attempt.confirmed:
                return attempt
        return None

    @property
    def effect_ids(self) -> tuple[str, ...]:
        """The distinct effects that the owner itself reported, in order."""
        seen: dict[str, None] = {}
        for attempt in self.attempts:
            if attempt.confirmed and attempt.reply and attempt.reply.effect_id:
                seen.setdefault(attempt.reply.effect_id)
        for event in self.answers:
            if isinstance(event.body, Answered) and event.body.effect_id:
                seen.setdefault(event.body.effect_id)
        return tuple(effect_id for effect_id in seen if effect_id not in self.baseline)


def fold(events: Iterable[Event]) -> History:
    """Return the history of a whole stream. Raises ``ValueError`` unless Opened comes first."""
    history: History | None = None
    for event in events:
        history = begin(event) if history is None else advance(history, event)
    if history is None:
        raise ValueError("an operation's stream is empty")
    return history


def begin(event: Event) -> History:
    """Return the history after the first event."""
    if not isinstance(event.body, Opened):
        raise ValueError(  # noqa: TRY004 - the stream is wrong, not a type
            f"a stream begins with an operation, not with {type(event.body).__name__}"
        )
    return History(event.body, event.at_us, n=event.n, last_at_us=event.at_us)


def advance(history: History, event: Event) -> History:
    """Return the history after one more event."""
    body = event.body
    n, at_us = event.n, event.at_us
    match body:
        case Dispatched():
            return _dispatched(history, event, body)
        case Replied():
            return _replied(history, event, body)
        case Settled():
            return history._replace(n=n, last_at_us=at_us, settled=body, settled_n=n)
        case Answered():
            return _answered(history, event, body)
        case Leased():
            leases = (*history.leases, _lease(event, body.lease_s))
            return history._replace(n=n, last_at_us=at_us, leases=leases)
        case Excluded():
            return _excluded(history, event, body)
        case Reopened():
            return history._replace(
                n=n,
                last_at_us=at_us,
                settled=None,
                settled_n=None,
                reopened=history.reopened + 1,
                reopened_n=n,
            )
        case Supposed():
            return _supposed(history, event, body)
        case Closed() | Corrected() | Verified():
            return _found_out(history._replace(n=n, last_at_us=at_us), body)
        case Opened():
            raise ValueError("an operation is opened once")
        case _:
            assert_never(body)


def _lease(event: Event, lease_s: float) -> Lease:
    until_us = event.at_us + round(lease_s * 1_000_000)
    return Lease(event.worker, event.token or 0, event.at_us, until_us)


def _dispatched(history: History, event: Event, body: Dispatched) -> History:
    lease = _lease(event, body.lease_s)
    attempt = Attempt(
        number=body.attempt,
        key=body.key,
        worker=event.worker,
        token=lease.token,
        dispatched_n=event.n,
        dispatched_at_us=event.at_us,
        lease_until_us=lease.until_us,
        deadline_s=body.deadline_s,
        redelivery=body.redelivery,
    )
    return history._replace(
        n=event.n,
        last_at_us=event.at_us,
        attempts=(*history.attempts, attempt),
        leases=(*history.leases, lease),
    )


def _found_out(history: History, body: Closed | Corrected | Verified) -> History:
    """What people decided, or read at the target, after the fact."""
    match body:
        case Closed():
            return history._replace(closed=body)
        case Corrected():
            reason = f"corrected by {body.by}"
            settled = Settled(body.outcome, Code.SETTLED_BY_PERSON, reason, body.cost)
            return history._replace(
                settled=settled, settled_n=history.n, disputed=None, closed=None
            )
        case Verified():
            return history._replace(verified=body)
        case _:
            assert_never(body)


def _excluded(history: History, event: Event, body: Excluded) -> History:
    """The exclusion of a sender is the end of each of its attempts that has none."""
    attempts = tuple(
        a._replace(ended_n=event.n, ended_at_us=event.at_us)
        if a.worker == body.worker and a.ended_n is None
        else a
        for a in history.attempts
    )
    return history._replace(
        n=event.n,
        last_at_us=event.at_us,
        attempts=attempts,
        excluded=(*history.excluded, event),
    )


def _supposed(history: History, event: Event, body: Supposed) -> History:
    """An attempt of nobody knows whom: before every token, and without a lease that is known.

    Whoever was excluded for an earlier gap is not excluded for this one.
    """
    attempt = Attempt(
        number=body.attempt,
        key=body.key,
        worker=FORGOTTEN,
        token=0,
        dispatched_n=event.n,
        dispatched_at_us=event.at_us,
        lease_until_us=event.at_us,
        deadline_s=None,
        redelivery=False,
    )
    lease = Lease(FORGOTTEN, 0, event.at_us, event.at_us)
    return history._replace(
        n=event.n,
        last_at_us=event.at_us,
        attempts=(*history.attempts, attempt),
        leases=(*history.leases, lease),
        excluded=tuple(each for each in history.excluded if not _is_forgotten(each)),
        supposed=body.because,
    )


def _is_forgotten(event: Event) -> bool:
    return isinstance(event.body, Excluded) and event.body.worker == FORGOTTEN


def _replied(history: History, event: Event, body: Replied) -> History:
    n, at_us = event.n, event.at_us
    index = body.attempt - 1  # attempts are numbered from 1, without a gap
    before = history.attempts[index]
    if not body.ended and before.reply is not None:
        # The call returned while its time-out was on the way to the store: what came back stands.
        return history._replace(n=n, last_at_us=at_us)
    if body.ended and before.ended_n is None:
        after = before._replace(reply=body, replied_at_us=at_us, ended_n=n, ended_at_us=at_us)
    else:
        after = before._replace(reply=body, replied_at_us=at_us)
    disputed = history.disputed
    if after.confirmed:
        disputed = disputed or _contradiction(history, body)
    attempts = (*history.attempts[:index], after, *history.attempts[index + 1 :])
    return history._replace(n=n, last_at_us=at_us, attempts=attempts, disputed=disputed)


def _answered(history: History, event: Event, body: Answered) -> History:
    attempts, disputed = history.attempts, history.disputed
    if body.result is Result.PRESENT:
        if attempts and body.effect_id not in history.baseline:
            disputed = disputed or _contradiction(history, body)
    elif body.basis is not None:
        if contradicts_commit(history, body):
            text = "the owner no longer holds the effect that was settled"
            disputed = disputed or Reason(Code.DISPUTED, text)
        attempts = tuple(
            a._replace(covered_n=event.n) if a.uncovered and a.key == body.key else a
            for a in attempts
        )
    return history._replace(
        n=event.n,
        last_at_us=event.at_us,
        attempts=attempts,
        answers=(*history.answers, event),
        disputed=disputed,
    )


def contradicts_commit(history: History, body: Answered) -> bool:
    """Whether an absent answer says that a settled effect is gone.

    Only the owner's final word does, and only to a question that began after the settlement: an
    older answer knows nothing of it (T6), and a read may lag.
    """
    return (
        history.settled is not None
        and history.settled.outcome is Status.COMMITTED
        and body.says_final
        and body.asked_after >= (history.settled_n or 0)
    )


def _contradiction(history: History, seen: Replied | Answered) -> Reason | None:
    """Say how an effect that just became known contradicts what was known before it."""
    if seen.claimed_by is not None:
        text = f"the owner's effect {seen.effect_id} belongs to operation {seen.claimed_by!r}"
        return Reason(Code.EFFECT_CLAIMED, text)
    if history.settled is not None and history.settled.outcome is Status.NOT_RUN:
        text = "an effect appeared after the operation was settled as not run"
        return Reason(Code.DISPUTED, text)
    known = history.effect_ids
    if seen.effect_id is not None and known and seen.effect_id not in known:
        return Reason(Code.DISPUTED, "the owner reported two different effects")
    return None
