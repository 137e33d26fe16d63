"""Builds trails as JSON values, and has them judged. Times are seconds after one fixed instant."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from counterfoil.reader.verdict import Malformed, Verdict, judge_briefly, judge_bytes

CONTRACT = "https://probityai.github.io/agent-evidence-vectors/predicate/v1/uncertain-effect"
BEGIN = datetime(2026, 3, 1, 10, tzinfo=UTC)
KEY, OTHER_KEY = "key-1", "key-2"
DIGEST, OTHER_DIGEST = "sha256:" + "a1" * 32, "sha256:" + "b2" * 32

Values = dict[str, Any]


def at(seconds: float) -> str:
    return (BEGIN + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def attempt(number: int, seconds: float, reply: str, key: str = KEY, **more: Any) -> Values:
    return {
        "attempt": number,
        "idempotencyKey": key,
        "argsDigest": DIGEST,
        "dispatchedAt": at(seconds),
        "reply": reply,
        **more,
    }


def held(number: int, seconds: float, reply: str, worker: str, token: int) -> Values:
    """An attempt by a worker under its fencing token."""
    return attempt(number, seconds, reply, worker=worker, fencingToken=token)


def lease(worker: str, token: int, begin: float, end: float) -> Values:
    return {
        "worker": worker,
        "fencingToken": token,
        "acquiredAt": at(begin),
        "expiresAt": at(end),
    }


def answer(seconds: float, result: str, *, final: bool = True, key: str = KEY) -> Values:
    return {"at": at(seconds), "idempotencyKey": key, "result": result, "final": final}


def absent(seconds: float, key: str = KEY) -> Values:
    return answer(seconds, "absent", key=key)


def present(seconds: float, key: str = KEY) -> Values:
    return answer(seconds, "present", key=key)


def trail(
    outcome: str,
    *attempts: Values,
    answers: list[Values] | None = None,
    effects: int | None = None,
    deduplicates: bool = False,
    retention: Any = None,
    **more: Any,
) -> Values:
    """A record that reports ``outcome``; its ledger lists one effect if that is committed."""
    listed = int(outcome == "committed") if effects is None else effects
    return {
        "contractId": CONTRACT,
        "operation": {
            "id": "op-1",
            "action": "payments.refund",
            "idempotencyKey": KEY,
            "argsDigest": DIGEST,
        },
        "effectOwner": {
            "id": "payments",
            "deduplicatesByKey": deduplicates,
            "keyRetentionSeconds": retention,
        },
        "attempts": list(attempts),
        "reconciliations": answers or [],
        "ownerEffects": [{"id": f"effect-{n}"} for n in range(listed)],
        "reported": {"outcome": outcome},
        **more,
    }


def answered(values: Values) -> Verdict | Malformed:
    """Judge the record both ways, the quick one included, and see that they agree."""
    data = json.dumps(values).encode()
    answer = judge_bytes(data)
    assert judge_briefly(data).as_json() == answer.as_json()
    return answer


def judged(values: Values) -> Verdict:
    answer = answered(values)
    assert isinstance(answer, Verdict), answer
    return answer


def reason(values: Values) -> str:
    return judged(values).reason


def codes(values: Values) -> list[str]:
    return [advisory.code for advisory in judged(values).advisories]
