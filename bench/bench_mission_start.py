"""What a start costs after 1,000,000 events of a mission, beside one after 10,000.

Run it with ``python -m bench.bench_mission_start``, which takes some minutes to write them;
``ratios()`` gives what the checks compare, after 100,000. The
logs are made through the store, in batches, in a temporary folder; operations are admitted,
dispatched and settled, and those at rest leave the live state as they do in a book. Both logs end
with the same number of lines after their last snapshot. A start is what opening a book costs its
mission: the snapshot is read, checked against the log, and the lines after it are folded.
"""

from __future__ import annotations

import itertools
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.coordinator.mission_head import Batch, Head, loaded
from counterfoil.mission import parse_contract
from counterfoil.store.mission_log import mission_stream
from counterfoil.store.port import WorkerRecord
from counterfoil.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL, LARGE, CHECKED = 10_000, 1_000_000, 100_000
"""Events."""
BATCH = 3_000
TAIL = 600
"""Lines after the last snapshot."""
TIMES = 15
GROWTH_LIMIT = 1.3
"""A start after many events may cost this much of one after few."""

FOREVER_MS = "9999999999999"
CONTRACT = {
    "id": "c",
    "missionId": "m",
    "aiwsEdition": "0.4",
    "profile": "finite-v1",
    "budget": "10000000",
    "deadline": FOREVER_MS,
    "criteria": [],
    "actions": ["write"],
    "resources": ["doc"],
    "requiresApproval": False,
    "maxAttempts": "2",
    "maxAuthorizationAgeMs": "0",
    "features": [],
}
GRANT = {
    "id": "g",
    "subject": "agent",
    "profile": "finite-v1",
    "actions": ["write"],
    "resources": ["doc"],
    "notBefore": "0",
    "expiresAt": FOREVER_MS,
    "limit": "10000000",
    "canDelegate": False,
    "depth": "0",
}
BY = WorkerRecord("w", "host", "boot", None, 1)


def _commands() -> Iterator[dict[str, object]]:
    yield {"type": "startRun", "runId": "r"}
    yield {"type": "grant", "grant": GRANT}
    for number in itertools.count():
        name, attempt = f"o-{number}", {"attemptId": f"o-{number}#1"}
        action = {
            "capability": "write",
            "resource": "doc",
            "payload": {"n": number},
            "preconditions": {},
        }
        admitted = {"runId": "r", "operationId": name, "grantId": "g", "subject": "agent"}
        yield {"type": "admit", **admitted, **attempt, "action": action, "amount": "2"}
        yield {"type": "dispatch", **attempt}
        yield {"type": "settle", **attempt, "effect": "CONFIRMED_APPLIED", "actualCost": "1"}


def _now_us() -> int:
    return time.time_ns() // 1000


def make(path: Path, events: int) -> None:
    """Write a mission of about so many events."""
    store = SqliteStore(path, create=True, now_us=_now_us)
    stream = mission_stream("default", "m")

    def new_id() -> bytes:
        return os.urandom(16)

    head = Head.create(store, stream, BY, new_id, parse_contract(CONTRACT))
    commands = _commands()
    sizes = itertools.chain([BATCH] * ((events - TAIL) // BATCH), [TAIL])
    for size in sizes:
        some = list(itertools.islice(commands, size))
        stored = store.command(Batch(head, lambda _state, _lookup, some=some: some), by=BY)
        assert stored
    assert head.at.version - head.at.snapshot_n == TAIL
    store.close()


def start_s(path: Path) -> float:
    """Return the seconds that one start takes, the opening of the file included."""
    began = time.perf_counter()
    store = SqliteStore(path, create=False, now_us=_now_us)
    at = loaded(store, mission_stream("default", "m"))
    took = time.perf_counter() - began
    assert len(at.state.parts.operations) <= TAIL
    store.close()
    return took


def measure(large: int) -> tuple[float, float]:
    """Return the median seconds of a start after few events and after many."""
    with tempfile.TemporaryDirectory(prefix="counterfoil-") as folder:
        paths = (Path(folder) / "few.db", Path(folder) / "many.db")
        make(paths[0], SMALL)
        make(paths[1], large)
        for path in paths:
            start_s(path)
        pairs = [(start_s(paths[0]), start_s(paths[1])) for _ in range(TIMES)]
        few, many = zip(*pairs, strict=True)
        return statistics.median(few), statistics.median(many)


def ratios() -> list[tuple[str, float, float]]:
    """Return (name, measured, limit); measured must not be above the limit."""
    few, many = measure(CHECKED)
    what = f"mission: a start after {CHECKED} events / after {SMALL}"
    return [(what, many / few, GROWTH_LIMIT)]


def main() -> None:
    """Print the figures."""
    few, many = measure(LARGE)
    print(f"a start after {SMALL} events: {few * 1000:.1f} ms, after {LARGE}: {many * 1000:.1f} ms")
    print(f"ratio {many / few:.2f} (at most {GROWTH_LIMIT})")


if __name__ == "__main__":
    main()
