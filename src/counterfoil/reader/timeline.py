"""A trail as ordered moments: what a person reads beside a verdict.

Notices and the owner's effects are not moments: their members are not read, so they have no time.
"""

from __future__ import annotations

from enum import StrEnum

from counterfoil.reader.shown import shown
from counterfoil.record.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from counterfoil.record.instants import Instant
    from counterfoil.record.model import Attempt, Lease, Reconciliation, Record


class Kind(StrEnum):
    """What happened at a moment."""

    LEASE_ACQUIRED = "lease_acquired"
    ANSWERED = "answered"
    DISPATCHED = "dispatched"
    LEASE_EXPIRES = "lease_expires"
    RESERVATION_EXPIRES = "reservation_expires"


class Moment(Value):
    """Something at an instant: its kind, a sentence, and the JSON Pointer of what says so."""

    at: Instant
    kind: Kind
    text: str
    member: str

    def as_json(self) -> dict[str, object]:
        """Return the moment as JSON values; the time is in UTC."""
        return {
            "at": str(self.at),
            "kind": self.kind.value,
            "text": self.text,
            "member": self.member,
        }


def timeline(record: Record) -> tuple[Moment, ...]:
    """Return the record's moments in the order of time.

    At one instant a lease begins before a dispatch and ends after it, and an answer comes before a
    dispatch: so do the checks read them (uncertain-effect, checks 5 and 6).
    """
    moments: list[Moment] = []
    for index, lease in enumerate(record.leases):
        moments += _lease(lease, f"/leases/{index}")
    for index, answer in enumerate(record.reconciliations):
        moments.append(_answer(answer, f"/reconciliations/{index}"))
    for index, attempt in enumerate(record.attempts):
        moments.append(_dispatch(attempt, f"/attempts/{index}"))
    if record.reservation is not None:
        charged = "still charged" if record.reservation.charged else "no longer charged"
        moments.append(
            Moment(
                record.reservation.expires_at,
                Kind.RESERVATION_EXPIRES,
                f"the reservation expires, {charged}",
                "/reservation",
            )
        )
    return tuple(sorted(moments, key=lambda moment: (moment.at, _RANK[moment.kind])))


_RANK = {kind: rank for rank, kind in enumerate(Kind)}


def _lease(lease: Lease, member: str) -> list[Moment]:
    held = f"lease of {shown(lease.worker)} with token {lease.fencing_token}"
    return [
        Moment(lease.acquired_at, Kind.LEASE_ACQUIRED, f"{held} begins", member),
        Moment(lease.expires_at, Kind.LEASE_EXPIRES, f"{held} ends", member),
    ]


def _answer(answer: Reconciliation, member: str) -> Moment:
    final = "final" if answer.final else "not final"
    text = f"the owner answers {answer.result.value}, {final}, for {shown(answer.idempotency_key)}"
    return Moment(answer.at, Kind.ANSWERED, text, member)


def _dispatch(attempt: Attempt, member: str) -> Moment:
    text = f"attempt {attempt.number} is sent"
    if attempt.worker is not None:
        text += f" by {shown(attempt.worker)}"
    if attempt.fencing_token is not None:
        text += f" with token {attempt.fencing_token}"
    text += f" under {shown(attempt.idempotency_key)}: {attempt.reply.value}"
    return Moment(attempt.dispatched_at, Kind.DISPATCHED, text, member)
