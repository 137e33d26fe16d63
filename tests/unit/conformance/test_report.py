"""Reports show what a runtime printed without letting it act."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

from counterfoil.conformance.report import (
    Output,
    Row,
    failure,
    junit_xml,
    printable,
    report_json,
    table,
    total,
)

HOSTILE = b"\x1b[31m[/red]\x00\xff ok\nsecond"
GOOD = Row("confirmed", "core", "1 effect and committed", "1 effect and committed", 0.5, ())
BAD = Row(
    "lost",
    "field",
    "1 effect and committed",
    "2 effects and committed",
    1.25,
    ("The owner holds 2 effects <b>.", "The runtime exited with 3."),
    outputs=(Output(1, "3", HOSTILE, b""),),
)


def test_a_failure_is_sentences_and_one_block() -> None:
    text = failure(BAD, ["./adapter", "--fast"])
    assert text.splitlines() == [
        "field/lost fails:",
        "  - The owner holds 2 effects <b>.",
        "  - The runtime exited with 3.",
        "  command: ./adapter --fast SCENARIO.json",
        "  worker 1: exit 3",
        "    stdout:",
        r"      \x1b[31m[/red]\x00\xff ok",
        "      second",
        "    stderr: (empty)",
    ]


def test_no_character_that_a_terminal_obeys_is_shown() -> None:
    shown = printable(HOSTILE + "\u202e\r\t\u2028".encode())
    assert all(one.isprintable() or one == "\n" for one in shown)


def test_a_long_output_is_shown_by_its_end() -> None:
    row = Row("x", "core", "", "", 0, ("bad",), outputs=(Output(1, "1", b"a\n" * 100, b""),))
    assert "[70 lines before]" in failure(row, ["x"])


def test_the_table_has_a_line_a_row_and_the_total_counts_them() -> None:
    lines = table([GOOD, BAD]).splitlines()
    assert lines[0].startswith("pass  core/confirmed ")
    assert lines[1].startswith("fail  field/lost ")
    assert total([GOOD, BAD]) == "1 of 2 scenarios pass"


def test_the_json_report_has_the_rows_and_the_seed() -> None:
    found = json.loads(report_json([GOOD, BAD], command=["./adapter"], seed=7))
    assert found["seed"] == 7
    assert found["totals"] == {"scenarios": 2, "pass": 1, "fail": 1}
    assert [row["verdict"] for row in found["rows"]] == ["pass", "fail"]
    assert set(found["rows"][0]) >= {"id", "expected", "got", "verdict", "duration_s", "findings"}


def test_the_junit_file_is_xml_whatever_was_printed() -> None:
    root = ET.fromstring(junit_xml([GOOD, BAD], command=["./adapter"]))
    assert [suite.get("name") for suite in root] == ["core", "field"]
    assert [suite.get("failures") for suite in root] == ["0", "1"]
    found = root.find(".//failure")
    assert found is not None
    assert found.get("message") == "The owner holds 2 effects <b>."
