"""Other ids, keys and arguments for a scenario, from a seed. Pure.

A runtime must not know a scenario by its spelling. The seed is printed, so that a run can be
repeated letter for letter.
"""

from __future__ import annotations

import random
import string
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counterfoil.conformance.scenario import Json, Scenario

_CLASSES = (string.ascii_lowercase, string.ascii_uppercase, string.digits)


def respelled(scenario: Scenario, seed: int) -> tuple[Scenario, str]:
    """Return the scenario under another spelling, and a neutral id for it."""
    dice = random.Random(f"{seed}:{scenario.id}")  # noqa: S311 - it must repeat, not surprise
    operation = scenario["operation"]
    assert isinstance(operation, dict)
    members = dict(scenario.members)
    members["operation"] = {
        **operation,
        "id": f"op-{_token(dice)}",
        "idempotencyKey": f"key-{_token(dice)}",
        "args": _value(operation["args"], dice),
    }
    return replace(scenario, members=members), f"scenario-{_token(dice)}"


def worker_name(scenario: Scenario, seed: int, number: int) -> str:
    """Return a name for the scenario's worker ``number``, always the same one."""
    dice = random.Random(f"{seed}:{scenario.id}:worker:{number}")  # noqa: S311
    return f"worker-{_token(dice)}"


def _token(dice: random.Random) -> str:
    return f"{dice.getrandbits(48):012x}"


def _value(value: Json, dice: random.Random) -> Json:
    """Respell strings and whole numbers, in shape and length as they were."""
    match value:
        case bool() | None | float():
            return value
        case int():
            digits = len(str(abs(value)))
            return dice.randint(10 ** (digits - 1) if digits > 1 else 1, 10**digits - 1)
        case str():
            return "".join(_character(one, dice) for one in value)
        case list():
            return [_value(entry, dice) for entry in value]
        case dict():
            return {name: _value(entry, dice) for name, entry in value.items()}


def _character(one: str, dice: random.Random) -> str:
    for among in _CLASSES:
        if one in among:
            # A leading zero would be another kind of number.
            return dice.choice("123456789" if among is string.digits else among)
    return one
