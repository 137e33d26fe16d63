"""What was seen, as events: replies, claims, and whether a retry may be asked for. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.errors import Refused
from counterfoil.operation.events import Answered, NewEvent, Replied, Supposed
from counterfoil.operation.replies import Answer, Refusal, Reply, ReplyKind, Status
from counterfoil.operation.values import cut_text, encode_value

if TYPE_CHECKING:
    from counterfoil.operation.belief import Question
    from counterfoil.operation.history import History
    from counterfoil.operation.identity import StreamId


def not_sent(detail: str) -> Reply:
    """A reply for a call of which not one byte was written."""
    return Reply(ReplyKind.NO_EFFECT, Refusal.NOT_SENT, detail)


def replied(attempt: int, reply: Reply, sent_at_us: int | None = None) -> Replied:
    """Return the event body for a reply; what cannot be kept of its value is named."""
    value, missing = encode_value(reply.value)
    return Replied(
        attempt=attempt,
        kind=reply.kind,
        refusal=reply.refusal,
        detail=cut_text(reply.detail),
        effect_id=reply.effect_id,
        cost=reply.cost,
        value=value,
        value_missing=missing,
        sent_at_us=sent_at_us,
        ended=reply.ended,
    )


def answered(question: Question, answer: Answer, basis: str | None) -> Answered:
    """Return the event body for an answer; ``basis`` says on what it is believed, if it is."""
    value, missing = encode_value(answer.value)
    return Answered(
        key=question.key,
        result=answer.result,
        asked_after=question.asked_after,
        asked_at_us=question.asked_at_us,
        says_final=answer.says_final,
        partial=answer.partial,
        fence=question.fence,
        basis=basis,
        effect_id=answer.effect_id,
        cost=answer.cost,
        value=value,
        value_missing=missing,
    )


def supposed(history: History, suspect: str | None) -> Supposed | None:
    """The dispatch that a suspect store may have forgotten of an operation that it knows, if any.

    A copy of the store may end anywhere in an operation's stream. What the owner confirmed, or a
    person closed, is not carried on, so that nothing is supposed there; nor is anything twice for
    one gap. ``suspect`` says why the store may have forgotten; None: it did not.
    """
    if suspect is None or history.supposed == suspect:
        return None
    if history.disputed is not None or history.closed is not None:
        return None
    if history.confirmed is not None or history.found is not None:
        return None
    return Supposed(len(history.attempts) + 1, history.opened.key, suspect)


def effect_to_claim(events: tuple[NewEvent, ...]) -> str | None:
    """The owner's effect id that these events report as this operation's own, if any."""
    for event in events:
        body = event.body
        if isinstance(body, Replied) and body.kind is ReplyKind.CONFIRMED and body.effect_id:
            return body.effect_id
        if isinstance(body, Answered) and body.effect_id:
            return body.effect_id
    return None


def check_reopening(history: History | None, stream: StreamId) -> None:
    """Raise ``Refused`` unless the operation is settled as not run and undisputed.

    Where a person corrected it, the trail must hold no effect either: it would settle it at once.
    """
    settled = None if history is None or history.disputed else history.settled
    if settled is None or settled.outcome is not Status.NOT_RUN:
        raise Refused(
            "not_retryable",
            f"operation {stream.operation_id!r} is not settled as not run; "
            "only an operation that left no effect can be tried again",
        )
    if history is not None and (history.confirmed is not None or history.found is not None):
        raise Refused(
            "not_retryable",
            f"the owner reported an effect of operation {stream.operation_id!r} before it was "
            "corrected; make the change again as a new operation",
        )
