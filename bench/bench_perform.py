"""`perform` one by one on SQLite, beside a bare loop of two durable commits.

What a commit costs is the disk's, what `perform` adds is ours, so the ratio is of one disk. It is
measured a second time with every sync made longer, as on a plain disk.
"""

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
LONGER_MS = 1.0

bench = cf.Owner("bench", settles_within="1m")


@cf.effect("bench.write", owner=bench)
def write(attempt: cf.Attempt, *, order_id: str, amount: str) -> object:
    """Confirm at once: the owner costs nothing."""
    return {"id": attempt.key, "order": order_id, "amount": amount}


def ratios() -> list[tuple[str, float, float]]:
    """Return (what, ratio of rates, limit): ours over the bare loop, medians of paired rounds."""
    settled, repeated = over_a_bare_loop(ROUNDS)
    longer = LongerSyncs()
    on_a_plain_disk, _ = over_a_bare_loop(ROUNDS // 3)
    longer.unregister()
    return [
        ("at least: perform, over a bare loop of two durable commits", settled, 0.8),
        (f"at least: the same, each sync {LONGER_MS:g} ms longer", on_a_plain_disk, 0.8),
        ("at least: perform of a settled id, over the same bare loop", repeated, 0.8),
    ]


def over_a_bare_loop(rounds: int) -> tuple[float, float]:
    """Return the ratios of ``perform``, and of ``perform`` of a settled id, to the bare loop."""
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
            for number in range(1, rounds + 1):
                first = number * OPERATIONS
                pairs.append((timed(bare, first), timed(ours, first), timed(again, first)))
    settled = statistics.median(b / o for b, o, _ in pairs)
    repeated = statistics.median(b / a for b, _, a in pairs)
    return settled, repeated


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


class LongerSyncs(apsw.VFS):
    """The machine's own files, whose syncs last longer, for every database opened from now on."""

    def __init__(self) -> None:
        self.below = apsw.vfs_names()[0]
        super().__init__("longer-syncs", self.below, makedefault=True)

    def xOpen(  # noqa: N802
        self, name: str | apsw.URIFilename | None, flags: list[int]
    ) -> apsw.VFSFile:
        """Open a file whose syncs last longer."""
        return LongerSync(self.below, name, flags)


class LongerSync(apsw.VFSFile):
    """One such file."""

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        """Sync, and then some."""
        super().xSync(flags)
        time.sleep(LONGER_MS / 1000)


def timed(loop: Callable[[int], None], first: int) -> float:
    """Return the seconds that one round takes."""
    began = time.perf_counter()
    loop(first)
    return time.perf_counter() - began


if __name__ == "__main__":
    for what, measured, limit in ratios():
        print(f"{what}: {measured:.2f} (limit {limit})")
