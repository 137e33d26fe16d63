"""Calibration: drives other people's libraries, and ours, through ``core`` and ``zombie``.

A set that a library with a known hole passes is broken. Prints one table and returns 0 if each
library does what is expected of it, 1 if one does not, 2 if a run could not be judged.
"""

from __future__ import annotations

import importlib.metadata
import json
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ROOT = Path(__file__).resolve().parents[2]
FIELD_PYTHON = ROOT / ".venv" / "field" / "bin" / "python"
OURS = Path(sys.executable).with_name("counterfoil")
SETS = ("core", "zombie")
SEED = "7"
WIDTH = 150


class Expected(StrEnum):
    """What a run must show for the calibration to hold."""

    FAILS_CORE = "fails core"
    DOUBLES_IN_ZOMBIE = "two effects in zombie"
    PASSES = "passes both"
    ANYTHING = "for comparison"


@dataclass(frozen=True, slots=True)
class Entry:
    """A library as it is driven. ``adapter`` is a file of this folder; None is our own adapter."""

    library: str
    adapter: str | None
    mode: str | None
    configured: str
    expected: Expected

    def command(self) -> str:
        """Return the runtime's command line."""
        if self.adapter is None:
            return shlex.join([str(OURS), "adapter"])
        words = [str(FIELD_PYTHON), str(Path(__file__).with_name(self.adapter))]
        return shlex.join([*words, self.mode] if self.mode else words)


@dataclass(frozen=True, slots=True)
class Row:
    """One scenario's result, as far as the table needs it."""

    set_name: str
    id: str
    passed: bool
    effects: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What an entry's run showed. Without a version the library is not installed, and not run."""

    entry: Entry
    version: str | None
    rows: tuple[Row, ...] = ()

    def passed(self, set_name: str) -> str:
        """Say how many scenarios of a set passed, as ``6/8``."""
        of_set = [row.passed for row in self.rows if row.set_name == set_name]
        return f"{sum(of_set)}/{len(of_set)}" if of_set else "-"

    def doubled(self) -> list[Row]:
        """Return the scenarios that were left with more than one effect."""
        return [row for row in self.rows if row.effects > 1]

    def holds(self) -> bool:
        """Whether the run showed what is expected of it."""
        if self.version is None:
            return False
        match self.entry.expected:
            case Expected.FAILS_CORE:
                return any(row.set_name == "core" and not row.passed for row in self.rows)
            case Expected.DOUBLES_IN_ZOMBIE:
                return any(row.set_name == "zombie" for row in self.doubled())
            case Expected.PASSES:
                return bool(self.rows) and all(row.passed for row in self.rows)
            case Expected.ANYTHING:
                return True


RECIPE, CAREFUL = "recipe", "careful"
ENTRIES = (
    Entry(
        "tenacity",
        "with_tenacity.py",
        None,
        "three attempts after a lost reply, growing pauses",
        Expected.FAILS_CORE,
    ),
    Entry(
        "dbos",
        "with_dbos.py",
        None,
        "workflow id = key; one step, retries_allowed, three attempts; shared SQLite",
        Expected.FAILS_CORE,
    ),
    Entry(
        "exactly-once",
        "with_exactly_once.py",
        RECIPE,
        "check_then_decide, lease; prober of its README: absent = NOT_COMMITTED",
        Expected.DOUBLES_IN_ZOMBIE,
    ),
    Entry(
        "agent-once",
        "with_agent_once.py",
        RECIPE,
        "http_verifier, stale_after; verify of its README: absent = NOT_HAPPENED",
        Expected.DOUBLES_IN_ZOMBIE,
    ),
    Entry(
        "effect-ledger",
        "with_effect_ledger.py",
        RECIPE,
        "recovery when no other worker lives: absent = retry (its docs ask for more evidence)",
        Expected.DOUBLES_IN_ZOMBIE,
    ),
    Entry(
        "exactly-once",
        "with_exactly_once.py",
        CAREFUL,
        "the same; absent counts only if final or deduplicated, else UNKNOWN",
        Expected.ANYTHING,
    ),
    Entry(
        "agent-once",
        "with_agent_once.py",
        CAREFUL,
        "the same; absent counts only if final or deduplicated, else it raises",
        Expected.ANYTHING,
    ),
    Entry(
        "effect-ledger",
        "with_effect_ledger.py",
        CAREFUL,
        "the same; absent counts only if final or deduplicated, else it abstains",
        Expected.ANYTHING,
    ),
    Entry("counterfoil", None, None, "counterfoil adapter, as shipped", Expected.PASSES),
)


def rows_of(report: Mapping[str, object]) -> tuple[Row, ...]:
    """Read the rows of a report that ``counterfoil runtime --report`` wrote."""
    rows = report["rows"]
    assert isinstance(rows, list)
    return tuple(
        Row(row["set"], row["id"], row["verdict"] == "pass", effects_in(row["got"])) for row in rows
    )


def effects_in(got: str) -> int:
    """Read the number that a row's ``got`` begins with: ``no effect ...`` or ``2 effects ...``."""
    first = got.split(maxsplit=1)[0]
    return 0 if first == "no" else int(first)


def table(measured: Iterable[Measured]) -> Table:
    """Return the table, one line a run."""
    result = Table(show_lines=True)
    for column in ("library", "how it is used", *SETS):
        result.add_column(column)
    result.add_column("more than one effect in", no_wrap=True)
    result.add_column("expected")
    result.add_column("")
    for one in measured:
        result.add_row(
            f"{one.entry.library} {one.version or '(not installed here)'}",
            one.entry.configured,
            *(one.passed(name) for name in SETS),
            "\n".join(f"{row.set_name}/{row.id}" for row in one.doubled()) or "-",
            one.entry.expected,
            _verdict(one),
        )
    return result


def _verdict(one: Measured) -> str:
    if not one.holds():
        return "BROKEN"
    return "" if one.entry.expected is Expected.ANYTHING else "holds"


def versions(libraries: Sequence[str]) -> dict[str, str]:
    """Ask the field's interpreter which of the libraries it has, and in which version."""
    if not FIELD_PYTHON.exists():
        return {}
    code = (
        "import importlib.metadata as m, json, sys\n"
        "have = {d.name.lower(): d.version for d in m.distributions()}\n"
        "print(json.dumps({name: have[name] for name in sys.argv[1:] if name in have}))"
    )
    asked = subprocess.run(
        [FIELD_PYTHON, "-c", code, *libraries], check=True, capture_output=True, text=True
    )
    found: dict[str, str] = json.loads(asked.stdout)
    return found


def measure(entry: Entry, version: str | None, folder: Path) -> Measured:
    """Drive one entry through the sets. Ends the program where nothing could be judged."""
    if version is None:
        return Measured(entry, None)
    report = folder / "report.json"
    words = [str(OURS), "runtime", "--runtime", entry.command(), "--report", str(report)]
    sets = [word for name in SETS for word in ("--set", name)]
    ran = subprocess.run(
        [*words, *sets, "--jobs", "2", "--seed", SEED],
        check=False,
        capture_output=True,
        text=True,
    )
    if ran.returncode not in {0, 1}:
        print(f"{entry.library} was not judged: {ran.stderr.strip()}", file=sys.stderr)
        sys.exit(2)
    return Measured(entry, version, rows_of(json.loads(report.read_text("utf-8"))))


def main() -> int:
    """Measure all, print the table; return 1 if a set or a library is not as expected."""
    have = versions(sorted({entry.library for entry in ENTRIES if entry.adapter}))
    have["counterfoil"] = importlib.metadata.version("counterfoil")
    measured = []
    with tempfile.TemporaryDirectory() as folder:
        for entry in ENTRIES:
            print(f"driving {entry.library}: {entry.configured} ...", file=sys.stderr)
            measured.append(measure(entry, have.get(entry.library), Path(folder)))
    Console(width=WIDTH).print(table(measured))
    broken = [one.entry for one in measured if not one.holds()]
    for entry in broken:
        print(f"not as expected: {entry.library} ({entry.expected}), {entry.configured}")
    if not broken:
        print("the calibration holds")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
