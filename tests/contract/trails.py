"""Small trails to say things with, a JSON writer that can say wrong things, and ``expect``."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from counterfoil.reader.verdict import Malformed, judge_briefly, judge_bytes

from . import oracle

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]

DIGEST = "sha256:" + "5c" * 32
OTHER_DIGEST = "sha256:" + "0f" * 32
KEY = "key-1"
OTHER_KEY = "key-2"


class Raw(str):
    """Text that goes into the JSON as it is: a number as written, or what is no JSON at all."""

    __slots__ = ()


def written(value: Any) -> str:
    """Return the JSON text of a value; a list of pairs in ``Pairs`` may repeat a name."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, Pairs):
        pairs = [f"{written(name)}: {written(item)}" for name, item in value.pairs]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, dict):
        return written(Pairs(*value.items()))
    if isinstance(value, list):
        return "[" + ", ".join(written(item) for item in value) + "]"
    return json.dumps(value)


class Pairs:
    """An object whose names may come twice."""

    def __init__(self, *pairs: tuple[str, Any]) -> None:
        self.pairs = pairs


def said(value: Any) -> bytes:
    return written(value).encode()


def at(second: float | str, spelled: str = "2025-03-01T12:{}Z") -> str:
    """Return the time so many seconds after noon; a string keeps its own fraction digits."""
    whole, _, fraction = str(second).partition(".")
    minutes, seconds = divmod(int(whole), 60)
    return spelled.format(f"{minutes:02}:{seconds:02}" + (f".{fraction}" if fraction else ""))


def attempt(number: int, second: float | str, reply: str, **over: Any) -> Json:
    return {
        "attempt": number,
        "idempotencyKey": KEY,
        "argsDigest": DIGEST,
        "dispatchedAt": at(second),
        "reply": reply,
        **over,
    }


def held(worker: str, token: Any, start: float | str, end: float | str) -> Json:
    return {
        "worker": worker,
        "fencingToken": token,
        "acquiredAt": at(start),
        "expiresAt": at(end),
    }


def found(result: str, second: float | str, *, final: bool = True, key: str = KEY) -> Json:
    return {"at": at(second), "idempotencyKey": key, "result": result, "final": final}


def effects(count: int) -> list[Json]:
    return [{"effectId": f"effect-{number}"} for number in range(count)]


def reserved(*, charged: bool, until: float = 30, units: Any = 1) -> Json:
    return {"units": units, "expiresAt": at(until), "charged": charged}


def record(attempts: list[Json], outcome: str, **over: Any) -> Json:
    """Return a record; ``owner`` adds to its effectOwner, any other name replaces a member."""
    owner = {"id": "owner-1", "deduplicatesByKey": False, "keyRetentionSeconds": None}
    owner.update(over.pop("owner", {}))
    return {
        "contractId": oracle.URI,
        "operation": {
            "id": "operation-1",
            "action": "charge",
            "idempotencyKey": KEY,
            "argsDigest": DIGEST,
        },
        "effectOwner": owner,
        "attempts": attempts,
        "reconciliations": [],
        "ownerEffects": [],
        "reported": {"outcome": outcome},
        **over,
    }


def two(first: Any, second: Any, **over: Any) -> Json:
    """Return a lost attempt 1 and a confirmed attempt 2, at these seconds."""
    attempts = [attempt(1, first, "timeout"), attempt(2, second, "confirmed")]
    return record(attempts, "committed", ownerEffects=effects(1), **over)


def lost(reservation: Json | None, outcome: str = "unknown") -> Json:
    """Return a record of one time-out that nobody answered for."""
    return record([attempt(1, 0, "timeout")], outcome, reservation=reservation)


def full() -> Json:
    """Return an allowed record that has every optional member."""
    return record(
        [
            attempt(1, 0, "timeout", worker="worker-1", fencingToken=1),
            attempt(2, 20, "confirmed", worker="worker-2", fencingToken=2),
        ],
        "committed",
        leases=[held("worker-1", 1, 0, 15), held("worker-2", 2, 16, 40)],
        reconciliations=[found("absent", 18)],
        ownerEffects=effects(1),
        reservation=reserved(charged=True),
        notices=[{"at": at(25), "from": "billing", "kind": "invoice", "final": True, "units": 1}],
    )


CONTROLS: dict[str, Json] = {
    "a time-out reconciled as absent": record(
        [attempt(1, 0, "timeout")], "not_run", reconciliations=[found("absent", 5)]
    ),
    "a resend after a final absent answer": record(
        [attempt(1, 0, "connection_lost"), attempt(2, 10, "confirmed")],
        "committed",
        reconciliations=[found("absent", 5)],
        ownerEffects=effects(1),
    ),
    "a resend under the same key to an owner that deduplicates": record(
        [attempt(1, 0, "connection_lost"), attempt(2, 10, "confirmed")],
        "committed",
        owner={"deduplicatesByKey": True, "keyRetentionSeconds": 3600},
        ownerEffects=effects(1),
    ),
    "a lease handed over and reconciled": record(
        [attempt(1, 5, "connection_lost", worker="worker-1", fencingToken=1)],
        "committed",
        leases=[held("worker-1", 1, 0, 10), held("worker-2", 2, 12, 40)],
        reconciliations=[found("present", 15)],
        ownerEffects=effects(1),
        reservation=reserved(charged=True),
    ),
    "a late commit waited for": record(
        [attempt(1, 0, "timeout")],
        "committed",
        reconciliations=[found("absent", 5, final=False), found("present", 20)],
        ownerEffects=effects(1),
    ),
}


def control(name: str) -> Json:
    return copy.deepcopy(CONTROLS[name])


def place(holder: Any, pointer: str) -> tuple[Any, Any]:
    """Return the container that a JSON Pointer leads to, and the last name or index in it."""
    names = [name.replace("~1", "/").replace("~0", "~") for name in pointer.split("/")[1:]]
    for name in names[:-1]:
        holder = holder[int(name)] if isinstance(holder, list) else holder[name]
    return holder, int(names[-1]) if isinstance(holder, list) else names[-1]


def with_value(value: Mapping[str, Any], pointer: str, new: Any) -> Json:
    """Return a copy in which the member at the pointer is ``new``."""
    changed = copy.deepcopy(dict(value))
    holder, name = place(changed, pointer)
    holder[name] = new
    return changed


def without(value: Mapping[str, Any], pointer: str) -> Json:
    """Return a copy in which the member at the pointer is missing."""
    changed = copy.deepcopy(dict(value))
    holder, name = place(changed, pointer)
    del holder[name]
    return changed


ONE_OF_EACH: dict[str, Json] = {
    "contract_id_missing": without(full(), "/contractId"),
    "contract_id_unknown": with_value(full(), "/contractId", "another"),
    "operation_identity_missing": without(full(), "/operation/argsDigest"),
    "idempotency_key_args_changed": with_value(full(), "/attempts/1/argsDigest", OTHER_DIGEST),
    "dispatch_beyond_lease": with_value(full(), "/attempts/1/fencingToken", 3),
    "retry_after_unknown": two(0, 10),
    "duplicate_effect": {**full(), "ownerEffects": effects(2)},
    "unknown_released": lost(reserved(charged=False)),
    "outcome_settled_without_authority": lost(None, "not_run"),
    "outcome_disagrees_with_authority": with_value(full(), "/reported/outcome", "unknown"),
    "effect_held": full(),
}


def reason_of(verdict: Any) -> str:
    return oracle.MALFORMED if isinstance(verdict, Malformed) else str(verdict.reason)


def expect(value: Any, reason: str) -> None:
    """Hold the oracle and both of the reader's ways to the answer that the page gives."""
    data = value if isinstance(value, bytes) else said(value)
    told = oracle.judge(data)
    assert told.reason == reason, f"the oracle itself reads this as {told.reason}"
    for judge in (judge_bytes, judge_briefly):
        verdict = judge(data)
        assert reason_of(verdict) == reason, f"{judge.__name__} on {data[:2000]!r}"
        if not isinstance(verdict, Malformed):
            assert verdict.decision == told.decision
            assert verdict.outcome == told.outcome
