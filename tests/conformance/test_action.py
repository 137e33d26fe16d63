"""The GitHub Action: its own steps, run as the runner would, with the interpreter at hand."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from counterfoil.conformance import generate
from counterfoil.conformance.action_summary import summary
from counterfoil.conformance.corpus import core
from counterfoil.conformance.loading import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
PYTHON = shlex.quote(sys.executable)
ALLOW = 'print(\'{"decision": "allow", "reason": "effect_held"}\')'
GOOD_READER = f"{PYTHON} -m counterfoil verify"
BAD_READER = f"{PYTHON} -I -S -c {shlex.quote(ALLOW)}"
RUNTIME = f"{PYTHON} -m counterfoil.conformance.reference --policy"

# Makes what `-m venv` would make, notes what `-m pip` was asked for, and is Python otherwise.
INTERPRETER = f"""#!/bin/sh
if [ "$1 $2" = "-m venv" ]; then
  mkdir -p "$3/bin" && cp "$0" "$3/bin/python"
  printf '#!/bin/sh\\nexec {sys.executable} -m counterfoil "$@"\\n' > "$3/bin/counterfoil"
  chmod +x "$3/bin/counterfoil"
elif [ "$1 $2" = "-m pip" ]; then
  echo "$@" >> "$RUNNER_TEMP/pip.log"
else
  exec {sys.executable} "$@"
fi
"""


# --- action.yml, in the subset of YAML in which it is written ------------------------------------

Node = dict[str, "Node"] | list["Node"] | str


def parse(lines: list[str]) -> Node:
    """Read mappings, lists of mappings and one-line texts; refuse whatever else there is."""
    node, rest = _block(lines, 0)
    assert rest == [], rest
    return node


def _block(lines: list[str], indent: int) -> tuple[Node, list[str]]:
    if lines[0][indent:].startswith("- "):
        entries: list[Node] = []
        while lines and lines[0].startswith(" " * indent + "- "):
            lines = [" " * (indent + 2) + lines[0][indent + 2 :], *lines[1:]]
            entry, lines = _block(lines, indent + 2)
            entries.append(entry)
        return entries, lines
    members: dict[str, Node] = {}
    while lines and not lines[0].startswith(" " * (indent + 1)) and _depth(lines[0]) == indent:
        found = re.fullmatch(r" *([A-Za-z_-]+):(?: (.+))?", lines[0])
        assert found, lines[0]
        name, text = found[1], found[2]
        assert name not in members, name
        lines = lines[1:]
        if text == ">-":
            folded = []
            while lines and _depth(lines[0]) > indent:
                folded.append(lines[0].strip())
                lines = lines[1:]
            members[name] = " ".join(folded)
        elif text is None:
            members[name], lines = _block(lines, _depth(lines[0]))
        else:
            assert not re.search(r": | #|^[>|&*!{\[]", text), text
            members[name] = text[1:-1] if text[0] == text[-1] == '"' else text
    return members, lines


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


ACTION = parse((ROOT / "action.yml").read_text().splitlines())


def at(*path: str | int) -> Node:
    node = ACTION
    for step in path:
        node = node[step]  # type: ignore[call-overload,index]
    return node


@pytest.fixture(scope="module", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Let Python keep what it compiled: programs are started many times."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        patch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path_factory.mktemp("compiled")))
        yield


# --- a run of it ---------------------------------------------------------------------------------


@dataclass
class Ran:
    """What one run of the action left."""

    exit: int
    log: str
    summary: str
    outputs: dict[str, str]


def act(folder: Path, **given: str) -> Ran:
    """Run every `run:` step in turn; stop at the first that fails."""
    interpreter = folder / "python"
    interpreter.write_text(INTERPRETER)
    interpreter.chmod(0o755)
    temp, output, note = folder / "temp", folder / "output", folder / "summary"
    temp.mkdir()
    output.touch()
    note.touch()
    values = {f"inputs.{name}": text for name, text in defaults().items()}
    values |= {f"inputs.{name.replace('_', '-')}": text for name, text in given.items()}
    values["steps.python.outputs.python-path"] = str(interpreter)
    done = subprocess.CompletedProcess([], 0, "", "")
    log = ""
    steps = at("runs", "steps")
    assert isinstance(steps, list)
    for step in steps:
        assert isinstance(step, dict)
        if "run" not in step:
            continue
        assert step["shell"] == "bash"
        assert isinstance(step["env"], dict)
        environment = {name: filled(text, values) for name, text in step["env"].items()}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", str(step["run"])],
            cwd=folder,
            env={
                "PATH": "/usr/bin:/bin",
                "RUNNER_TEMP": str(temp),
                "GITHUB_ACTION_PATH": str(ROOT),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(note),
                **inherited(),
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        log += done.stdout + done.stderr
        if done.returncode:
            break
    lines = output.read_text().splitlines()
    outputs = dict(line.split("=", 1) for line in lines)
    return Ran(done.returncode, log, note.read_text(), outputs)


def inherited() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if name.startswith("PYTHON")}


def defaults() -> dict[str, str]:
    inputs = at("inputs")
    assert isinstance(inputs, dict)
    return {name: str(at("inputs", name, "default")) for name in inputs}


def filled(text: Node, values: dict[str, str]) -> str:
    """Put values in for expressions; an expression that is not known fails the test."""
    assert isinstance(text, str)
    return re.sub(r"\$\{\{ (\S+) \}\}", lambda found: values[found[1]], text)


def test_the_inputs_and_outputs_are_those_of_the_page() -> None:
    assert set(defaults()) == {
        *("runtime", "verifier", "corpus", "scenarios", "python-version", "report-path"),
    }
    assert set(at("outputs")) == {"result", "report", "junit"}
    assert at("outputs", "junit", "value") == "${{ steps.judge.outputs.junit }}"


def test_no_text_of_a_user_is_part_of_a_script() -> None:
    steps = at("runs", "steps")
    assert isinstance(steps, list)
    scripts = [str(step["run"]) for step in steps if isinstance(step, dict) and "run" in step]
    assert scripts
    assert not [script for script in scripts if "${{" in script]


def test_it_installs_an_interpreter_of_its_own_and_leaves_the_users_alone() -> None:
    assert str(at("runs", "steps", 0, "uses")).startswith("actions/setup-python@")
    assert at("runs", "steps", 0, "with", "update-environment") == "false"


def test_a_good_reader_is_green_with_a_table_and_a_junit_file(tmp_path: Path) -> None:
    ran = act(tmp_path, verifier=GOOD_READER, corpus=corpus_of(tmp_path, "confirmed*"))
    assert ran.exit == 0, ran.log
    assert ran.outputs["result"] == "pass"
    assert "## uncertain-effect/v1: pass" in ran.summary
    assert "| pass | confirmed-at-once | allow effect&#95;held | allow effect&#95;held |" in (
        ran.summary
    )
    suite = ET.parse(tmp_path / ran.outputs["junit"]).getroot()[0]
    assert suite.get("failures") == "0"
    assert (tmp_path / "temp" / "pip.log").read_text().split()[-1] == str(ROOT)


def test_a_bad_reader_is_red_and_its_failures_come_first(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, "confirmed*")
    ran = act(tmp_path, verifier=BAD_READER, corpus=corpus, report_path="out/mine.json")
    assert ran.exit == 1
    assert ran.outputs == {
        "result": "fail",
        "report": "out/mine.json",
        "junit": "out/mine.xml",
    }
    assert "1 of 2 pass" in ran.summary
    first = next(line for line in ran.summary.splitlines() if line.startswith(("| pass", "| fail")))
    assert first.startswith("| fail | confirmed-reported-as-not-run |")
    assert (tmp_path / "out" / "mine.xml").exists()


def corpus_of(folder: Path, pattern: str) -> str:
    """Write a small corpus in the published layout: some cases of the shipped one."""
    whole = core.corpus()
    some = tuple(case for case in whole.cases if fnmatch(case.id, pattern))
    generate.write(replace(whole, cases=some), folder / "corpora")
    return f"corpora/{whole.name}"


def scenarios_of(folder: Path, *ids: str) -> str:
    (folder / "scenarios").mkdir()
    for scenario_id in ids:
        data = (SHIPPED / "core" / f"{scenario_id}.json").read_bytes()
        (folder / "scenarios" / f"{scenario_id}.json").write_bytes(data)
    return "scenarios"


def test_a_good_runtime_is_green(tmp_path: Path) -> None:
    folder = scenarios_of(tmp_path, "confirmed", "commit-then-lost-reply")
    ran = act(tmp_path, runtime=f"{RUNTIME} reconcile", scenarios=folder)
    assert ran.exit == 0, ran.log
    assert "2 of 2 pass" in ran.summary


def test_a_bad_runtime_is_red(tmp_path: Path) -> None:
    folder = scenarios_of(tmp_path, "confirmed", "commit-then-lost-reply")
    ran = act(tmp_path, runtime=f"{RUNTIME} blind", scenarios=folder)
    assert ran.exit == 1
    assert ran.outputs["result"] == "fail"
    assert "1 of 2 pass" in ran.summary
    assert "The owner holds 2 effects and the runtime reported committed" in ran.summary


def test_sets_are_named_with_spaces_between_and_a_wrong_one_is_red(tmp_path: Path) -> None:
    ran = act(tmp_path, runtime=f"{RUNTIME} blind", scenarios="core most")
    assert ran.exit == 2
    assert "'most' is not one of" in ran.log


@pytest.mark.parametrize("given", [{}, {"runtime": "true", "verifier": "true"}])
def test_a_runtime_or_a_verifier_must_be_named_and_not_both(
    tmp_path: Path, given: dict[str, str]
) -> None:
    ran = act(tmp_path, **given)
    assert ran.exit == 2
    assert "::error::give this action a runtime or a verifier" in ran.log
    assert ran.outputs == {"result": "fail"}


def test_where_nothing_was_judged_it_is_red_and_an_old_report_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "conformance-report.json").write_text('{"rows": [{"verdict": "pass"}]}')
    ran = act(tmp_path, verifier="./nope")
    assert ran.exit == 2
    assert ran.outputs["result"] == "fail"
    assert "nothing was judged" in ran.summary
    assert "no program './nope'" in ran.log


def test_a_hostile_command_is_one_argument_and_runs_nothing(tmp_path: Path) -> None:
    ran = act(tmp_path, verifier="true; touch owned #", corpus=corpus_of(tmp_path, "confirmed*"))
    assert ran.exit == 2
    assert not (tmp_path / "owned").exists()


def test_text_of_a_process_under_test_is_never_markup() -> None:
    row = {"verdict": "fail", "id": "x", "findings": ["<img src=x> | [a](b)\n`c` \x1b[31m"]}
    cell = summary({"seed": 1, "rows": [row]}, 1).splitlines()[-1]
    assert cell.count("|") == 7
    assert not {"<", "[", "`", "\x1b"} & set(cell)
