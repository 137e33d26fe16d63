"""The step summary of the GitHub Action: a report of ``corpus`` or ``runtime`` as Markdown.

Run as ``python -m counterfoil.conformance.action_summary REPORT.json EXIT``. What came from a
process under test is spelled in character references: in a summary it is text and never markup.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.conformance.report import printable_text

if TYPE_CHECKING:
    from counterfoil.conformance.scenario import Json

ROWS_MAX = 100
"""Rows of the table; failures come first, and the report holds all of them."""

CELL_CHARACTERS_MAX = 300
_PLAIN = frozenset(" -.,:;/()'")


def summary(report: Json, exit_code: int) -> str:
    """Return the summary of a report, or of a run that left none (None)."""
    if not isinstance(report, dict):
        return (
            "## uncertain-effect/v1: nothing was judged\n\n"
            f"The program ended with exit {exit_code}; the step's log says why.\n"
        )
    rows = [row for row in _listed(report.get("rows")) if isinstance(row, dict)]
    rows.sort(key=lambda row: row.get("verdict") == "pass")
    passed = sum(row.get("verdict") == "pass" for row in rows)
    lines = [
        f"## uncertain-effect/v1: {'pass' if exit_code == 0 else 'fail'}",
        "",
        f"{passed} of {len(rows)} pass; seed {_cell(report.get('seed'))}.",
        "",
        "| verdict | case | expected | got | seconds | found |",
        "| --- | --- | --- | --- | ---: | --- |",
    ]
    for row in rows[:ROWS_MAX]:
        found = " ".join(str(sentence) for sentence in _listed(row.get("findings")))
        cells = [row.get(name) for name in ("verdict", "id", "expected", "got", "duration_s")]
        lines.append("| " + " | ".join(_cell(value) for value in (*cells, found)) + " |")
    if len(rows) > ROWS_MAX:
        lines += ["", f"{len(rows) - ROWS_MAX} more rows are in the report."]
    return "\n".join(lines) + "\n"


def _listed(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _cell(value: Json) -> str:
    text = printable_text(str(value))[:CELL_CHARACTERS_MAX]
    return "".join(
        one if (one.isascii() and one.isalnum()) or one in _PLAIN else f"&#{ord(one)};"
        for one in text
    )


def main(argv: list[str]) -> int:
    """Print the summary of the report that ``argv`` names, beside the exit code of its run."""
    path, exit_code = Path(argv[0]), int(argv[1])
    report: Json = json.loads(path.read_bytes()) if path.exists() else None
    print(summary(report, exit_code), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
