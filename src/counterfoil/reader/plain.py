"""Recognises the plain trail, which most are, straight from the values, and quickly.

A trail is plain if its attempts follow each other in numbers and times under the operation's own
key and arguments, each inside the last lease begun, every lost reply answered finally absent before
the next attempt, nothing sent after a confirmation, and ledger, reservation and report agree. All
ten checks hold of such a record and no advisory is due.

It is an abbreviation, not a second reading: what it does not recognise, it leaves to the checks,
and the tests hold it to their answer.
"""

from __future__ import annotations

from operator import itemgetter

from counterfoil.limits import INTEGER_MAX
from counterfoil.record.digests import is_digest
from counterfoil.record.instants import parse_common
from counterfoil.record.model import CONTRACT_ID
from counterfoil.record.strict_json import Real

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime

    Members = dict[str, object]
    _Attempt = tuple[datetime, object, object, object]
    _Lease = tuple[object, int, datetime, datetime]
    _Answer = tuple[datetime, bool, bool]

_operation_of = itemgetter("id", "action", "idempotencyKey", "argsDigest")
_owner_of = itemgetter("id", "deduplicatesByKey", "keyRetentionSeconds")
_attempt_of = itemgetter("attempt", "idempotencyKey", "argsDigest", "dispatchedAt", "reply")
_lease_of = itemgetter("worker", "fencingToken", "acquiredAt", "expiresAt")
_answer_of = itemgetter("at", "idempotencyKey", "result", "final")
_reservation_of = itemgetter("units", "expiresAt", "charged")
_INTEGERS = range(-INTEGER_MAX, INTEGER_MAX + 1)
_UNKNOWN_REPLIES = frozenset(("timeout", "connection_lost"))
_TOKEN_TYPES = frozenset((int, type(None)))
_ONLY_OBJECTS = frozenset((dict,))


class _NotPlainError(Exception):
    """The record is not recognised; that says nothing of it."""


def plainly_held(values: Members) -> str | None:
    """Return the outcome of a record that is held and plain, and None for any other."""
    try:
        return _recognise(values)
    except (_NotPlainError, KeyError, TypeError, ValueError):
        return None


def _recognise(values: Members) -> str:
    if values["contractId"] != CONTRACT_ID:
        raise _NotPlainError
    operation_id, action, key, digest = _operation_of(_object(values["operation"]))
    if not (_is_text(operation_id) and _is_text(action) and _is_text(key) and is_digest(digest)):
        raise _NotPlainError
    answers = _answers(values["reconciliations"], key)
    owner_id, deduplicates, retention_s = _owner_of(_object(values["effectOwner"]))
    if not _is_text(owner_id) or type(deduplicates) is not bool:
        raise _NotPlainError
    # An owner that forgets keys may be late with an answer: that takes the general way.
    if retention_s is not None and (answers or not _is_positive(retention_s)):
        raise _NotPlainError

    attempts = _attempts(values["attempts"], key, digest)
    _hold(attempts, _leases(_optional_objects(values, "leases")))
    outcome = _follow(attempts, answers)
    effects = len(_objects(values["ownerEffects"]))
    if effects != (outcome == "committed") and (effects != 1 or outcome != "unknown"):
        raise _NotPlainError
    reservation = values.get("reservation")
    if reservation is not None:
        units, expires_at, charged = _reservation_of(_object(reservation))
        parse_common(expires_at)
        if not _is_positive(units) or type(charged) is not bool:
            raise _NotPlainError
        if outcome == "unknown" and not charged:
            raise _NotPlainError
    _optional_objects(values, "notices")
    if _object(values["reported"])["outcome"] != outcome:
        raise _NotPlainError
    return outcome


def _hold(attempts: list[_Attempt], leases: list[_Lease]) -> None:
    """See that each attempt is inside the last lease begun, or that there are no leases at all."""
    begun = 0
    for at, _, worker, token in attempts:
        while begun < len(leases) and leases[begun][2] <= at:
            begun += 1
        if begun:
            holder, own_token, _, until = leases[begun - 1]
            if worker != holder or token != own_token or until < at:
                raise _NotPlainError
        elif leases or token is not None:
            raise _NotPlainError


def _follow(attempts: list[_Attempt], answers: list[_Answer]) -> str:
    """Walk a trail in order with its answers; return the outcome that it supports."""
    seen = 0
    committed = unknown = False
    for at, reply, _, _ in attempts:
        # What is heard here came after the attempt before this one, and not after this one.
        while seen < len(answers) and answers[seen][0] <= at:
            _, present, final = answers[seen]
            seen += 1
            if present:
                raise _NotPlainError
            unknown = unknown and not final
        if committed or unknown:
            raise _NotPlainError
        committed = reply == "confirmed"
        unknown = reply in _UNKNOWN_REPLIES
        if not committed and not unknown and reply != "no_effect":
            raise _NotPlainError
    return _settle(answers[seen:], committed, unknown)


def _settle(answers: list[_Answer], committed: bool, unknown: bool) -> str:
    """Return the outcome after the answers that came later than the last attempt."""
    for _, present, final in answers:
        if present and (committed or unknown):
            committed = True
        elif present or (final and committed):
            raise _NotPlainError
        elif final:
            unknown = False
    if committed:
        return "committed"
    return "unknown" if unknown else "not_run"


# --- the parts, in shape and in order ------------------------------------------------------------


def _attempts(listed: object, key: object, digest: object) -> list[_Attempt]:
    attempts = []
    number_before = 0
    at_before: datetime | None = None
    for values in _objects(listed):
        number, own_key, own_digest, dispatched_at, reply = _attempt_of(values)
        worker, token = values.get("worker"), values.get("fencingToken")
        at = parse_common(dispatched_at)
        if own_key != key or own_digest != digest or (at_before and at <= at_before):
            raise _NotPlainError
        if type(number) is not int or not number_before < number <= INTEGER_MAX:
            raise _NotPlainError
        if (worker is not None and not _is_text(worker)) or type(token) not in _TOKEN_TYPES:
            raise _NotPlainError
        number_before, at_before = number, at
        attempts.append((at, reply, worker, token))
    return attempts


def _leases(listed: list[Members]) -> list[_Lease]:
    """Return leases whose times and tokens do not fall; a token held twice is one worker's."""
    leases: list[_Lease] = []
    for values in listed:
        worker, token, acquired_at, expires_at = _lease_of(values)
        lease = worker, token, parse_common(acquired_at), parse_common(expires_at)
        if not _is_text(worker) or type(token) is not int or token not in _INTEGERS:
            raise _NotPlainError
        if leases:
            before = leases[-1]
            if lease[2] < before[2] or token < before[1]:
                raise _NotPlainError
            if token == before[1] and worker != before[0]:
                raise _NotPlainError
        leases.append(lease)
    return leases


def _answers(listed: object, key: object) -> list[_Answer]:
    """Return answers about the operation's key, listed in the order of time."""
    answers: list[_Answer] = []
    for values in _objects(listed):
        at, own_key, result, final = _answer_of(values)
        answer = parse_common(at), result == "present", final
        if own_key != key or (not answer[1] and result != "absent") or type(final) is not bool:
            raise _NotPlainError
        if answers and answer[0] < answers[-1][0]:
            raise _NotPlainError
        answers.append(answer)
    return answers


def _object(value: object) -> Members:
    if type(value) is not dict:
        raise _NotPlainError
    return value


def _objects(listed: object) -> list[Members]:
    if type(listed) is not list or not _ONLY_OBJECTS.issuperset(map(type, listed)):
        raise _NotPlainError
    return listed


def _optional_objects(values: Members, name: str) -> list[Members]:
    listed = values.get(name)
    return [] if listed is None else _objects(listed)


def _is_text(value: object) -> bool:
    return type(value) is str and value != ""


def _is_positive(value: object) -> bool:
    return (type(value) is int or type(value) is Real) and value > 0
