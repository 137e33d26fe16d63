"""``counterfoil runtime`` and ``counterfoil owner`` as a user meets them."""

from __future__ import annotations

import http.client
import json
import re
import shlex
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = [sys.executable, "-m", "counterfoil"]
GOOD = f"{shlex.quote(sys.executable)} -m counterfoil.conformance.reference --policy reconcile"
BLIND = f"{shlex.quote(sys.executable)} -m counterfoil.conformance.reference --policy blind"


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, "runtime", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=cwd,
        check=False,
    )


def test_a_good_runtime_passes_the_core_set_and_the_exit_is_0() -> None:
    done = run("--runtime", GOOD, "--jobs", "4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "8 of 8 scenarios pass"
    assert "\x1b" not in done.stdout


def test_a_blind_runtime_fails_with_sentences_and_the_exit_is_1(tmp_path: Path) -> None:
    done = run(
        *("--runtime", BLIND, "--seed", "5", "--jobs", "4"),
        *("--report", str(tmp_path / "report.json"), "--junit", str(tmp_path / "junit.xml")),
    )
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "seed 5; repeat this run with --seed 5"
    assert "  - The owner holds 2 effects and the runtime reported committed; " in done.stdout
    assert "  - Call 2 carried token 1 when 2 was in force." in done.stdout
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["totals"]["fail"] >= 4
    assert all(row["findings"] for row in report["rows"] if row["verdict"] == "fail")
    suite = ET.parse(tmp_path / "junit.xml").getroot()[0]
    assert suite.get("failures") == str(report["totals"]["fail"])


def test_json_prints_the_report_alone() -> None:
    done = run("--runtime", GOOD, "--scenario", "confirmed", "--seed", "1", "--json")
    assert json.loads(done.stdout)["totals"] == {"scenarios": 1, "pass": 1, "fail": 0}


def test_the_list_names_every_scenario_of_a_set() -> None:
    done = run("--list", "--set", "zombie", "--set", "core")
    names = [line.split(":")[0] for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert names[0] == "core/commit-then-lost-reply-deduplicating"
    assert "zombie/dead-with-the-call-on-the-wire" in names


def test_scenarios_of_ones_own_are_run_from_a_folder(tmp_path: Path) -> None:
    from counterfoil import conformance

    members = dict(conformance.shipped_scenarios()[0]) | {"id": "mine"}
    (tmp_path / "mine.json").write_text(json.dumps(members))
    done = run("--runtime", GOOD, "--scenarios", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "own/mine" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "name the runtime: --runtime"),
        (["--runtime", "./nope"], "no program './nope' that can be run"),
        (["--runtime", GOOD, "--scenario", "confirmd"], "did you mean 'confirmed'?"),
        (["--runtime", GOOD, "--scenario", "zzz"], "--list shows them"),
        (["--runtime", GOOD, "--scenarios", "nowhere"], "nowhere: the document: no such folder"),
        (["--runtime", GOOD, "--set", "most"], "'most' is not one of"),
        (["--runtime", GOOD, "--set", "core", "--scenarios", "."], "use one of them"),
        (["--runtime", GOOD, "--report", "no/such/folder.json"], "make it first"),
        (["--runtime", GOOD, "--timeout", "0"], "0"),
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


def test_a_broken_scenario_file_is_named_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"id": "x"}')
    done = run("--runtime", GOOD, "--scenarios", str(tmp_path))
    assert done.returncode == 2
    assert "bad.json: /summary: is missing" in done.stderr


def test_the_owner_serves_one_scenario_by_hand_and_prints_each_call() -> None:
    with subprocess.Popen(
        [*PROGRAM, "owner", "commit-then-lost-reply"],
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline().startswith("commit-then-lost-reply: ")
        found = re.fullmatch(r"AEV_EFFECT_OWNER=http://(.*):(\d+)\n", owner.stdout.readline())
        assert found is not None
        connection = http.client.HTTPConnection(found[1], int(found[2]), timeout=10)
        connection.request("POST", "/effects", '{"idempotencyKey": "k", "args": {"b": 1, "a": 2}}')
        with pytest.raises(http.client.RemoteDisconnected):
            connection.getresponse()
        connection.close()
        line = owner.stdout.readline()
        assert 'call 1  key=k  args={"a": 2, "b": 1}  -> committed  -> closed without' in line
        owner.send_signal(signal.SIGINT)
        assert owner.stdout.readline().startswith("the owner holds 1 effect; accepted: ")
        assert owner.wait(10) == 0


def test_an_owner_for_no_scenario_is_one_line_and_exit_2() -> None:
    done = subprocess.run(
        [*PROGRAM, "owner", "zzz"], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no scenario 'zzz'" in done.stderr
