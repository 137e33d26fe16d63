"""`perform` one by one on SQLite, beside a bare loop of two durable commits."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

import counterfoil as cf

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 15
OPERATIONS = 200


def ratios() -> list[tuple[str, float, float]]:
    """Return (what, ratio of rates, limit): ours over the bare loop, medians of paired rounds."""
    owner = cf.Owner("bench", settles_within="1m")

    @cf.effect("bench.write", owner=owner)
    def write(attempt: cf.Attempt, *, order_id: str, amount: str) -> object:
        return {"id": attempt.key, "order": order_id, "amount": amount}

    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        bare = bare_loop(Path(folder) / "bare.db")
        with cf.open(Path(folder) / "effects.db", create=True) as book:

            def ours(first: int) -> None:
                for number in range(first, first + OPERATIONS):
                    book.perform(write, f"operation-{number}", order_id="1042", amount="12.50")

            def again(first: int) -> None:
                for _ in range(OPERATIONS):
                    book.perform(write, f"operation-{first}", order_id="1042", amount="12.50")

            ours(0)
            bare(0)
            pairs = []
            for number in range(1, ROUNDS + 1):
                first = number * OPERATIONS
                pairs.append((timed(bare, first), timed(ours, first), timed(again, first)))
    settled = statistics.median(b / o for b, o, _ in pairs)
    repeated = statistics.median(b / a for b, _, a in pairs)
    return [
        ("at least: perform, over a bare loop of two durable commits", settled, 0.8),
        ("at least: perform of a settled id, over the same bare loop", repeated, 0.8),
    ]


def bare_loop(path: Path) -> Callable[[int], None]:
    """Return a loop that inserts a row of an operation's size twice, each time durably."""
    db = apsw.Connection(str(path))
    db.pragma("journal_mode", "wal")
    db.pragma("synchronous", "full")
    db.execute("CREATE TABLE bare (id INTEGER PRIMARY KEY, operation TEXT, payload BLOB)")
    payload = b"x" * 400

    def run(first: int) -> None:
        for number in range(first, first + OPERATIONS):
            for _ in range(2):
                db.execute("BEGIN IMMEDIATE")
                db.execute(
                    "INSERT INTO bare (operation, payload) VALUES (?, ?)",
                    (f"operation-{number}", payload),
                )
                db.execute("COMMIT")

    return run


def timed(loop: Callable[[int], None], first: int) -> float:
    """Return the seconds that one round takes."""
    began = time.perf_counter()
    loop(first)
    return time.perf_counter() - began


if __name__ == "__main__":
    for what, measured, limit in ratios():
        print(f"{what}: {measured:.2f} (limit {limit})")
