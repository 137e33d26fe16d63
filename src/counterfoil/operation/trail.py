"""A history as an uncertain-effect/v1 record: only what was observed.

Written apart from the reader's checks on purpose; the two share the record's types and nothing
else. ``ownerEffects`` holds the effects that the owner itself named, never one that we infer
(uncertain-effect, "What an exported trail may say").
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.operation.events import FORGOTTEN, Answered, Event
from counterfoil.operation.promises import Promises
from counterfoil.operation.replies import ReplyKind
from counterfoil.operation.replies import Result as Said
from counterfoil.record.instants import from_unix_us
from counterfoil.record.model import (
    Attempt,
    EffectOwner,
    Lease,
    Operation,
    Outcome,
    Reconciliation,
    Record,
    Reply,
    Reported,
    Reservation,
    Result,
)
from counterfoil.record.strict_json import Real

if TYPE_CHECKING:
    from counterfoil.operation import history as past
    from counterfoil.operation.history import History
    from counterfoil.operation.identity import StreamId


def record_of(stream: StreamId, history: History) -> Record:
    """Return the trail of one operation, its outcome computed over all that is known now."""
    opened = history.opened
    promises = Promises.from_json(opened.promises)
    outcome = outcome_now(history)
    retention_s = promises.key_retention_s if promises.deduplicates else None
    return Record(
        operation=Operation(stream.operation_id, opened.action, opened.key, opened.args_digest),
        effect_owner=EffectOwner(opened.owner, promises.deduplicates, _number(retention_s)),
        attempts=tuple(_attempt(a, opened.args_digest) for a in attempts_that_count(history)),
        reconciliations=tuple(_reconciliation(event) for event in answers_that_count(history)),
        owner_effects=tuple({"id": effect_id} for effect_id in history.effect_ids),
        reported=Reported(outcome),
        leases=tuple(
            Lease(
                lease.worker,
                lease.token,
                from_unix_us(lease.acquired_at_us),
                from_unix_us(lease.until_us),
            )
            for lease in history.leases
        ),
        reservation=_reservation(history, outcome),
        extra=_said_besides(history),
    )


def _said_besides(history: History) -> dict[str, object]:
    """What the record's own members have no place for."""
    said: dict[str, object] = {}
    if history.disputed is not None:
        said["disputed"] = str(history.disputed)
    if history.supposed is not None:
        said["supposed"] = history.supposed  # the store may have forgotten a dispatch
    if history.opened.under is not None and "compensates" in history.opened.under:
        said["compensates"] = history.opened.under["compensates"]
    return said


def outcome_now(history: History) -> Outcome:
    """Return what the observations support: not what was settled, if later ones contradict it."""
    if history.confirmed is not None or history.found is not None:
        return Outcome.COMMITTED
    return Outcome.UNKNOWN if history.uncovered else Outcome.NOT_RUN


def attempts_that_count(history: History) -> tuple[past.Attempt, ...]:
    """Every attempt but a supposed one that followed an attempt in doubt.

    What nobody remembers, and may never have been, is no evidence of a resend without licence; the
    attempt before it says already that the outcome is not known.
    """
    counted: list[past.Attempt] = []
    for attempt in history.attempts:
        in_doubt = any(
            not before.confirmed
            and not before.left_no_effect
            and (before.covered_n is None or before.covered_n > attempt.dispatched_n)
            for before in counted
        )
        if attempt.worker != FORGOTTEN or not in_doubt:
            counted.append(attempt)
    return tuple(counted)


def answers_that_count(history: History) -> tuple[Event, ...]:
    """Every answer but those of the baseline: what was there before is no answer."""
    if not history.attempts:
        return ()
    first_n, baseline = history.attempts[0].dispatched_n, history.baseline
    return tuple(
        event
        for event in history.answers
        if event.n > first_n
        and not (isinstance(event.body, Answered) and event.body.effect_id in baseline)
    )


def _attempt(attempt: past.Attempt, args_digest: str) -> Attempt:
    reply = attempt.reply
    extra: dict[str, object] = {}
    if reply is not None and reply.sent_at_us is not None:
        extra["sentAt"] = str(from_unix_us(reply.sent_at_us))
    if attempt.worker == FORGOTTEN:
        extra["supposed"] = True  # the store may have forgotten it
    if attempt.ended_at_us is not None:
        extra["endedAt"] = str(from_unix_us(attempt.ended_at_us))
    if reply is not None and reply.refusal is not None:
        extra["refusal"] = str(reply.refusal)
    if reply is not None and reply.detail is not None:
        extra["detail"] = reply.detail
    return Attempt(
        number=attempt.number,
        idempotency_key=attempt.key,
        args_digest=args_digest,
        dispatched_at=from_unix_us(attempt.dispatched_at_us),
        # An attempt whose reply nobody saw lost its connection with the process that made it.
        reply=Reply(str(reply.kind if reply is not None else ReplyKind.CONNECTION_LOST)),
        worker=attempt.worker,
        fencing_token=attempt.token,
        extra=extra,
    )


def _reconciliation(event: Event) -> Reconciliation:
    body = event.body
    assert isinstance(body, Answered)
    extra: dict[str, object] = {"askedAt": str(from_unix_us(body.asked_at_us))}
    said = {"basis": body.basis, "by": body.by, "evidence": body.evidence}
    extra |= {name: value for name, value in said.items() if value is not None}
    if body.result is Said.ABSENT and body.says_final and body.basis is None:
        extra["ownerSaid"] = "final"  # and an earlier request may still commit, so it was not
    return Reconciliation(
        at=from_unix_us(event.at_us),
        idempotency_key=body.key,
        result=Result(str(body.result)),
        # Final is what was believed, against every attempt in the store when it was recorded.
        final=body.basis is not None or body.result is Said.PRESENT,
        extra=extra,
    )


def _reservation(history: History, outcome: Outcome) -> Reservation | None:
    units = history.opened.reserve
    if units is None:
        return None
    until_us = history.attempts[0].lease_until_us if history.attempts else history.opened_at_us
    charged = outcome is not Outcome.NOT_RUN
    return Reservation(_number_text(units), from_unix_us(until_us), charged)


def _number(seconds: float | None) -> float | None:
    if seconds is None or seconds != int(seconds):
        return seconds if seconds is None else _number_text(repr(seconds))
    return int(seconds)


def _number_text(text: str) -> float:
    return Real(text) if "." in text else int(text)
