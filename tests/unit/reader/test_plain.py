"""The quick way must never say more than the checks: trails that are plain, or nearly so."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from building import DIGEST, KEY, OTHER_DIGEST, OTHER_KEY, Values, answer, at, held, lease, trail

from counterfoil.reader.plain import plainly_held
from counterfoil.reader.verdict import judge_briefly, judge_bytes

WRONG: dict[str, list[Any]] = {
    "attempt": [1, 2, 3, 0, True, 1.0, None],
    "idempotencyKey": [KEY, OTHER_KEY, "", 5],
    "argsDigest": [DIGEST, OTHER_DIGEST, ""],
    "dispatchedAt": [at(0), at(20), at(45), at(20)[:-1], at(20).lower(), None],
    "at": [at(0), at(20), at(45), "2026-03-01T10:00:20+00:00", 7],
    "acquiredAt": [at(0), at(20), at(45), at(100), at(20)[:-1]],
    "expiresAt": [at(0), at(20), at(45), at(100), ""],
    "reply": ["confirmed", "no_effect", "timeout", "connection_lost", "lost", [], None],
    "worker": ["w0", "w1", "", None, 5],
    "fencingToken": [0, 1, 2, True, 1.0, None, 2**53],
    "result": ["absent", "present", "gone", None],
    "final": [True, False, 1, None],
    "outcome": ["committed", "not_run", "unknown", None],
    "charged": [True, False, 0],
    "units": [0, 1, 0.5, -1, True, None],
    "deduplicatesByKey": [True, False, None],
    "keyRetentionSeconds": [None, 0, 5, 1.5, -1, "5"],
}


def near_plain(rng: random.Random) -> Values:
    """Return an orderly trail, about every third of them with one or two members changed."""
    count = rng.randint(0, 3)
    attempts, answers, leases = [], [], []
    leased = rng.random() < 0.6
    for n in range(count):
        reply = rng.choice(["timeout", "no_effect", "timeout", "confirmed"])
        if reply == "confirmed" and n + 1 < count and rng.random() < 0.8:
            reply = "connection_lost"
        attempt = held(n + 1, 20 * n, reply, f"w{n}", n)
        if not leased:
            del attempt["worker"], attempt["fencingToken"]
        attempts.append(attempt)
        leases.append(lease(f"w{n}", n, 20 * n, 20 * n + 19))
        if reply not in {"confirmed", "no_effect"} and rng.random() < (
            0.9 if n + 1 < count else 0.5
        ):
            result = "absent" if n + 1 < count or rng.random() < 0.5 else "present"
            seconds = rng.choice([20 * n, 20 * n + 1, 20 * n + 20])
            answers.append(answer(seconds, result, final=rng.random() < 0.9))
    if rng.random() < 0.2:
        answers.append(answer(rng.choice([-5, 10, 90]), rng.choice(["absent", "present"])))
    values = trail(
        "unknown",
        *attempts,
        answers=answers,
        deduplicates=rng.random() < 0.3,
        retention=rng.choice([None, None, 30]),
    )
    if leased:
        values["leases"] = leases
    if rng.random() < 0.5:
        values["reservation"] = {"units": 1, "expiresAt": at(9), "charged": rng.random() < 0.9}
    found = judge_bytes(json.dumps(values).encode())
    outcome = getattr(found, "outcome", None)
    if outcome is not None and rng.random() < 0.9:
        values["reported"]["outcome"] = outcome.value
        values["ownerEffects"] = [{}] * (outcome.value == "committed" or rng.random() < 0.1)
    if rng.random() < 0.35:
        for _ in range(rng.randint(1, 2)):
            change_one(rng, values)
    return values


def change_one(rng: random.Random, values: Values) -> None:
    parts: list[Values] = [values["operation"], values["effectOwner"], values["reported"]]
    for name in ("attempts", "leases", "reconciliations"):
        parts += values.get(name, [])
    if "reservation" in values:
        parts.append(values["reservation"])
    part = rng.choice([part for part in parts if part])
    name = rng.choice(list(part))
    if rng.random() < 0.1:
        del part[name]
    elif name in WRONG:
        part[name] = rng.choice(WRONG[name])


@pytest.mark.parametrize("seed", range(4))
def test_what_the_quick_way_recognises_the_checks_hold_without_an_advisory(seed: int) -> None:
    rng = random.Random(seed)
    recognised = changed = 0
    for _ in range(500):
        values = near_plain(rng)
        data = json.dumps(values).encode()
        full, brief = judge_bytes(data), judge_briefly(data)
        assert brief.as_json() == full.as_json(), data
        recognised += plainly_held(json.loads(data)) is not None
        changed += full.as_json().get("reason") != "effect_held"
    assert recognised > 100
    assert changed > 100


@pytest.mark.parametrize("outcome", ["committed", "not_run", "unknown"])
def test_each_outcome_has_plain_trails(outcome: str) -> None:
    reply = {"committed": "confirmed", "not_run": "no_effect", "unknown": "timeout"}[outcome]
    assert plainly_held(
        trail(outcome, held(1, 0, reply, "w", 1), leases=[lease("w", 1, 0, 9)])
    ) == (outcome)


def test_the_lost_reply_that_the_owner_answers_for_is_plain() -> None:
    lost = held(1, 0, "timeout", "w", 1)
    del lost["worker"], lost["fencingToken"]
    assert plainly_held(trail("committed", lost, answers=[answer(9, "present")])) == "committed"
    assert plainly_held(trail("not_run", lost, answers=[answer(9, "absent")])) == "not_run"
