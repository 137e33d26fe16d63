"""Values to a ``Record`` and back: the shape of uncertain-effect/v1 ("What comes in", the table).

``decode`` is on the path of every record that is judged, so it only decides, part by part, whether
the shape holds. What is out of shape is looked for once more, member by member along the table
below, to be named by its JSON Pointer.
"""

from __future__ import annotations

from itertools import filterfalse
from operator import itemgetter

from counterfoil.errors import BadInput, MalformedRecord
from counterfoil.limits import INTEGER_MAX
from counterfoil.record import instants
from counterfoil.record.digests import is_digest
from counterfoil.record.model import (
    NO_EXTRA,
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Members = dict[str, object]
    Shape = tuple[tuple[str, Callable[[object], bool], str], ...]

_new = tuple.__new__
_parse = instants.parse
_REPLIES: dict[object, Reply] = {word.value: word for word in Reply}
_RESULTS: dict[object, Result] = {word.value: word for word in Result}
_OUTCOMES: dict[object, Outcome] = {word.value: word for word in Outcome}
_COUNTS = range(1, INTEGER_MAX + 1)
_INTEGERS = range(-INTEGER_MAX, INTEGER_MAX + 1)
_INFINITY = float("inf")
_ONLY_OBJECTS = frozenset((dict,))


# --- the table -----------------------------------------------------------------------------------


def _is_text(value: object) -> bool:
    return type(value) is str and bool(value)


def _is_count(value: object) -> bool:
    return type(value) is int and value in _COUNTS


def _is_integer(value: object) -> bool:
    return type(value) is int and value in _INTEGERS


def _is_boolean(value: object) -> bool:
    return type(value) is bool


def _is_time(value: object) -> bool:
    try:
        _parse(value)
    except BadInput:
        return False
    return True


def _is_amount(value: object) -> bool:
    """Test a number >= 0 on the decimal as written: ``-0`` is zero, ``-1e-400`` is not."""
    if type(value) is int:
        return value >= 0
    if not isinstance(value, float) or not 0 <= value < _INFINITY:
        return False
    text = value.text if isinstance(value, Real) else repr(value)
    return value > 0 or text[0] != "-" or not text.lower().partition("e")[0].strip("-0.")


def _is_amount_or_null(value: object) -> bool:
    return value is None or _is_amount(value)


def _one_of(words: Mapping[object, str]) -> tuple[Callable[[object], bool], str]:
    return (lambda value: type(value) is str and value in words), "one of " + ", ".join(
        words.values()
    )


_TEXT = _is_text, "a non-empty string"
_OWN_DIGEST = is_digest, "sha256: and 64 lower-case hex digits"
_INTEGER = _is_integer, "an integer of magnitude below 2**53, without fraction or exponent"
_BOOLEAN = _is_boolean, "true or false"
_TIME = _is_time, "an RFC 3339 time with an offset"
_KEY, _DIGEST = "idempotencyKey", "argsDigest"

_OPERATION_SHAPE: Shape = (
    ("id", *_TEXT),
    ("action", *_TEXT),
    (_KEY, *_TEXT),
    (_DIGEST, *_OWN_DIGEST),
)
_OWNER_SHAPE: Shape = (
    ("id", *_TEXT),
    ("deduplicatesByKey", *_BOOLEAN),
    ("keyRetentionSeconds", _is_amount_or_null, "a number, 0 or more, or null"),
)
_ATTEMPT_SHAPE: Shape = (
    ("attempt", _is_count, "an integer from 1 to 2**53 - 1"),
    (_KEY, *_TEXT),
    (_DIGEST, *_OWN_DIGEST),
    ("dispatchedAt", *_TIME),
    ("reply", *_one_of(_REPLIES)),
)
_LEASE_SHAPE: Shape = (
    ("worker", *_TEXT),
    ("fencingToken", *_INTEGER),
    ("acquiredAt", *_TIME),
    ("expiresAt", *_TIME),
)
_ATTEMPT_OPTIONAL = _LEASE_SHAPE[:2]
_ANSWER_SHAPE: Shape = (
    ("at", *_TIME),
    (_KEY, *_TEXT),
    ("result", *_one_of(_RESULTS)),
    ("final", *_BOOLEAN),
)
_RESERVATION_SHAPE: Shape = (
    ("units", _is_amount, "a number, 0 or more"),
    ("expiresAt", *_TIME),
    ("charged", *_BOOLEAN),
)
_REPORTED_SHAPE: Shape = (("outcome", *_one_of(_OUTCOMES)),)


def _names(*shapes: Shape) -> frozenset[str]:
    return frozenset(name for shape in shapes for name, _, _ in shape)


_OPERATION_NAMES, _OWNER_NAMES = _names(_OPERATION_SHAPE), _names(_OWNER_SHAPE)
_ATTEMPT_NAMES = _names(_ATTEMPT_SHAPE, _ATTEMPT_OPTIONAL)
_LEASE_NAMES, _ANSWER_NAMES = _names(_LEASE_SHAPE), _names(_ANSWER_SHAPE)
_RESERVATION_NAMES, _REPORTED_NAMES = _names(_RESERVATION_SHAPE), _names(_REPORTED_SHAPE)
_RECORD_NAMES = frozenset(("contractId", "operation", "effectOwner", "attempts", "leases")) | {
    "reconciliations",
    "ownerEffects",
    "reservation",
    "notices",
    "reported",
}

# Each takes a part's required members at once, in the order of its shape.
_operation_of = itemgetter(*(name for name, _, _ in _OPERATION_SHAPE))
_owner_of = itemgetter(*(name for name, _, _ in _OWNER_SHAPE))
_attempt_of = itemgetter(*(name for name, _, _ in _ATTEMPT_SHAPE))
_lease_of = itemgetter(*(name for name, _, _ in _LEASE_SHAPE))
_answer_of = itemgetter(*(name for name, _, _ in _ANSWER_SHAPE))
_reservation_of = itemgetter(*(name for name, _, _ in _RESERVATION_SHAPE))


def decode(values: Members) -> Record:
    """Return the record that these values hold, all but ``contractId`` tested for its shape.

    Raises MalformedRecord. Whether the contract is ours is a check, not a shape.
    """
    operation_values, attempt_values = outline(values)
    operation = _operation(operation_values)
    owner = _owner(_object(values, "effectOwner"))
    attempts = _attempts(attempt_values, operation.args_digest)
    answers = [_reconciliation(v, i) for i, v in enumerate(_list(values, "reconciliations"))]
    effects = tuple(_list(values, "ownerEffects"))
    reported = _reported(_object(values, "reported"))
    leases: list[Lease] = []
    if values.get("leases") is not None:
        leases = [_lease(v, i) for i, v in enumerate(_list(values, "leases"))]
    reservation = None
    if values.get("reservation") is not None:
        reservation = _reservation(_object(values, "reservation"))
    notices = () if values.get("notices") is None else tuple(_list(values, "notices"))
    extra = _extra(values, _RECORD_NAMES)
    evidence = operation, owner, attempts, tuple(answers), effects, reported
    optional = tuple(leases), reservation, notices, extra, str(values.get("contractId"))
    return _new(Record, (*evidence, *optional))


def outline(values: Members) -> tuple[Members, list[Members]]:
    """Return the operation and the attempts, known to be an object and a list of objects only.

    Raises MalformedRecord. It is what check 3 needs before the rest of the shape is looked at.
    """
    return _object(values, "operation"), _list(values, "attempts")


def encode(record: Record) -> Members:
    """Return the record as JSON values: the contract's names, times in UTC, optional parts only if
    they are there, ``extra`` beside them.

    Raises BadInput where ``extra`` holds a name of the contract's own.
    """
    operation, owner = record.operation, record.effect_owner
    values: Members = {
        "contractId": record.contract_id,
        "operation": _joined(
            {
                "id": operation.id,
                "action": operation.action,
                "idempotencyKey": operation.idempotency_key,
                "argsDigest": operation.args_digest,
            },
            operation.extra,
            _OPERATION_NAMES,
        ),
        "effectOwner": _joined(
            {
                "id": owner.id,
                "deduplicatesByKey": owner.deduplicates_by_key,
                "keyRetentionSeconds": owner.key_retention_s,
            },
            owner.extra,
            _OWNER_NAMES,
        ),
        "attempts": [_encode_attempt(attempt) for attempt in record.attempts],
    }
    if record.leases:
        values["leases"] = [_encode_lease(lease) for lease in record.leases]
    values["reconciliations"] = [_encode_reconciliation(r) for r in record.reconciliations]
    values["ownerEffects"] = [dict(effect) for effect in record.owner_effects]
    if record.reservation is not None:
        values["reservation"] = _encode_reservation(record.reservation)
    if record.notices:
        values["notices"] = [dict(notice) for notice in record.notices]
    reported: Members = {"outcome": record.reported.outcome.value}
    values["reported"] = _joined(reported, record.reported.extra, _REPORTED_NAMES)
    return _joined(values, record.extra, _RECORD_NAMES)


# --- values -> parts -----------------------------------------------------------------------------


def _operation(values: Members) -> Operation:
    try:
        operation_id, action, key, digest = _operation_of(values)
        texts = _is_text(operation_id) and _is_text(action) and _is_text(key)
        if texts and is_digest(digest):
            extra = NO_EXTRA if len(values) == 4 else _extra(values, _OPERATION_NAMES)
            return _new(Operation, (operation_id, action, key, digest, extra))
    except KeyError:
        pass
    raise _fault("/operation", values, _OPERATION_SHAPE)


def _owner(values: Members) -> EffectOwner:
    try:
        owner_id, deduplicates, retention_s = _owner_of(values)
        if _is_text(owner_id) and type(deduplicates) is bool and _is_amount_or_null(retention_s):
            extra = NO_EXTRA if len(values) == 3 else _extra(values, _OWNER_NAMES)
            return _new(EffectOwner, (owner_id, deduplicates, retention_s, extra))
    except KeyError:
        pass
    raise _fault("/effectOwner", values, _OWNER_SHAPE)


def _attempts(listed: list[Members], known_digest: str) -> tuple[Attempt, ...]:
    attempts = tuple([_attempt(v, i, known_digest) for i, v in enumerate(listed)])
    numbers = {attempt.number for attempt in attempts}
    if len(numbers) != len(attempts):
        for index, attempt in enumerate(attempts):
            if attempt.number not in numbers:
                problem = f"a second attempt {attempt.number}"
                raise MalformedRecord(f"/attempts/{index}/attempt", problem)
            numbers.remove(attempt.number)
    return attempts


def _attempt(values: Members, index: int, known_digest: str) -> Attempt:
    get = values.get
    worker, token = get("worker"), get("fencingToken")
    try:
        number, key, digest, dispatched_at, reply = _attempt_of(values)
        if (
            type(number) is int
            and number in _COUNTS
            and type(key) is str
            and key
            and (digest == known_digest or is_digest(digest))
            and (worker is None or (type(worker) is str and worker))
            and (token is None or (type(token) is int and token in _INTEGERS))
        ):
            at, reply = _parse(dispatched_at), _REPLIES[reply]
            usual = len(values) == (5 if worker is None or token is None else 7)
            extra = NO_EXTRA if usual else _extra(values, _ATTEMPT_NAMES)
            return _new(Attempt, (number, key, digest, at, reply, worker, token, extra))
    except (KeyError, TypeError, BadInput):
        pass
    raise _fault(f"/attempts/{index}", values, _ATTEMPT_SHAPE, _ATTEMPT_OPTIONAL)


def _lease(values: Members, index: int) -> Lease:
    try:
        worker, token, acquired_at, expires_at = _lease_of(values)
        if type(worker) is str and worker and type(token) is int and token in _INTEGERS:
            extra = NO_EXTRA if len(values) == 4 else _extra(values, _LEASE_NAMES)
            times = _parse(acquired_at), _parse(expires_at)
            return _new(Lease, (worker, token, *times, extra))
    except (KeyError, BadInput):
        pass
    raise _fault(f"/leases/{index}", values, _LEASE_SHAPE)


def _reconciliation(values: Members, index: int) -> Reconciliation:
    try:
        at, key, result, final = _answer_of(values)
        if type(key) is str and key and type(final) is bool:
            extra = NO_EXTRA if len(values) == 4 else _extra(values, _ANSWER_NAMES)
            return _new(Reconciliation, (_parse(at), key, _RESULTS[result], final, extra))
    except (KeyError, TypeError, BadInput):
        pass
    raise _fault(f"/reconciliations/{index}", values, _ANSWER_SHAPE)


def _reservation(values: Members) -> Reservation:
    try:
        units, expires_at, charged = _reservation_of(values)
        if _is_amount(units) and type(charged) is bool:
            extra = NO_EXTRA if len(values) == 3 else _extra(values, _RESERVATION_NAMES)
            return _new(Reservation, (units, _parse(expires_at), charged, extra))
    except (KeyError, BadInput):
        pass
    raise _fault("/reservation", values, _RESERVATION_SHAPE)


def _reported(values: Members) -> Reported:
    try:
        outcome = _OUTCOMES[values["outcome"]]
    except (KeyError, TypeError):
        raise _fault("/reported", values, _REPORTED_SHAPE) from None
    extra = NO_EXTRA if len(values) == 1 else _extra(values, _REPORTED_NAMES)
    return _new(Reported, (outcome, extra))


def _object(values: Members, name: str) -> Members:
    member = values.get(name)
    if type(member) is not dict:
        raise _misshapen("", name, values, "an object")
    return member


def _list(values: Members, name: str) -> list[Members]:
    """Return a member that is a list of objects."""
    listed = values.get(name)
    if type(listed) is not list:
        raise _misshapen("", name, values, "a list of objects")
    if not _ONLY_OBJECTS.issuperset(map(type, listed)):
        index = next(i for i, item in enumerate(listed) if type(item) is not dict)
        raise MalformedRecord(f"/{name}/{index}", "must be an object")
    return listed


def _extra(values: Members, names: frozenset[str]) -> Mapping[str, object]:
    extra = {name: values[name] for name in filterfalse(names.__contains__, values)}
    return extra or NO_EXTRA


def _fault(path: str, values: Members, shape: Shape, optional: Shape = ()) -> MalformedRecord:
    """Return the error for the first member that is out of shape."""
    for name, holds, phrase in shape:
        if name not in values or not holds(values[name]):
            return _misshapen(path, name, values, phrase)
    for name, holds, phrase in optional:
        if values.get(name) is not None and not holds(values[name]):
            return _misshapen(path, name, values, phrase)
    return MalformedRecord(path, "out of shape")


def _misshapen(path: str, name: str, values: Members, phrase: str) -> MalformedRecord:
    problem = "must be " + phrase if name in values else "is missing; it must be " + phrase
    return MalformedRecord(f"{path}/{name}", problem)


# --- parts -> values -----------------------------------------------------------------------------


def _encode_attempt(attempt: Attempt) -> Members:
    values: Members = {
        "attempt": attempt.number,
        "idempotencyKey": attempt.idempotency_key,
        "argsDigest": attempt.args_digest,
        "dispatchedAt": str(attempt.dispatched_at),
        "reply": attempt.reply.value,
    }
    if attempt.worker is not None:
        values["worker"] = attempt.worker
    if attempt.fencing_token is not None:
        values["fencingToken"] = attempt.fencing_token
    return _joined(values, attempt.extra, _ATTEMPT_NAMES)


def _encode_lease(lease: Lease) -> Members:
    values: Members = {
        "worker": lease.worker,
        "fencingToken": lease.fencing_token,
        "acquiredAt": str(lease.acquired_at),
        "expiresAt": str(lease.expires_at),
    }
    return _joined(values, lease.extra, _LEASE_NAMES)


def _encode_reconciliation(answer: Reconciliation) -> Members:
    values: Members = {
        "at": str(answer.at),
        "idempotencyKey": answer.idempotency_key,
        "result": answer.result.value,
        "final": answer.final,
    }
    return _joined(values, answer.extra, _ANSWER_NAMES)


def _encode_reservation(reservation: Reservation) -> Members:
    values: Members = {
        "units": reservation.units,
        "expiresAt": str(reservation.expires_at),
        "charged": reservation.charged,
    }
    return _joined(values, reservation.extra, _RESERVATION_NAMES)


def _joined(values: Members, extra: Mapping[str, object], names: frozenset[str]) -> Members:
    taken = names.intersection(extra)
    if taken:
        raise BadInput(f"extra holds {min(taken)!r}, a member of the contract; set it in its place")
    values.update(extra)
    return values
