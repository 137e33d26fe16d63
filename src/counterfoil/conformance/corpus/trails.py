"""The parts of a trail, for the cases: one operation, one day, plain names. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.record.model import CONTRACT_ID

if TYPE_CHECKING:
    from counterfoil.conformance.corpus.building import Members
    from counterfoil.conformance.scenario import Json

KEY = "key-5d20c7"
OTHER_KEY = "key-e81f43"
DIGEST = "sha256:8d1f4c0ab6e92375bd08f6137c5ea94204d7b1fe63a85c9012fb7e4da6803c59"
OTHER_DIGEST = "sha256:31c6f0ea97d24b58a0e3765b1fc8d94e26ab07f35d1c89e4027ba6f8c3d5e190"
FIRST, SECOND = "worker-a4", "worker-c9"

CONFIRMED, NO_EFFECT = "confirmed", "no_effect"
TIMEOUT, LOST = "timeout", "connection_lost"
COMMITTED, NOT_RUN, UNKNOWN = "committed", "not_run", "unknown"


def at(clock: str) -> str:
    """Return a time of the day on which every trail lies; ``clock`` is ``HH:MM:SS`` or finer."""
    return f"2026-03-02T{clock}Z"


def trail(
    attempts: list[Json],
    outcome: str,
    *,
    answers: list[Json] | None = None,
    effects: int = 0,
    deduplicates: bool = False,
    retention_s: Json = None,
    **optional: Json,
) -> Members:
    """Return a record; ``optional`` are ``leases``, ``reservation`` and ``notices``."""
    return {
        "contractId": CONTRACT_ID,
        "operation": {
            "id": "op-90b3e6",
            "action": "payment.refund",
            "idempotencyKey": KEY,
            "argsDigest": DIGEST,
        },
        "effectOwner": {
            "id": "owner-17",
            "deduplicatesByKey": deduplicates,
            "keyRetentionSeconds": retention_s,
        },
        "attempts": attempts,
        "reconciliations": answers or [],
        "ownerEffects": [effect(number) for number in range(1, effects + 1)],
        "reported": {"outcome": outcome},
        **optional,
    }


def attempt(number: int, clock: str, reply: str, **other: Json) -> Members:
    """Return a dispatch under the operation's key and arguments unless ``other`` says otherwise."""
    return {
        "attempt": number,
        "idempotencyKey": KEY,
        "argsDigest": DIGEST,
        "dispatchedAt": at(clock),
        "reply": reply,
        **other,
    }


def held(number: int, clock: str, reply: str, worker: str, token: int) -> Members:
    """Return a dispatch by a worker under a fencing token."""
    return attempt(number, clock, reply, worker=worker, fencingToken=token)


def lease(worker: str, token: int, begins: str, ends: str) -> Members:
    """Return a lease between two times of the day."""
    return {
        "worker": worker,
        "fencingToken": token,
        "acquiredAt": at(begins),
        "expiresAt": at(ends),
    }


def absent(clock: str, *, final: bool = True, key: str = KEY) -> Members:
    """Return the owner's answer that it holds no effect."""
    return {"at": at(clock), "idempotencyKey": key, "result": "absent", "final": final}


def present(clock: str, *, key: str = KEY) -> Members:
    """Return the owner's answer that it holds the effect."""
    return {"at": at(clock), "idempotencyKey": key, "result": "present", "final": True}


def effect(number: int) -> Members:
    """Return an entry of the owner's ledger."""
    return {"effectId": f"effect-{number}", "idempotencyKey": KEY}


def reservation(expires: str, *, charged: bool = True) -> Members:
    """Return capacity held for the operation."""
    return {"units": 40, "expiresAt": at(expires), "charged": charged}


def invoice(clock: str, units: int = 1) -> Members:
    """Return a final statement of a party that is not the effect owner."""
    return {"at": at(clock), "from": "billing", "kind": "invoice", "final": True, "units": units}
