"""``counterfoil verify`` as a process: exit codes, outputs, streams, and text that stays inert."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from . import oracle
from .trails import (
    ONE_OF_EACH,
    OTHER_DIGEST,
    OTHER_KEY,
    attempt,
    effects,
    full,
    record,
    said,
    two,
    with_value,
)
from .verify_process import COMMAND, refused, verify, write

if TYPE_CHECKING:
    from pathlib import Path

ALLOWED = said(full())
DENIED = said(two(0, 10))
MALFORMED = said(with_value(full(), "/attempts/0/dispatchedAt", "noon"))
LENT = record(  # allowed, with an advisory
    [attempt(1, 0, "confirmed", idempotencyKey=OTHER_KEY, argsDigest=OTHER_DIGEST)],
    "committed",
    ownerEffects=effects(1),
)

# --- one record --------------------------------------------------------------------------------


def test_an_allowed_record_exits_0_with_one_object(tmp_path: Path) -> None:
    run = verify(write(tmp_path / "record.json", ALLOWED), "--json")
    assert (run.code, run.err) == (0, b"")
    [answer] = run.objects
    assert (answer["decision"], answer["reason"]) == ("allow", "effect_held")
    assert answer["advisories"] == []


def test_a_denied_record_exits_1_with_the_reason_and_its_members(tmp_path: Path) -> None:
    run = verify("--json", write(tmp_path / "record.json", DENIED))
    assert (run.code, run.err) == (1, b"")
    [answer] = run.objects
    assert (answer["decision"], answer["reason"]) == ("deny", "retry_after_unknown")
    assert set(answer["members"]) == {"/attempts/0", "/attempts/1"}


def test_a_malformed_record_exits_2_with_no_decision(tmp_path: Path) -> None:
    run = verify(write(tmp_path / "record.json", MALFORMED), "--json")
    assert run.code == 2
    [answer] = run.objects
    assert set(answer) == {"error", "path", "detail"}
    assert (answer["error"], answer["path"]) == ("malformed_record", "/attempts/0/dispatchedAt")


def test_a_malformed_document_has_the_empty_pointer(tmp_path: Path) -> None:
    run = verify(write(tmp_path / "record.json", b""), "--json")
    assert run.code == 2
    assert [one["path"] for one in run.objects] == [""]


@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (ALLOWED, 0, ["allow", "effect_held"]),
        (DENIED, 1, ["deny", "retry_after_unknown"]),
        (MALFORMED, 2, ["malformed", "/attempts/0/dispatchedAt"]),
    ],
    ids=["allowed", "denied", "malformed"],
)
def test_without_json_a_record_is_answered_by_one_line(
    tmp_path: Path, data: bytes, code: int, words: list[str]
) -> None:
    run = verify(write(tmp_path / "record.json", data))
    assert run.code == code
    assert len(run.lines) == 1
    assert all(word in run.lines[0] for word in words)


def test_a_record_may_have_any_name_and_white_space_over_many_lines(tmp_path: Path) -> None:
    spread = json.dumps(full(), indent=2).encode() + b"\n"
    assert verify(write(tmp_path / "record", spread), "--json").answers == ["effect_held"]


def test_explain_adds_the_trail_in_order_and_keeps_the_answer(tmp_path: Path) -> None:
    path = write(tmp_path / "record.json", DENIED)
    plain, explained = verify(path, "--json"), verify(path, "--json", "--explain")
    assert explained.code == plain.code == 1
    [before], [after] = plain.objects, explained.objects
    assert {name: after[name] for name in before} == before
    assert len(verify(path, "--explain").lines) > 1


# --- strict ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "code", "strict_code"),
    [(ALLOWED, 0, 0), (said(LENT), 0, 1), (DENIED, 1, 1), (MALFORMED, 2, 2)],
    ids=["allowed", "allowed with an advisory", "denied", "malformed"],
)
def test_strict_exits_1_where_an_allowed_record_has_an_advisory(
    tmp_path: Path, data: bytes, code: int, strict_code: int
) -> None:
    path = write(tmp_path / "record.json", data)
    plain, strict = verify(path, "--json"), verify(path, "--json", "--strict")
    assert (plain.code, strict.code) == (code, strict_code)
    assert plain.objects == strict.objects


def test_an_advisory_is_said_with_its_code_and_its_members(tmp_path: Path) -> None:
    path = write(tmp_path / "record.json", said(LENT))
    [answer] = verify(path, "--json").objects
    assert answer["decision"] == "allow"
    assert [one["code"] for one in answer["advisories"]] == ["foreign_arguments"]
    assert answer["advisories"][0]["members"]
    assert b"foreign_arguments" in verify(path, "--explain").out


# --- several records ---------------------------------------------------------------------------


def test_each_reason_is_answered_in_order_with_the_path_and_the_line(tmp_path: Path) -> None:
    lines = b"".join(said(one) + b"\n" for one in ONE_OF_EACH.values())
    path = write(tmp_path / "trails.jsonl", lines)
    run = verify(path, "--json")
    assert run.code == 1
    assert run.answers == [*oracle.REASONS, "effect_held"]
    assert [one["line"] for one in run.objects] == list(range(1, 12))
    assert {one["path"] for one in run.objects} == {str(path)}


def test_several_paths_are_answered_in_the_order_given(tmp_path: Path) -> None:
    write(tmp_path / "b.json", ALLOWED)
    write(tmp_path / "a.json", DENIED)
    write(tmp_path / "c.jsonl", ALLOWED + b"\n" + DENIED + b"\n")
    run = verify("b.json", "a.json", "c.jsonl", "--json", cwd=tmp_path)
    assert run.code == 1
    assert [one["path"] for one in run.objects] == ["b.json", "a.json", "c.jsonl", "c.jsonl"]
    assert [one["decision"] for one in run.objects] == ["allow", "deny", "allow", "deny"]


@pytest.mark.parametrize(
    ("kinds", "code"),
    [
        ([ALLOWED, ALLOWED], 0),
        ([ALLOWED, DENIED, ALLOWED], 1),
        ([MALFORMED, ALLOWED], 2),
        ([MALFORMED, DENIED], 2),
        ([DENIED, MALFORMED, ALLOWED], 2),
    ],
)
def test_the_worst_answer_makes_the_exit_code(kinds: list[bytes], code: int) -> None:
    assert verify("-", stdin=b"\n".join(kinds)).code == code


def test_a_malformed_record_among_others_names_its_pointer_beside_the_path(tmp_path: Path) -> None:
    path = write(tmp_path / "trails.jsonl", ALLOWED + b"\n" + MALFORMED + b"\n" + DENIED)
    run = verify(path, "--json")
    assert run.answers == ["effect_held", "malformed_record", "retry_after_unknown"]
    middle = run.objects[1]
    assert (middle["path"], middle["line"]) == (str(path), 2)
    assert middle["pointer"] == "/attempts/0/dispatchedAt"
    assert "decision" not in middle


def test_a_folder_is_read_sorted_with_its_subfolders_and_only_its_records(tmp_path: Path) -> None:
    for name in ("b.json", "a/z.json", "a/y/x.jsonl", "c.jsonl"):
        write(tmp_path / "trails" / name, ALLOWED)
    for name in ("README.md", "a.json.bak", "json", "d.JSONP"):
        write(tmp_path / "trails" / name, b"not a record")
    run = verify("trails", "--json", cwd=tmp_path)
    assert run.code == 0
    paths = [one["path"] for one in run.objects]
    assert paths == sorted(paths)
    assert {path.replace(os.sep, "/") for path in paths} == {
        "trails/a/y/x.jsonl",
        "trails/a/z.json",
        "trails/b.json",
        "trails/c.jsonl",
    }


def test_a_folder_with_a_loop_and_a_folder_named_like_a_record_is_read_once(
    tmp_path: Path,
) -> None:
    trails = tmp_path / "trails"
    write(trails / "a.json", ALLOWED)
    write(trails / "folder.json" / "b.json", ALLOWED)
    (trails / "loop").symlink_to(trails)
    run = verify("trails", "--json", cwd=tmp_path)
    assert run.code == 0
    assert [one["path"] for one in run.objects] == ["trails/a.json", "trails/folder.json/b.json"]


def test_a_record_in_a_folder_that_cannot_be_read_is_not_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "a.json", ALLOWED)
    (tmp_path / "b.json").symlink_to(tmp_path / "nowhere")
    run = verify(tmp_path, "--json")
    assert (run.code, run.answers) == (2, ["effect_held"])
    assert b"b.json" in run.err


def test_a_pipe_in_a_folder_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    write(tmp_path / "a.json", ALLOWED)
    os.mkfifo(tmp_path / "pipe.json")
    run = verify(tmp_path, "--json", seconds=10)
    assert run.answers == ["effect_held"]


def test_a_pipe_that_is_named_is_read(tmp_path: Path) -> None:
    """As in `verify <(producer)`."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    feeder = threading.Thread(target=pipe.write_bytes, args=(ALLOWED,))
    feeder.start()
    run = verify(pipe, "--json")
    feeder.join()
    assert (run.code, run.answers) == (0, ["effect_held"])


# --- lines -------------------------------------------------------------------------------------

LINES: dict[str, tuple[bytes, list[str]]] = {
    "a last line without LF": (ALLOWED + b"\n" + DENIED, ["effect_held", "retry_after_unknown"]),
    "a blank line between": (
        ALLOWED + b"\n\n" + DENIED + b"\n",
        ["effect_held", "malformed_record", "retry_after_unknown"],
    ),
    "a blank line first": (b"\n" + ALLOWED + b"\n", ["malformed_record", "effect_held"]),
    "a line of spaces": (b" \t\n" + ALLOWED, ["malformed_record", "effect_held"]),
    "CR before LF is white space": (
        ALLOWED + b"\r\n" + ALLOWED + b"\r\n",
        ["effect_held", "effect_held"],
    ),
    "CR alone ends no line": (ALLOWED + b"\r" + ALLOWED, ["malformed_record"]),
    "bytes that are not UTF-8 spoil one line": (
        b"\xff\n" + ALLOWED + b"\n\xed\xa0\x80\n" + ALLOWED,
        ["malformed_record", "effect_held", "malformed_record", "effect_held"],
    ),
    "a record over two lines": (
        ALLOWED.replace(b", ", b",\n", 1) + b"\n" + ALLOWED,
        ["malformed_record", "malformed_record", "effect_held"],
    ),
    "a mark at the start": (
        b"\xef\xbb\xbf" + ALLOWED + b"\n" + ALLOWED,
        ["malformed_record", "effect_held"],
    ),
    "two records on one line": (ALLOWED + b" " + ALLOWED + b"\n", ["malformed_record"]),
    "deep nesting spoils one line": (
        b"[" * 100_000 + b"\n" + ALLOWED,
        ["malformed_record", "effect_held"],
    ),
}


@pytest.mark.parametrize("name", LINES)
def test_a_record_is_a_line_and_each_line_gets_its_answer(name: str, tmp_path: Path) -> None:
    data, answers = LINES[name]
    from_file = verify(write(tmp_path / "trails.jsonl", data), "--json")
    from_stream = verify("-", "--json", stdin=data)
    assert from_file.answers == from_stream.answers == answers
    expected = 2 if "malformed_record" in answers else int("retry_after_unknown" in answers)
    assert from_file.code == from_stream.code == expected


def test_only_lf_ends_a_line() -> None:
    """Other separators are text inside a string, and no end of anything."""
    text = "\u2028 \u2029 \u0085 \x7f"
    line = json.dumps({**full(), "note": text}, ensure_ascii=False).encode()
    assert verify("-", "--json", stdin=line + b"\n" + line).answers == ["effect_held"] * 2


def test_many_malformed_lines_between_good_ones_keep_their_numbers() -> None:
    stream = b"\n".join([ALLOWED, b"{", b"", b"null", ALLOWED, b"\x00", DENIED])
    run = verify("-", "--json", stdin=stream)
    assert [one["line"] for one in run.objects if "decision" in one] == [1, 5, 7]
    assert [one["line"] for one in run.objects if "error" in one] == [2, 3, 4, 6]


# --- what cannot be read -----------------------------------------------------------------------


def test_a_missing_file_is_one_clear_line_and_exit_2(tmp_path: Path) -> None:
    refused(verify(tmp_path / "nowhere.json"), "nowhere.json")
    refused(verify(tmp_path / "nowhere.json", "--json"), "nowhere.json")


def test_a_missing_file_beside_a_good_one_is_not_passed_over(tmp_path: Path) -> None:
    good = write(tmp_path / "record.json", ALLOWED)
    run = verify(good, tmp_path / "nowhere.json", "--json")
    assert run.code == 2
    assert b"nowhere.json" in run.err


def test_a_folder_without_a_record_is_one_clear_line_and_exit_2(tmp_path: Path) -> None:
    write(tmp_path / "README.md", b"nothing here")
    refused(verify(tmp_path, "--json"), tmp_path.name)


def test_no_input_at_all_is_one_clear_line_and_exit_2(tmp_path: Path) -> None:
    refused(verify())
    refused(verify("-", "--json", stdin=b""))
    refused(verify(write(tmp_path / "empty.jsonl", b""), "--json"), "empty.jsonl")


@pytest.mark.parametrize("option", ["--jsn", "--json=yes", "-x", "--Strict"])
def test_an_unknown_option_is_one_clear_line_and_exit_2(tmp_path: Path, option: str) -> None:
    refused(verify(write(tmp_path / "record.json", ALLOWED), option), option)


# --- the streams -------------------------------------------------------------------------------


def test_a_reader_that_goes_away_ends_it_quietly() -> None:
    """The first line is taken, then the pipe is closed while thousands of answers are due."""
    child = subprocess.Popen(
        [*COMMAND, "-", "--json"],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None

    def feed(stream: Any) -> None:
        with contextlib.suppress(BrokenPipeError):
            for _ in range(4000):
                stream.write(ALLOWED + b"\n")
        stream.close()

    feeder = threading.Thread(target=feed, args=(child.stdin,))
    feeder.start()
    assert child.stdout.read(1) == b"{"
    child.stdout.close()
    complaint = child.stderr.read()
    code = child.wait(timeout=60)
    feeder.join()
    child.stderr.close()
    assert b"Traceback" not in complaint
    assert b"Exception ignored" not in complaint
    assert code not in {0, 1}, "what was not said must not pass for an answer"


def test_an_output_that_is_full_is_never_a_pass_nor_the_inputs_fault(tmp_path: Path) -> None:
    path = write(tmp_path / "record.json", ALLOWED)
    with open("/dev/full", "wb") as full_device:
        run = subprocess.run(
            [*COMMAND, str(path), "--json"],
            stdout=full_device,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    assert run.returncode not in {0, 1}
    [line] = run.stderr.decode().splitlines()
    assert "record.json" not in line, line


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-"])
def test_a_stream_that_is_closed_is_never_an_answer(tmp_path: Path, closed: str) -> None:
    """Nothing is judged, or nobody can be told: exit 0 and exit 1 would both be a lie."""
    named = {"<&-": "-", ">&-": "record.json", "2>&-": "nowhere.json"}[closed]
    write(tmp_path / "record.json", ALLOWED)
    run = subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *COMMAND, named, "--json"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert run.returncode not in {0, 1}, run
    assert b"Traceback" not in run.stdout + run.stderr, run


def peak_kb(lines: int) -> int:
    """Return the peak memory, in KiB, of judging so many lines of 10 kB from a stream."""
    line = said({**full(), "note": "x" * 10_000}) + b"\n"
    child = subprocess.Popen(
        [*COMMAND, "-", "--json"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert child.stdin is not None
    for _ in range(lines):
        child.stdin.write(line)
    child.stdin.close()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return usage.ru_maxrss


def test_memory_stays_flat_over_a_stream_of_50_megabytes() -> None:
    assert peak_kb(4500) - peak_kb(50) < 8 * 1024
