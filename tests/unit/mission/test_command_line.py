"""``counterfoil mission``: exit codes, and one clear line for what cannot be used."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from mission_desk import ACTION, CONTRACT, DIGEST, command_of

from counterfoil.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

GOOD = json.dumps({"now": "10", "command": command_of("startRun")})


class Shell:
    """Runs the command line in this process, on files in one folder."""

    def __init__(
        self,
        folder: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        (folder / "contract.json").write_text(json.dumps(CONTRACT))

    def run(self, *arguments: str) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["counterfoil", "mission", *arguments])
        code = main()
        shown = self._capsys.readouterr()
        return code, shown.out, shown.err

    def replay(self, log: str | bytes, *options: str) -> tuple[int, str, str]:
        path = self.folder / "log.jsonl"
        path.write_bytes(log if isinstance(log, bytes) else log.encode())
        return self.run("replay", str(self.folder / "contract.json"), str(path), *options)


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Shell:
    return Shell(tmp_path, monkeypatch, capsys)


def test_an_accepted_log_exits_with_0(shell: Shell) -> None:
    code, out, err = shell.replay(GOOD)
    assert (code, err) == (0, "")
    assert "events     1\n" in out


def test_a_refused_line_is_reported_and_the_replay_goes_on(shell: Shell) -> None:
    third = json.dumps({"now": "11", "command": command_of("grant")})
    code, out, err = shell.replay(f"{GOOD}\n{GOOD}\n{third}", "--json")
    shown = json.loads(out)
    assert (code, err) == (1, "")
    assert [(r["line"], r["code"]) for r in shown["rejected"]] == [(2, "run_exists")]
    assert set(shown["rejected"][0]) == {"line", "code", "detail"}
    assert shown["state"]["events"] == "2"


def test_without_json_the_refusals_are_listed(shell: Shell) -> None:
    code, out, _ = shell.replay(f"{GOOD}\n{GOOD}\n")
    assert code == 1
    assert "  line 2: run_exists: " in out


def test_blank_lines_are_skipped_and_counted(shell: Shell) -> None:
    code, out, _ = shell.replay(f"\n  \r\n{GOOD}\r\n\n{GOOD}\n", "--json")
    assert code == 1
    assert json.loads(out)["rejected"][0]["line"] == 5


def test_a_line_ends_at_a_newline_only(shell: Shell) -> None:
    named = command_of("startRun", runId="a\u2028b\u0085c")
    line = json.dumps({"now": "10", "command": named}, ensure_ascii=False)
    code, out, _ = shell.replay(line, "--json")
    assert (code, list(json.loads(out)["state"]["runs"])) == (0, ["a\u2028b\u0085c"])


BAD_LINES: list[tuple[str | bytes, str]] = [
    ("{", ""),
    ("[]", ""),
    (b"\xff", ""),
    ("{}", "/now"),
    ('{"now": "10"}', "/command"),
    ('{"now": "10", "command": []}', "/command"),
    ('{"now": "10", "command": {}}', "/command/type"),
    ('{"now": 10, "command": {"type": "startRun", "runId": "r"}}', "/now"),
    ('{"now": "1e1", "command": {"type": "startRun", "runId": "r"}}', "/now"),
    ('{"now": "1", "command": {"type": "startRun", "runId": ""}}', "/command/runId"),
    ('{"now": "1", "command": {"type": "startRun", "runId": "r"}, "by": 1}', "/by"),
    ('{"now": "1", "now": "1", "command": {"type": "startRun", "runId": "r"}}', "/now"),
    (
        json.dumps({"now": "1", "command": command_of("admit", amount="01")}),
        "/command/amount",
    ),
]


@pytest.mark.parametrize(("line", "path"), BAD_LINES, ids=lambda value: ascii(value)[:40])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_line_that_cannot_be_used_exits_with_2_and_says_where(
    shell: Shell, line: str | bytes, path: str, options: tuple[str, ...]
) -> None:
    bad = line if isinstance(line, bytes) else line.encode()
    code, out, err = shell.replay(GOOD.encode() + b"\n\n" + bad + b"\n" + GOOD.encode(), *options)
    assert (code, out) == (2, "")
    assert err.startswith("counterfoil: ")
    assert f"line 3: {path or 'the document'}: " in err
    assert err.count("\n") == 1


def test_lines_after_the_last_one_asked_for_are_not_read(shell: Shell) -> None:
    code, out, _ = shell.replay(GOOD.encode() + b"\n\xff\n", "--json", "--until", "1")
    assert (code, json.loads(out)["state"]["events"]) == (0, "1")


def test_the_last_line_asked_for_is_read(shell: Shell) -> None:
    assert shell.replay(f"{GOOD}\n{{", "--until", "2")[0] == 2


@pytest.mark.parametrize("until", ["0", "-1", "x"])
def test_a_line_that_cannot_be_meant_exits_with_2(shell: Shell, until: str) -> None:
    code, out, _ = shell.replay(GOOD, "--until", until)
    assert (code, out) == (2, "")


def test_a_contract_that_cannot_be_used_exits_with_2(shell: Shell) -> None:
    (shell.folder / "contract.json").write_text(json.dumps({**CONTRACT, "budget": "-1"}))
    code, out, err = shell.replay(GOOD)
    assert (code, out) == (2, "")
    assert "contract.json: /budget: " in err


@pytest.mark.parametrize("missing", ["contract.json", "log.jsonl"])
def test_a_file_that_cannot_be_read_exits_with_2(shell: Shell, missing: str) -> None:
    names = {name: str(shell.folder / name) for name in ("contract.json", "log.jsonl")}
    (shell.folder / "log.jsonl").write_text(GOOD)
    names[missing] += ".gone\x1b"
    code, out, err = shell.run("replay", names["contract.json"], names["log.jsonl"])
    assert (code, out) == (2, "")
    assert err.startswith("counterfoil: cannot read ")
    assert "\x1b" not in err


def test_a_folder_is_no_file(shell: Shell) -> None:
    folder = str(shell.folder)
    assert shell.run("replay", folder, folder)[:2] == (2, "")
    assert shell.run("digest", folder)[:2] == (2, "")


def test_hostile_text_in_a_log_does_not_reach_the_terminal(shell: Shell) -> None:
    line = json.dumps({"now": "1", "command": command_of("admit", runId="\x1b[2J\u202e")})
    code, out, _ = shell.replay(line)
    assert code == 1
    assert "\x1b" not in out
    assert "\u202e" not in out


def digest_of(shell: Shell, action: Any) -> tuple[int, str, str]:
    path = shell.folder / "action.json"
    path.write_text(json.dumps(action))
    return shell.run("digest", str(path))


def test_the_digest_of_an_action_is_printed(shell: Shell) -> None:
    assert digest_of(shell, ACTION) == (0, DIGEST + "\n", "")


def test_what_is_no_action_has_no_digest(shell: Shell) -> None:
    code, out, err = digest_of(shell, {**ACTION, "more": 1})
    assert (code, out) == (2, "")
    assert "action.json: /more: " in err
