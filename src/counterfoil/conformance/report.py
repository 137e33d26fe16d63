"""Rows and what is made of them: a text table, a JSON report, JUnit XML. Pure but for no writing.

Whatever a runtime printed is shown with its control characters spelled out: text from a process
under test never acts on a terminal.
"""

from __future__ import annotations

import json
import shlex
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from counterfoil.conformance.scenario import Json

SHOWN_LINES_MAX = 30
"""Lines of each output stream that a failure shows: its end, where a traceback speaks."""


@dataclass(frozen=True, slots=True)
class Output:
    """What one worker printed and how it ended; ``worker`` is 0 where there can be only one."""

    worker: int
    exit: str
    stdout: bytes
    stderr: bytes


@dataclass(frozen=True, slots=True)
class Row:
    """One scenario's result. It passes when there is no finding; a note is no finding."""

    id: str
    set_name: str
    expected: str
    got: str
    duration_s: float
    findings: tuple[str, ...]
    notes: tuple[str, ...] = ()
    outputs: tuple[Output, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    @property
    def verdict(self) -> str:
        """``pass`` or ``fail``."""
        return "pass" if self.passed else "fail"

    def to_json(self) -> dict[str, Json]:
        """Return the row as the report has it."""
        row: dict[str, Json] = {
            "id": self.id,
            "set": self.set_name,
            "expected": self.expected,
            "got": self.got,
            "verdict": self.verdict,
            "duration_s": round(self.duration_s, 3),
            "findings": list(self.findings),
            "notes": list(self.notes),
        }
        if not self.passed:
            row["outputs"] = [
                {
                    "worker": output.worker,
                    "exit": output.exit,
                    "stdout": printable(output.stdout),
                    "stderr": printable(output.stderr),
                }
                for output in self.outputs
            ]
        return row


def total(rows: Sequence[Row]) -> str:
    """Say the total in one line."""
    passed = sum(row.passed for row in rows)
    return f"{passed} of {len(rows)} scenarios pass"


def table(rows: Iterable[Row]) -> str:
    """Return the rows as lines of text, one each."""
    return "\n".join(line(row) for row in rows)


def line(row: Row) -> str:
    """Return one row as one line."""
    name = f"{row.set_name}/{row.id}"
    return f"{row.verdict}  {name:<62} {row.duration_s:6.2f} s  {row.got}"


def failure(row: Row, command: Sequence[str], arguments: str = "SCENARIO.json") -> str:
    """Return a failure as sentences, with command, exit, stdout and stderr in one block."""
    lines = [f"{row.set_name}/{row.id} fails:"]
    lines += [f"  - {printable_text(sentence)}" for sentence in row.findings]
    lines += [f"  note: {note}" for note in row.notes]
    lines.append(f"  command: {printable_text(shlex.join(command))} {arguments}")
    for output in row.outputs:
        who = f"worker {output.worker}: " if output.worker else ""
        lines.append(f"  {who}exit {output.exit}")
        for name, data in (("stdout", output.stdout), ("stderr", output.stderr)):
            shown = printable(data).splitlines()
            if len(shown) > SHOWN_LINES_MAX:
                before = len(shown) - SHOWN_LINES_MAX
                shown = [f"[{before} lines before]", *shown[before:]]
            lines.append(f"    {name}:" if shown else f"    {name}: (empty)")
            lines += [f"      {text}" for text in shown]
    return "\n".join(lines)


def report_json(rows: Sequence[Row], *, command: Sequence[str], seed: int) -> str:
    """Return the JSON report, ended by a line feed."""
    report: dict[str, Json] = {
        "suite": "uncertain-effect/v1",
        "runtime": list(command),
        "seed": seed,
        "totals": {
            "scenarios": len(rows),
            "pass": sum(row.passed for row in rows),
            "fail": sum(not row.passed for row in rows),
        },
        "rows": [row.to_json() for row in rows],
    }
    return json.dumps(report, indent=2) + "\n"


def junit_xml(
    rows: Sequence[Row], *, command: Sequence[str], arguments: str = "SCENARIO.json"
) -> bytes:
    """Return the rows as JUnit XML, one test case a row, one suite a set."""
    root = ET.Element("testsuites", name="uncertain-effect/v1")
    for set_name in dict.fromkeys(row.set_name for row in rows):
        of_set = [row for row in rows if row.set_name == set_name]
        suite = ET.SubElement(
            root,
            "testsuite",
            name=set_name,
            tests=str(len(of_set)),
            failures=str(sum(not row.passed for row in of_set)),
            errors="0",
            time=f"{sum(row.duration_s for row in of_set):.3f}",
        )
        for row in of_set:
            case = ET.SubElement(
                suite,
                "testcase",
                classname=f"uncertain-effect.{set_name}",
                name=row.id,
                time=f"{row.duration_s:.3f}",
            )
            if not row.passed:
                first = printable_text(row.findings[0])
                found = ET.SubElement(case, "failure", message=first)
                found.text = failure(row, command, arguments)
    ET.indent(root)
    xml: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return xml + b"\n"


def printable(data: bytes) -> str:
    """Return a process's output as text that can be shown: controls and bad bytes spelled out."""
    return printable_text(data.decode("utf-8", errors="backslashreplace"))


def printable_text(text: str) -> str:
    """Spell out every character that is not printable, line feeds aside."""
    if text.isprintable():
        return text
    return "".join(
        one if one.isprintable() or one == "\n" else one.encode("unicode_escape").decode()
        for one in text
    )
