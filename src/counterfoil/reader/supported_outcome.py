"""The outcome that the owner's answers support, and the parts of a record that it rests on.

Reading (uncertain-effect, "The readings", Outcome): times only, and answers under keys that nobody
used are ignored.
"""

from __future__ import annotations

from counterfoil.record.model import Outcome, Record, Reply, Result
from counterfoil.record.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from counterfoil.record.instants import Instant

# Bound once: reading a member off an enum class costs as much as a function call.
CONFIRMED, NO_EFFECT = Reply.CONFIRMED, Reply.NO_EFFECT
PRESENT = Result.PRESENT
COMMITTED, NOT_RUN, UNKNOWN = Outcome.COMMITTED, Outcome.NOT_RUN, Outcome.UNKNOWN


class Findings(Value):
    """What decides, as places in the record's lists, in their order.

    ``unknown`` and ``confirmed`` are attempts, ``foreign`` those whose arguments are not the
    operation's. ``present`` and ``absent`` are answers under keys that the operation or an attempt
    used, and ``absent`` holds the final ones only.
    """

    record: Record
    outcome: Outcome
    unknown: list[int]
    confirmed: list[int]
    present: list[int]
    absent: list[int]
    foreign: list[int]


def supported_outcome(record: Record) -> Outcome:
    """Return the outcome that the owner's answers support."""
    return find(record).outcome


def find(record: Record) -> Findings:
    """Return the attempts and answers that decide, and the outcome that follows from them."""
    unknown: list[int] = []
    confirmed: list[int] = []
    foreign: list[int] = []
    own_digest = record.operation.args_digest
    for index, attempt in enumerate(record.attempts):
        if attempt.reply is CONFIRMED:
            confirmed.append(index)
        elif attempt.reply is not NO_EFFECT:
            unknown.append(index)
        if attempt.args_digest != own_digest:
            foreign.append(index)
    present, absent = _answers(record)
    if confirmed or present:
        outcome = COMMITTED
    elif not unknown or _all_absent(record, unknown, absent):
        outcome = NOT_RUN
    else:
        outcome = UNKNOWN
    return Findings(record, outcome, unknown, confirmed, present, absent, foreign)


def _answers(record: Record) -> tuple[list[int], list[int]]:
    """Return the present and the final absent answers under keys that somebody used."""
    present: list[int] = []
    absent: list[int] = []
    if record.reconciliations:
        keys = {attempt.idempotency_key for attempt in record.attempts}
        keys.add(record.operation.idempotency_key)
        for index, (_, key, result, final, _) in enumerate(record.reconciliations):
            if key in keys:
                if result is PRESENT:
                    present.append(index)
                elif final:
                    absent.append(index)
    return present, absent


def last_absent(record: Record, absent: list[int]) -> dict[str, Instant]:
    """Return, for each key, the time of the last of these answers."""
    last: dict[str, Instant] = {}
    for index in absent:
        answer = record.reconciliations[index]
        before = last.get(answer.idempotency_key)
        if before is None or before < answer.at:
            last[answer.idempotency_key] = answer.at
    return last


def _all_absent(record: Record, unknown: list[int], absent: list[int]) -> bool:
    """Say whether each unknown attempt's key has a final absent answer after all of them."""
    last = last_absent(record, absent)
    for index in unknown:
        attempt = record.attempts[index]
        answered_at = last.get(attempt.idempotency_key)
        if answered_at is None or answered_at <= attempt.dispatched_at:
            return False
    return True
