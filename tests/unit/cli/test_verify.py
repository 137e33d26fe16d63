"""``counterfoil verify``: what it prints, what it exits with, and that streams stay small."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from typing import IO, TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from counterfoil import limits
from counterfoil.cli import verify_help
from counterfoil.cli.verify import run

if TYPE_CHECKING:
    from pathlib import Path

CONTRACT = "https://probityai.github.io/agent-evidence-vectors/predicate/v1/uncertain-effect"
DIGEST = "sha256:" + "a1" * 32
COUNTERFOIL = [sys.executable, "-m", "counterfoil", "verify"]


def record(outcome: str = "committed", reply: str = "confirmed", **more: Any) -> dict[str, Any]:
    return {
        "contractId": CONTRACT,
        "operation": {"id": "o", "action": "a", "idempotencyKey": "k", "argsDigest": DIGEST},
        "effectOwner": {"id": "p", "deduplicatesByKey": False, "keyRetentionSeconds": None},
        "attempts": [
            {
                "attempt": 1,
                "idempotencyKey": "k",
                "argsDigest": DIGEST,
                "dispatchedAt": "2026-03-01T10:00:00Z",
                "reply": reply,
            }
        ],
        "reconciliations": [],
        "ownerEffects": [{"id": "e"}],
        "reported": {"outcome": outcome},
        **more,
    }


ALLOWED = json.dumps(record())
DENIED = json.dumps(record("not_run"))
ADVISED = json.dumps(record(ownerEffects=[]))
MALFORMED = '{"contractId": 1, "contractId": 1}'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "allowed.json": ALLOWED,
        "denied.json": DENIED,
        "advised.json": ADVISED,
        "malformed.json": MALFORMED,
    }.items():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


# --- one record ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code", "decision", "reason"),
    [
        ("allowed", 0, "allow", "effect_held"),
        ("advised", 0, "allow", "effect_held"),
        ("denied", 1, "deny", "outcome_disagrees_with_authority"),
    ],
)
@pytest.mark.parametrize("flag_first", [True, False])
@pytest.mark.usefixtures("folder")
def test_one_record_is_answered_by_one_object(
    capsys: pytest.CaptureFixture[str],
    name: str,
    code: int,
    decision: str,
    reason: str,
    flag_first: bool,
) -> None:
    argv = [f"{name}.json", "--json"]
    assert run(argv[::-1] if flag_first else argv) == code
    (answer,) = lines(capsys)
    assert (answer["decision"], answer["reason"]) == (decision, reason)
    assert {"path", "line"}.isdisjoint(answer)
    assert [a["code"] for a in answer["advisories"]] == ["ledger_disagrees"] * (name == "advised")


def test_a_malformed_record_has_an_error_a_path_and_no_decision(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([str(folder / "malformed.json"), "--json"]) == 2
    assert lines(capsys) == [
        {
            "error": "malformed_record",
            "path": "/contractId",
            "detail": "the name stands twice in its object",
        }
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("allowed", "allow effect_held: consistent with at most one effect; the outcome is "),
        ("denied", "deny outcome_disagrees_with_authority: the runtime reported not_run"),
        ("advised", "(advisories: ledger_disagrees)"),
        ("malformed", "malformed /contractId: the name stands twice"),
    ],
)
def test_without_json_one_readable_line_says_it(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, text: str
) -> None:
    run([str(folder / f"{name}.json")])
    (line,) = capsys.readouterr().out.splitlines()
    assert text in line


def test_explain_adds_the_members_the_advisories_and_the_trail(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["--explain", str(folder / "denied.json")]) == 1
    out = capsys.readouterr().out
    assert "  about /reported/outcome\n" in out
    assert '  2026-03-01T10:00:00Z  attempt 1 is sent under "k": confirmed  /attempts/0\n' in out
    run(["--explain", str(folder / "advised.json")])
    assert "  advisory ledger_disagrees: " in capsys.readouterr().out


def test_explain_with_json_adds_a_timeline(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["--explain", "--json", str(folder / "allowed.json")])
    (answer,) = lines(capsys)
    assert [moment["member"] for moment in answer["timeline"]] == ["/attempts/0"]


@pytest.mark.parametrize(("name", "code"), [("allowed", 0), ("advised", 1), ("denied", 1)])
def test_strict_exits_1_where_there_is_an_advisory(folder: Path, name: str, code: int) -> None:
    assert run(["--strict", "--json", str(folder / f"{name}.json")]) == code


@pytest.mark.parametrize("size", [0, 1])
def test_a_record_longer_than_the_limit_is_malformed(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    size: int,
) -> None:
    monkeypatch.setattr(limits, "RECORD_BYTES_MAX", len(ALLOWED) - size)
    assert run([str(folder / "allowed.json"), "--json"]) == 2 * size
    assert ("error" in lines(capsys)[0]) == bool(size)


# --- several -------------------------------------------------------------------------------------


def test_several_paths_get_a_line_each_in_order_with_path_and_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "many.jsonl").write_text(f"{ALLOWED}\n\n{DENIED}", "utf-8")
    assert run(["many.jsonl", "malformed.json", "allowed.json", "--json"]) == 2
    answers = lines(capsys)
    assert [(a["path"], a["line"], a.get("reason")) for a in answers] == [
        ("many.jsonl", 1, "effect_held"),
        ("many.jsonl", 2, None),
        ("many.jsonl", 3, "outcome_disagrees_with_authority"),
        ("malformed.json", 1, None),
        ("allowed.json", 1, "effect_held"),
    ]
    assert answers[1] == {
        "path": "many.jsonl",
        "line": 2,
        "error": "malformed_record",
        "detail": "empty: there is no JSON value",
        "pointer": "",
    }
    assert answers[3]["pointer"] == "/contractId"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{ALLOWED}\n{ALLOWED}\n", 0),
        (f"{ALLOWED}\r\n{ALLOWED}", 0),
        (f"{DENIED}\n{ALLOWED}", 1),
        (f"{DENIED}\n{MALFORMED}\n{ALLOWED}", 2),
        (f"{ALLOWED}\n\n", 2),
    ],
)
def test_a_stream_exits_with_the_worst_of_its_answers(folder: Path, text: str, code: int) -> None:
    (folder / "many.jsonl").write_text(text, "utf-8", newline="")
    assert run(["many.jsonl", "--json"]) == code


def test_a_folder_is_read_sorted_with_its_subfolders(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "b").mkdir()
    (folder / "b" / "z.json").write_text(ALLOWED, "utf-8")
    (folder / "b" / "a.jsonl").write_text(ALLOWED, "utf-8")
    (folder / "notes.txt").write_text("no record", "utf-8")
    assert run([".", "--json"]) == 2
    assert [answer["path"] for answer in lines(capsys)] == [
        "./advised.json",
        "./allowed.json",
        "./b/a.jsonl",
        "./b/z.json",
        "./denied.json",
        "./malformed.json",
    ]


def test_a_folder_with_one_record_still_says_which(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one.json").write_text(ALLOWED, "utf-8")
    assert run([str(tmp_path), "--json"]) == 0
    assert lines(capsys)[0]["line"] == 1


@pytest.mark.usefixtures("folder")
def test_readable_lines_of_a_stream_say_where_they_are_from(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(["allowed.json", "malformed.json"])
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("allowed.json:1: allow ")
    assert second.startswith("malformed.json:1: malformed ")


class Input:
    """Standard input that holds bytes."""

    def __init__(self, data: bytes) -> None:
        self.buffer: IO[bytes] = io.BytesIO(data)


def test_a_dash_reads_lines_from_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Input(f"{ALLOWED}\n{DENIED}\n".encode()))
    assert run(["-", "--json"]) == 1
    assert [(a["path"], a["line"]) for a in lines(capsys)] == [("-", 1), ("-", 2)]


def test_a_line_longer_than_the_limit_is_malformed_and_the_next_is_judged(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = len(ALLOWED)
    monkeypatch.setattr(limits, "RECORD_BYTES_MAX", longest)
    text = f"{ALLOWED}\n{ALLOWED} \n{'[' * 3_000_000}\n{ALLOWED}\n{ALLOWED} "
    (folder / "many.jsonl").write_text(text, "utf-8")
    assert run(["many.jsonl", "--json"]) == 2
    answers = lines(capsys)
    assert [answer["line"] for answer in answers] == [1, 2, 3, 4, 5]
    assert ["error" in answer for answer in answers] == [False, True, True, False, True]
    assert answers[2]["detail"] == f"longer than {longest} bytes"


# --- input that cannot be used -------------------------------------------------------------------


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert run(list(argv)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("counterfoil verify: ")
    return line


def test_a_missing_file_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(capsys, str(tmp_path / "none.json"))
    assert "none.json: no such file" in line
    assert "check the path" in line


def test_a_folder_without_records_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "holds no .json or .jsonl file" in refused(capsys, str(tmp_path))


def test_a_stream_without_records_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.jsonl").touch()
    assert "holds no record" in refused(capsys, str(tmp_path / "empty.jsonl"))


def test_a_file_that_cannot_be_opened_is_one_clear_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "not a directory" in refused(capsys, str(folder / "allowed.json" / "x.json"))


@pytest.mark.parametrize("argv", [[], ["--json"], ["--"]])
def test_without_a_path_the_line_says_what_to_name(
    capsys: pytest.CaptureFixture[str], argv: list[str]
) -> None:
    assert "name a record" in refused(capsys, *argv)


@pytest.mark.parametrize("option", ["--yaml", "-x", "--json=1", "--jso", "---", "-\x1b[2J"])
def test_an_unknown_option_is_one_clear_line(
    capsys: pytest.CaptureFixture[str], option: str
) -> None:
    line = refused(capsys, option, "record.json")
    assert "no option" in line
    assert line.isprintable()


@pytest.mark.parametrize("path", ["", "nul\x00byte", "lone\ud800surrogate", "a\nb\x1b[0m"])
def test_a_strange_path_is_one_clear_line(capsys: pytest.CaptureFixture[str], path: str) -> None:
    assert refused(capsys, path).isprintable()


@pytest.mark.usefixtures("folder")
def test_what_was_judged_before_stays_and_the_rest_is_judged_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["allowed.json", "none.json", "denied.json", "--json"]) == 2
    captured = capsys.readouterr()
    assert [json.loads(x)["path"] for x in captured.out.splitlines()] == [
        "allowed.json",
        "denied.json",
    ]
    assert captured.err.count("\n") == 1


def test_after_two_dashes_a_name_may_begin_with_one(folder: Path) -> None:
    (folder / "--json").write_text(DENIED, "utf-8")
    assert run(["--json", "--", "--json"]) == 1


# --- a hostile record on a terminal --------------------------------------------------------------

HOSTILE = "\x1b[2J\x1b]0;x\x07\r\n\u202e\u200b<script>[/x]\x9b31m"


@pytest.mark.parametrize("flags", [[], ["--explain"], ["--json"], ["--json", "--explain"]])
def test_text_of_a_record_never_acts_on_a_terminal(
    folder: Path, capsys: pytest.CaptureFixture[str], flags: list[str]
) -> None:
    values = record()
    values["attempts"][0] |= {"worker": HOSTILE, "fencingToken": 1, "idempotencyKey": HOSTILE}
    (folder / f"a{HOSTILE[:4]}.json").write_text(json.dumps(values), "utf-8")
    (folder / "b.json").write_text('{"' + "\x7f\u202e" + '": NaN}', "utf-8")
    run([*flags, f"a{HOSTILE[:4]}.json", "b.json"])
    out = capsys.readouterr().out
    assert "\\u001b" in out
    assert all(line.isprintable() for line in out.splitlines())
    if "--json" in flags:
        assert out.isascii()


def test_a_name_that_is_no_utf_8_is_printed_as_json_that_others_can_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = os.fsdecode(b"\xff.json")
    (folder / name).write_text(ALLOWED, "utf-8")
    assert run([name, "allowed.json", "--json"]) == 0
    assert lines(capsys)[0]["path"] == "\\udcff.json"


def test_letters_that_the_terminal_cannot_show_are_escaped(folder: Path) -> None:
    values = record(contractId="Zoë 漢")
    (folder / "r.json").write_text(json.dumps(values), "utf-8")
    done = subprocess.run(
        [*COUNTERFOIL, "r.json"],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.stdout == (
        b'deny contract_id_unknown: contractId is "Zo\\xeb \\u6f22", not uncertain-effect/v1\n'
    )


# --- whole processes -----------------------------------------------------------------------------


def test_the_command_answers_as_a_harness_calls_it(folder: Path) -> None:
    done = subprocess.run(
        [*COUNTERFOIL, "denied.json", "--json"], capture_output=True, check=False, cwd=folder
    )
    assert done.returncode == 1
    assert json.loads(done.stdout)["reason"] == "outcome_disagrees_with_authority"
    assert done.stderr == b""


def test_answers_come_as_lines_do_while_the_input_stays_open() -> None:
    with subprocess.Popen(
        [*COUNTERFOIL, "-", "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(ALLOWED.encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["line"] == 1
        process.stdin.write(DENIED.encode() + b"\n")
        process.stdin.close()
        assert json.loads(process.stdout.readline())["line"] == 2
        assert process.wait() == 1


def test_a_reader_that_leaves_ends_it_quietly(tmp_path: Path) -> None:
    (tmp_path / "many.jsonl").write_text(f"{DENIED}\n" * 3000, "utf-8")
    with subprocess.Popen(
        [*COUNTERFOIL, "many.jsonl", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 141


PEAK = """
import resource, sys
from counterfoil.cli.verify import run
code = run(["-", "--json"])
print(code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)
"""


def peak_kib(block: bytes, times: int) -> int:
    """Return the most memory that judging this input took; the input comes through a pipe."""
    with subprocess.Popen(
        [sys.executable, "-c", PEAK],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        stdin = process.stdin
        assert stdin is not None

        def feed() -> None:
            for _ in range(times):
                stdin.write(block)
            stdin.close()

        feeder = threading.Thread(target=feed)
        feeder.start()
        said = process.stderr.read().split()
        feeder.join()
    assert said[0] in {b"0", b"1", b"2"}
    return int(said[1])


def test_memory_does_not_grow_with_a_stream() -> None:
    padded = {**record(), "notices": [{"text": "x" * 60_000}]}
    block = (json.dumps(padded) + "\n").encode() * 16
    few, many = peak_kib(block, 2), peak_kib(block, 52)
    assert len(block) * 52 > 50_000_000
    assert many < few + 8_000


def test_a_line_that_never_ends_is_not_held() -> None:
    assert peak_kib(b"x" * 1_000_000, 300) < 250_000


# --- help ----------------------------------------------------------------------------------------


def test_the_help_documents_options_examples_and_exit_codes() -> None:
    done = CliRunner().invoke(verify_help.command, ["--help"])
    assert done.exit_code == 0
    for part in ("--json", "--explain", "--strict", "Exit codes:", "Examples:", "pointer"):
        assert part in done.output


def test_the_click_face_does_the_same_work(folder: Path) -> None:
    done = CliRunner().invoke(
        verify_help.command, ["--json", str(folder / "denied.json")], standalone_mode=False
    )
    assert done.return_value == 1
    assert json.loads(done.output)["decision"] == "deny"
