"""What was seen, as events: replies, claims, and whether a retry may be asked for. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.errors import Refused
from counterfoil.operation.events import Answered, NewEvent, Replied
from counterfoil.operation.replies import Refusal, Reply, ReplyKind, Status
from counterfoil.operation.values import cut_text, encode_value

if TYPE_CHECKING:
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
