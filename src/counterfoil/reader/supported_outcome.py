"""The outcome that the owner's answers support, and the parts of a record that it rests on.

Reading (uncertain-effect, "The readings", Outcome): times only, and answers under keys that nobody
used are ignored.
"""

from __future__ import annotations

from counterfoil.limits import INTEGER_MAX
from counterfoil.record.instants import WIDEST_OFFSET, Instant
from counterfoil.record.model import Outcome, Record, Reply, Result
from counterfoil.record.value import Value

# Bound once: reading a member off an enum class costs as much as a function call.
CONFIRMED, NO_EFFECT = Reply.CONFIRMED, Reply.NO_EFFECT
PRESENT = Result.PRESENT
COMMITTED, NOT_RUN, UNKNOWN = Outcome.COMMITTED, Outcome.NOT_RUN, Outcome.UNKNOWN

BEFORE_ALL = Instant(-2 * WIDEST_OFFSET)


class Findings(Value):
    """What decides, as places in the record's lists, in their order.

    ``unknown`` and ``confirmed`` are attempts, ``foreign`` those whose arguments are not the
    operation's. ``present`` and ``absent`` are answers under keys that the operation or an attempt
    used, and ``absent`` holds the final ones only. ``in_order``: the attempts are listed with
    numbers and times that both grow, as an honest trail does. ``answered``: moreover each unknown
    attempt but the last attempt is covered by a final absent answer before the next attempt.
    ``leased``: moreover each attempt is inside the last lease begun by then, or there are no leases
    and tokens at all, and no two workers share a token. ``plain``: moreover only the last attempt
    may be confirmed, none is open, and there are no present answers and foreign arguments. These
    four spare the common trail the general way; that one of them is False says nothing.
    """

    record: Record
    outcome: Outcome
    unknown: list[int]
    confirmed: list[int]
    present: list[int]
    absent: list[int]
    foreign: list[int]
    in_order: bool
    answered: bool
    leased: bool
    plain: bool


def supported_outcome(record: Record) -> Outcome:
    """Return the outcome that the owner's answers support."""
    return find(record).outcome


def find(record: Record) -> Findings:
    """Return the attempts and answers that decide, and the outcome that follows from them."""
    unknown: list[int] = []
    confirmed: list[int] = []
    foreign: list[int] = []
    own_digest = record.operation.args_digest
    in_order, last_number, last_at = True, 0, BEFORE_ALL
    for index, (number, _, digest, at, reply, _, _, _) in enumerate(record.attempts):
        if reply is CONFIRMED:
            confirmed.append(index)
        elif reply is not NO_EFFECT:
            unknown.append(index)
        if digest != own_digest:
            foreign.append(index)
        if number <= last_number or at <= last_at:
            in_order = False
        last_number, last_at = number, at
    present, absent = _answers(record)
    if confirmed or present:
        outcome = COMMITTED
    elif not unknown or _all_absent(record, unknown, absent):
        outcome = NOT_RUN
    else:
        outcome = UNKNOWN
    answered = leased = plain = False
    if in_order:
        answered = not unknown or _answered_in_order(record, unknown, absent)
        leased = _leased_in_order(record)
        last = len(record.attempts) - 1
        if answered and leased and not present and not foreign:
            plain = (not confirmed or confirmed[0] == last) and last not in unknown[-1:]
    places = unknown, confirmed, present, absent, foreign
    return tuple.__new__(Findings, (record, outcome, *places, in_order, answered, leased, plain))


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


def _answered_in_order(record: Record, unknown: list[int], absent: list[int]) -> bool:
    """Say, of a trail in order, whether each unknown attempt's next answer settles it in time.

    That is: the next final absent answer is under the attempt's key and no later than the next
    attempt. It is the common case, told in one pass; False says nothing.
    """
    attempts, answers, seen = record.attempts, record.reconciliations, 0
    for index in unknown:
        if index + 1 == len(attempts):
            return True
        attempt = attempts[index]
        while seen < len(absent) and answers[absent[seen]].at <= attempt.dispatched_at:
            seen += 1
        if seen == len(absent):
            return False
        answer = answers[absent[seen]]
        if answer.idempotency_key != attempt.idempotency_key:
            return False
        if answer.at > attempts[index + 1].dispatched_at:
            return False
    return True


def _leased_in_order(record: Record) -> bool:
    """Say, of a trail in order, whether each attempt is inside the last lease begun by then.

    The leases must be listed with times and tokens that do not fall, so that the last one begun
    has the highest token; a token listed twice must be the same worker's.
    """
    leases, attempts = record.leases, record.attempts
    if not leases:
        return all(attempt.fencing_token is None for attempt in attempts)
    last_holder, last_token, last_at = "", -INTEGER_MAX - 1, BEFORE_ALL
    for holder, token, acquired_at, _, _ in leases:
        if acquired_at < last_at or token < last_token:
            return False
        if token == last_token and holder != last_holder:
            return False
        last_holder, last_token, last_at = holder, token, acquired_at
    begun = 0
    for _, _, _, at, _, worker, attempt_token, _ in attempts:
        while begun < len(leases) and leases[begun].acquired_at <= at:
            holder, token, _, until, _ = leases[begun]
            begun += 1
        if not begun or token != attempt_token or holder != worker or until < at:
            return False
    return True


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
