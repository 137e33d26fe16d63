"""The ten checks of uncertain-effect/v1, in order, one function each.

A verifier names the first that fails. The first three look at values, before any shape; the others
at what the record was found to say. A check returns None, or what fails and where.
"""

from __future__ import annotations

from operator import attrgetter

from counterfoil.limits import INTEGER_MAX
from counterfoil.reader.shown import shown
from counterfoil.reader.supported_outcome import UNKNOWN, Findings
from counterfoil.record.codec import outline
from counterfoil.record.model import CONTRACT_ID
from counterfoil.record.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from counterfoil.record.instants import Instant
    from counterfoil.record.model import Record


class Failure(Value):
    """Why a check fails: one sentence, and JSON Pointers to the members it is about."""

    explanation: str
    members: tuple[str, ...]


# --- checks 1 to 3: values -----------------------------------------------------------------------


def contract_id_missing(values: dict[str, object]) -> Failure | None:
    """Check 1: the record carries ``contractId``."""
    if "contractId" in values:
        return None
    return Failure("the record names no contract", ("/contractId",))


def contract_id_unknown(values: dict[str, object]) -> Failure | None:
    """Check 2: ``contractId`` is the uncertain-effect contract; null or a number is another one."""
    contract = values.get("contractId")
    if contract == CONTRACT_ID:
        return None
    named = shown(contract) if isinstance(contract, str) else "a value that is not text"
    return Failure(f"contractId is {named}, not uncertain-effect/v1", ("/contractId",))


def operation_identity_missing(values: dict[str, object]) -> Failure | None:
    """Check 3: the operation and every attempt carry a key and an arguments digest.

    Raises MalformedRecord where these are no object and no list of objects.
    """
    operation, attempts = outline(values)
    for name in ("idempotencyKey", "argsDigest"):
        if operation.get(name) in _ABSENT:
            return Failure(f"the operation has no {name}", (f"/operation/{name}",))
    for index, attempt in enumerate(attempts):
        if attempt.get("idempotencyKey") and attempt.get("argsDigest"):
            continue
        for name in ("idempotencyKey", "argsDigest"):
            if attempt.get(name) in _ABSENT:
                place = f"/attempts/{index}"
                return Failure(f"the attempt at {place} has no {name}", (f"{place}/{name}",))
    return None


_ABSENT = (None, "")


# --- checks 4 to 10: the record ------------------------------------------------------------------


def idempotency_key_args_changed(found: Findings) -> Failure | None:
    """Check 4: no attempt reuses the operation's own key with other arguments."""
    for index in found.foreign:
        attempt = found.record.attempts[index]
        if attempt.idempotency_key == found.record.operation.idempotency_key:
            return Failure(
                f"attempt {attempt.number} sent other arguments under the operation's key",
                (f"/attempts/{index}/argsDigest", "/operation/argsDigest"),
            )
    return None


def dispatch_beyond_lease(found: Findings) -> Failure | None:
    """Check 5: each attempt fell inside its worker's lease, before one with a higher token.

    It applies when the record has a lease or any attempt carries a token. One sweep in the order of
    time: a lease counts for what is dispatched at or after its acquisition.
    """
    record = found.record
    attempts = record.attempts
    if not record.leases and all(attempt.fencing_token is None for attempt in attempts):
        return None
    leases = sorted(record.leases, key=_ACQUIRED_AT)
    dispatched = [attempt.dispatched_at for attempt in attempts]
    held_until: dict[tuple[str | None, int | None], Instant] = {}
    highest = -INTEGER_MAX - 1
    begun = 0
    failing: list[int] = []
    for index in sorted(range(len(attempts)), key=dispatched.__getitem__):
        at, worker, token = dispatched[index], attempts[index].worker, attempts[index].fencing_token
        while begun < len(leases) and leases[begun].acquired_at <= at:
            lease = leases[begun]
            begun += 1
            holder = lease.worker, lease.fencing_token
            if holder not in held_until or held_until[holder] < lease.expires_at:
                held_until[holder] = lease.expires_at
            highest = max(highest, lease.fencing_token)
        held = held_until.get((worker, token))
        if held is None or token is None or held < at or highest > token:
            failing.append(index)
    return _beyond_lease(record, min(failing)) if failing else None


def retry_after_unknown(found: Findings) -> Failure | None:
    """Check 6: what follows an unknown attempt is deduplicated, or a final absent lies between."""
    if not found.unknown or len(found.record.attempts) < 2:
        return None
    from counterfoil.reader.resends import Resends

    pair = Resends(found.record, found.absent).first_bare(found.unknown)
    if pair is None:
        return None
    earlier, later = (found.record.attempts[index] for index in pair)
    return Failure(
        f"attempt {later.number} follows attempt {earlier.number}, which was left unknown "
        f"({earlier.reply.value}): no final absent answer lies between, and the owner does not "
        "deduplicate the two",
        (f"/attempts/{pair[1]}", f"/attempts/{pair[0]}"),
    )


def duplicate_effect(found: Findings) -> Failure | None:
    """Check 7: the owner's ledger holds at most one effect."""
    count = len(found.record.owner_effects)
    if count <= 1:
        return None
    return Failure(f"the owner's ledger holds {count} effects", ("/ownerEffects",))


def unknown_released(found: Findings) -> Failure | None:
    """Check 8: a reservation for an unknown outcome is still charged, also after it expired."""
    reservation = found.record.reservation
    if found.outcome is not UNKNOWN or reservation is None or reservation.charged:
        return None
    return Failure(
        "the outcome is unknown and the capacity held for it is no longer charged",
        ("/reservation/charged", *_first_unknown(found)),
    )


def outcome_settled_without_authority(found: Findings) -> Failure | None:
    """Check 9: an unknown outcome was not reported as committed or not run."""
    reported = found.record.reported.outcome
    if found.outcome is not UNKNOWN or reported is UNKNOWN:
        return None
    return Failure(
        f"the runtime reported {reported.value}, and no answer of the owner settles the outcome",
        ("/reported/outcome", *_first_unknown(found)),
    )


def outcome_disagrees_with_authority(found: Findings) -> Failure | None:
    """Check 10: the runtime reported the outcome that the owner's answers settle."""
    reported = found.record.reported.outcome
    if reported is found.outcome:
        return None
    because = [f"/attempts/{index}" for index in found.confirmed[:1]]
    because += [f"/reconciliations/{index}" for index in (found.present or found.absent)[:1]]
    return Failure(
        f"the runtime reported {reported.value}, and the owner's answers support "
        f"{found.outcome.value}",
        ("/reported/outcome", *because),
    )


class ValuesCheck(Value):
    """One of checks 1 to 3: ``reason`` is what a verdict names when it fails."""

    reason: str
    run: Callable[[dict[str, object]], Failure | None]


class RecordCheck(Value):
    """One of checks 4 to 10: ``reason`` is what a verdict names when it fails."""

    reason: str
    run: Callable[[Findings], Failure | None]


VALUES_CHECKS = tuple(
    ValuesCheck(check.__name__, check)
    for check in (contract_id_missing, contract_id_unknown, operation_identity_missing)
)
RECORD_CHECKS = tuple(
    RecordCheck(check.__name__, check)
    for check in (
        idempotency_key_args_changed,
        dispatch_beyond_lease,
        retry_after_unknown,
        duplicate_effect,
        unknown_released,
        outcome_settled_without_authority,
        outcome_disagrees_with_authority,
    )
)
CHECKS: tuple[ValuesCheck | RecordCheck, ...] = (*VALUES_CHECKS, *RECORD_CHECKS)
REASONS = tuple(check.reason for check in CHECKS)
HELD = "effect_held"
"""The only reason to allow."""


# --- what fails, in words ------------------------------------------------------------------------

_ACQUIRED_AT = attrgetter("acquired_at")


def _first_unknown(found: Findings) -> tuple[str, ...]:
    return tuple(f"/attempts/{index}" for index in found.unknown[:1])


def _beyond_lease(record: Record, index: int) -> Failure:
    """Say which rule of check 5 the attempt at ``index`` breaks."""
    attempt = record.attempts[index]
    worker, token, at = attempt.worker, attempt.fencing_token, attempt.dispatched_at
    place = f"/attempts/{index}"
    if worker is None or token is None:
        missing = "worker" if worker is None else "fencing token"
        return Failure(f"attempt {attempt.number} names no {missing}", (place,))
    own = [
        i
        for i, lease in enumerate(record.leases)
        if (lease.worker, lease.fencing_token) == (worker, token)
    ]
    who = f"attempt {attempt.number} of worker {shown(worker)} with token {token}"
    if not own:
        return Failure(f"{who} has no lease", (place,))
    if not any(record.leases[i].acquired_at <= at <= record.leases[i].expires_at for i in own):
        return Failure(
            f"{who} was dispatched at {at!s:.40}, outside its lease", (place, f"/leases/{own[0]}")
        )
    higher = next(
        i
        for i, lease in enumerate(record.leases)
        if lease.fencing_token > token and lease.acquired_at <= at
    )
    newer = record.leases[higher]
    return Failure(
        f"{who} was dispatched at {at!s:.40}, after token {newer.fencing_token} was granted "
        f"to {shown(newer.worker)} at {newer.acquired_at!s:.40}",
        (place, f"/leases/{higher}"),
    )
