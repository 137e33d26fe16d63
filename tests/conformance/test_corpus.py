"""``counterfoil corpus`` as a user meets it."""

from __future__ import annotations

import json
import os
import pty
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

from counterfoil.conformance.manifest import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PYTHON = shlex.quote(sys.executable)
PROGRAM = [sys.executable, "-m", "counterfoil", "corpus"]
VERIFY = f"{PYTHON} -m counterfoil verify"
ALLOW = 'print(\'{"decision": "allow", "reason": "effect_held"}\')'
ALWAYS_ALLOWS = f"{PYTHON} -I -S -c {shlex.quote(ALLOW)}"
NAMES = ["vectors-uncertain-effect", "vectors-uncertain-effect-hard"]
CASES = {"vectors-uncertain-effect": 52, "vectors-uncertain-effect-hard": 187}


@pytest.fixture(scope="module", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let Python keep what it compiled: programs are started many times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("compiled")))
        yield


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
        check=False,
    )


@pytest.mark.parametrize("name", NAMES)
def test_our_reader_agrees_with_a_shipped_corpus_and_the_exit_is_0(name: str) -> None:
    done = run("--corpus", name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == (
        f"uncertain-effect/v1: our own reader answered {CASES[name]} of {CASES[name]} cases, "
        "0 disagreements"
    )
    assert "\x1b" not in done.stdout


# The hard corpus whole takes a while, so here are bytes, contracts and digests of it.
@pytest.mark.parametrize(
    ("name", "pattern", "count"), [(NAMES[0], "*", 52), (NAMES[1], "[b-d]*", 27)]
)
def test_our_command_agrees_as_anybodys_would(name: str, pattern: str, count: int) -> None:
    arguments = ("--corpus", name, "--filter", pattern, "--jobs", "4", "--json")
    done = run(*arguments, "--verifier", VERIFY)
    report = json.loads(done.stdout)
    assert done.returncode == 0, report["failures"]
    assert report["totals"] == {
        "vectors": count,
        "conform": count,
        "fail": 0,
        "suiteRefusals": 0,
    }


def test_a_reader_that_differs_is_exit_1_with_reports(tmp_path: Path) -> None:
    done = run(
        *("--verifier", ALWAYS_ALLOWS, "--filter", "*confirmed*", "--seed", "3"),
        *("--report", str(tmp_path / "report.json"), "--junit", str(tmp_path / "junit.xml")),
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "seed 3; repeat this run with --seed 3"
    assert "  - The reader answered allow effect_held; expected deny " in done.stdout
    assert "record.json --json\n  exit 0\n    stdout:\n" in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert set(report) >= {"suite", "rail", "verifier", "corpusDigest", "totals", "failures"}
    assert report["verifier"]["vectorsExecuted"] == report["totals"]["vectors"] == 4
    assert report["totals"]["fail"] == len(report["failures"]) == 3
    row = report["rows"][0]
    assert set(row) >= {"id", "expected", "got", "verdict", "duration_s"}
    assert (row["id"], row["verdict"]) == ("confirmed-at-once", "pass")
    suite = ET.parse(tmp_path / "junit.xml").getroot()[0]
    assert suite.get("failures") == "3"


def test_a_seed_repeats_the_order() -> None:
    arguments = ("--filter", "resend-*", "--seed")
    ids = [
        [line.split()[1] for line in run(*arguments, seed).stdout.splitlines()[1:-1]]
        for seed in ("1", "1", "2")
    ]
    assert ids[0] == ids[1]
    assert ids[0] != ids[2]
    assert sorted(ids[0]) == sorted(ids[2])


def test_fail_fast_stops_at_the_first_failure() -> None:
    done = run("--verifier", f"{PYTHON} -I -S -c pass", "--fail-fast", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["totals"]["vectors"] == 1


def test_the_list_names_every_case_with_its_answer() -> None:
    done = run("--list")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == CASES["vectors-uncertain-effect"]
    assert done.stdout.startswith("timeout-reconciled-as-absent: allow effect_held: control: ")


def test_a_reader_runs_where_it_is_told_to(tmp_path: Path) -> None:
    code = "import os, sys; sys.exit(os.getcwd())"
    reader = f"{PYTHON} -I -S -c {shlex.quote(code)}"
    done = run("--verifier", reader, "--fail-fast", "--cwd", str(tmp_path))
    assert f"      {tmp_path}\n" in done.stdout


def test_a_published_folder_is_judged_by_its_place(tmp_path: Path) -> None:
    shutil.copytree(SHIPPED / "vectors-uncertain-effect", tmp_path / "theirs")
    done = run("--corpus", "theirs", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pass  theirs/confirmed-at-once" in done.stdout


def test_a_broken_folder_is_named_fault_by_fault_and_the_exit_is_2(tmp_path: Path) -> None:
    folder = shutil.copytree(SHIPPED / "vectors-uncertain-effect", tmp_path / "theirs")
    (folder / "cases" / "confirmed-at-once" / "record.json").unlink()
    (folder / "cases" / "refused-definitely" / "record.json").write_text("{}")
    done = run("--corpus", str(folder))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.splitlines()[1:] == [
        "  - confirmed-at-once: record.json cannot be read: No such file or directory",
        "  - refused-definitely: the sha256 of record.json is another",
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--corpus", "vectors-uncertain"], "did you mean 'vectors-uncertain-effect'?"),
        (["--corpus", "zzz"], "shipped are vectors-uncertain-effect, "),
        (["--corpus", "."], "MANIFEST.json cannot be read: No such file"),
        (["--filter", "zzz*"], "matches 'zzz*'; --list shows them"),
        (["--verifier", "./nope"], "no program './nope' that can be run"),
        (["--verifier", ""], "the command is empty"),
        (["--verifier", "'"], "cannot be split"),
        (["--report", "no/such/folder.json"], "make it first"),
        (["--timeout", "0"], "0"),
        (["--cwd", "nowhere"], "nowhere"),
    ],
)
def test_where_nothing_can_be_judged_one_line_says_why_and_the_exit_is_2(
    arguments: list[str], says: str, tmp_path: Path
) -> None:
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert says in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_on_a_terminal_the_run_is_shown_as_it_goes() -> None:
    screen, terminal = pty.openpty()
    with subprocess.Popen([*PROGRAM, "--filter", "confirmed-*"], stdout=terminal) as program:
        os.close(terminal)
        shown = b""
        try:
            while data := os.read(screen, 65536):
                shown += data
        except OSError:  # the other side is closed
            pass
        os.close(screen)
    assert program.returncode == 0
    assert b"\x1b[" in shown
    assert b"2 of 2 cases, 0 disagreements" in shown
