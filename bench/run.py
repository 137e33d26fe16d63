"""Runs every benchmark and prints one table: what was measured, the ratio, the limit."""

from __future__ import annotations

import importlib
import platform
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table


def main() -> int:
    """Print the table; return 1 if a ratio is beyond its limit."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("bench_*.py"))
    table = Table(title=f"Python {platform.python_version()}, {platform.machine()}")
    for column in ("what", "measured", "limit", ""):
        table.add_column(column)
    beyond = False
    for name in names:
        print(f"measuring {name} ...", file=sys.stderr)
        for what, measured, limit in importlib.import_module(f"bench.{name}").ratios():
            at_least = what.startswith("at least: ")
            held = measured >= limit if at_least else measured <= limit
            beyond = beyond or not held
            sign = ">=" if at_least else "<="
            table.add_row(
                what.removeprefix("at least: "),
                f"{measured:.2f}",
                f"{sign} {limit:g}",
                "" if held else "beyond",
            )
    Console(width=120).print(table)
    return 1 if beyond else 0


if __name__ == "__main__":
    sys.exit(main())
