"""What one command costs, at the beginning of a mission and after 200,000 of them.

Run it with ``python bench/bench_mission.py``; ``ratios()`` gives what the checks compare. The
commands are read before the clock starts: the figures are those of the fold alone, in pieces of
500 commands. Old states stay valid, so the first tenth is folded once more piece by piece beside
the last one: whatever else the machine does then falls on both. The clock is the processor's, and
the garbage collector is off, as in ``timeit``: its full passes follow the heap of the whole
process, and not the command.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from counterfoil.mission import create_mission, parse_command, parse_contract, reduce

if TYPE_CHECKING:
    from collections.abc import Iterator

    from counterfoil.mission import Command, State

COMMANDS = 200_000
PER_OPERATION = 4
SLICE = COMMANDS // 10
PIECE = 500
GROWTH_LIMIT = 1.3
"""The last tenth may cost this much of the first."""
RATE_FLOOR = 20_000.0
"""Commands a second."""

CONTRACT = {
    "id": "c",
    "missionId": "bench",
    "aiwsEdition": "0.4",
    "profile": "finite-v1",
    "budget": "1000000",
    "deadline": "1000000000",
    "criteria": [],
    "actions": ["write"],
    "resources": ["doc"],
    "requiresApproval": False,
    "maxAttempts": "2",
    "maxAuthorizationAgeMs": "10",
    "features": [],
}
GRANT = {
    "id": "g",
    "subject": "agent",
    "profile": "finite-v1",
    "actions": ["write"],
    "resources": ["doc"],
    "notBefore": "0",
    "expiresAt": "1000000000",
    "limit": "1000000",
    "canDelegate": False,
    "depth": "0",
}


@contextmanager
def _no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _operation(number: int) -> list[dict[str, object]]:
    gate = {"authorizationCheckedAt": "10", "policy": "ALLOW", "mandatoryChecksOk": True}
    action = {
        "capability": "write",
        "resource": "doc",
        "payload": {"value": number},
        "preconditions": {},
    }
    attempt = {"attemptId": f"attempt-{number}"}
    unknown = {**attempt, "effect": "UNKNOWN", "actualCost": "0"}
    settled = {**attempt, "effect": "CONFIRMED_APPLIED", "actualCost": "0.25"}
    admit = {
        "type": "admit",
        "runId": "r",
        "operationId": f"operation-{number}",
        "grantId": "g",
        "subject": "agent",
        "action": action,
        "amount": "0.5",
    }
    return [
        {**admit, **attempt, **gate},
        {"type": "dispatch", **attempt, **gate},
        {"type": "settle", **unknown},
        {"type": "settle", **settled},
    ]


def _commands(first: int, count: int) -> list[Command]:
    plain = [c for n in range(first, first + count) for c in _operation(n)]
    return [parse_command(json.dumps(command)) for command in plain]


def _begin() -> State:
    state = create_mission(parse_contract(json.dumps(CONTRACT)))
    for command in ({"type": "startRun", "runId": "r"}, {"type": "grant", "grant": GRANT}):
        state = reduce(state, parse_command(json.dumps(command)), 10)
    return state


def _piece(state: State, commands: list[Command]) -> tuple[State, float]:
    began = time.process_time()
    for command in commands:
        state = reduce(state, command, 10)
    return state, time.process_time() - began


def measure() -> tuple[list[float], float]:
    """Return the commands a second of each tenth, and last tenth / first tenth."""
    start = state = _begin()
    operations = SLICE // PER_OPERATION
    first = _commands(0, operations)
    rates: list[float] = []
    pairs: list[float] = []
    for tenth in range(10):
        commands = _commands(tenth * operations, operations)
        pieces: list[float] = []
        with _no_collector():
            for at in range(0, SLICE, PIECE):
                state, seconds = _piece(state, commands[at : at + PIECE])
                pieces.append(seconds)
                if tenth == 9:
                    start, beside = _piece(start, first[at : at + PIECE])
                    pairs.append(seconds / beside)
        rates.append(PIECE / statistics.median(pieces))
    assert state["events"] == str(COMMANDS + 2)
    assert state["spent"] == str(COMMANDS // PER_OPERATION // 4)
    return rates, statistics.median(pairs)


def ratios() -> list[tuple[str, float, float]]:
    """Return (name, measured, limit); measured must not be above the limit."""
    rates, growth = measure()
    rate = statistics.median(rates)
    return [
        ("mission: last tenth / first tenth", growth, GROWTH_LIMIT),
        (f"mission: {RATE_FLOOR:.0f} a second / {rate:.0f} a second", RATE_FLOOR / rate, 1.0),
    ]


def main() -> None:
    """Print the figures."""
    rates, growth = measure()
    print("commands a second by tenth:", *(f"{rate:.0f}" for rate in rates))
    print(f"median: {statistics.median(rates):.0f} commands a second (at least {RATE_FLOOR:.0f})")
    print(f"last tenth / first tenth: {growth:.2f} (at most {GROWTH_LIMIT})")


if __name__ == "__main__":
    main()
