"""Readers under test: good ones, bad ones, and ones that misbehave, each told apart."""

from __future__ import annotations

import sys
import textwrap
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import counterfoil
from counterfoil.conformance.manifest import SHIPPED, ReadCorpus, Vector, load_corpus
from counterfoil.conformance.process import CAPTURE_BYTES_MAX
from counterfoil.conformance.runtime import RuntimeNotStarted
from counterfoil.conformance.verifier import (
    Answer,
    disguised,
    read_answer,
    resolve_verifier,
    run_case,
    shuffled,
)

if TYPE_CHECKING:
    from counterfoil.conformance.report import Row

CORE = load_corpus(SHIPPED / "vectors-uncertain-effect")
HARD = load_corpus(SHIPPED / "vectors-uncertain-effect-hard")
CONTROLS = {vector.id for vector in CORE.vectors if vector.decision == "allow"}
SEED = 11
PRELUDE = f"""
    import hashlib, json, os, sys, time
    def say(decision, reason):
        print(json.dumps({{"decision": decision, "reason": reason}}))
        sys.exit(0 if decision == "allow" else 1)
    def own():
        sys.path.insert(0, {str(Path(counterfoil.__file__).parent.parent)!r})
        from counterfoil.reader.verdict import judge_bytes
        return judge_bytes(open(sys.argv[1], "rb").read())
"""


def reader(code: str) -> list[str]:
    """Return the command of a reader that is this code."""
    return [sys.executable, "-I", "-S", "-c", textwrap.dedent(PRELUDE) + textwrap.dedent(code)]


def run(code: str, corpus: ReadCorpus = CORE, *, limit_s: float = 30) -> list[Row]:
    command = reader(code)

    def one(vector: Vector) -> Row:
        return run_case(command, vector, corpus.name, seed=SEED, time_limit_s=limit_s)

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(one, shuffled(corpus.vectors, SEED)))


def one(code: str, case_id: str = "confirmed-at-once", *, limit_s: float = 30) -> Row:
    vector = next(one for one in (*CORE.vectors, *HARD.vectors) if one.id == case_id)
    return run_case(reader(code), vector, "set", seed=SEED, time_limit_s=limit_s)


def failing(rows: list[Row]) -> set[str]:
    return {row.id for row in rows if not row.passed}


# --- whole corpora -------------------------------------------------------------------------------


def test_a_reader_that_denies_what_it_should_allow_fails_exactly_the_controls() -> None:
    rows = run(
        """
        verdict = own()
        say("deny", "duplicate_effect" if verdict.decision == "allow" else verdict.reason)
        """
    )
    assert failing(rows) == CONTROLS


def test_a_reader_that_always_allows_fails_exactly_the_denials() -> None:
    rows = run("say('allow', 'effect_held')")
    assert failing(rows) == {vector.id for vector in CORE.vectors} - CONTROLS


@pytest.mark.parametrize("corpus", [CORE, HARD], ids=lambda one: one.name)
def test_no_reader_that_sees_the_path_only_can_score_half(corpus: ReadCorpus) -> None:
    # The path says nothing, so the best that can be done is to give one answer always.
    [(_, most)] = Counter(vector.expected for vector in corpus.vectors).most_common(1)
    assert 2 * most < len(corpus.vectors)


def test_a_reader_that_draws_its_answer_from_the_path_scores_below_half() -> None:
    rows = run(
        """
        from pathlib import PurePath
        what = " ".join([*PurePath(sys.argv[1]).parts, *os.listdir(), *os.environ.values()])
        allow = any(word in what for word in ("confirmed", "reconciled", "absent", "control"))
        say("allow", "effect_held") if allow else say("deny", "retry_after_unknown")
        """
    )
    assert sum(row.passed for row in rows) * 2 < len(rows)


def test_a_reader_that_knows_the_published_files_by_heart_finds_none_of_them() -> None:
    known = {sha256(vector.data).digest() for vector in (*CORE.vectors, *HARD.vectors)}
    found = [v.id for v in CORE.vectors if sha256(disguised(v, SEED)).digest() in known]
    assert found == []


def test_a_seed_decides_the_order_and_every_case_is_in_it() -> None:
    assert shuffled(CORE.vectors, 1) == shuffled(CORE.vectors, 1)
    assert shuffled(CORE.vectors, 1) != shuffled(CORE.vectors, 2)
    assert set(shuffled(CORE.vectors, 1)) == set(CORE.vectors)


# --- one case: what the reader gets --------------------------------------------------------------


def test_the_reader_gets_a_neutral_path_an_empty_stdin_and_a_folder_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "confirmed-at-once")
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    row = one(
        """
        told = sorted(name for name in os.environ if name.startswith(("PYTEST_", "GITHUB_")))
        print([sys.argv[1:], os.getcwd(), os.listdir(), sys.stdin.read(), told])
        """
    )
    arguments, folder, listed, stdin, told = eval(row.outputs[0].stdout)  # its own repr
    assert arguments == [f"{folder}/record.json", "--json"]
    assert (listed, stdin, told) == (["record.json"], "", [])
    assert "confirmed" not in folder
    assert not Path(folder).exists()


def test_a_program_and_a_script_named_from_here_are_found_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reader").write_text("#!/bin/sh\n")
    (tmp_path / "reader").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert resolve_verifier("./reader reader --strict other") == (
        f"{tmp_path}/reader",
        f"{tmp_path}/reader",
        "--strict",
        "other",
    )


def test_a_file_that_is_no_program_judges_nothing(tmp_path: Path) -> None:
    (tmp_path / "reader").write_bytes(b"\x7fELF nonsense")
    (tmp_path / "reader").chmod(0o755)
    with pytest.raises(RuntimeNotStarted, match="cannot be started: Exec format error"):
        run_case(resolve_verifier(f"{tmp_path}/reader"), CORE.vectors[0], "set", seed=1)


# --- one case: how it may misbehave --------------------------------------------------------------

ALLOW = b'{"decision": "allow", "reason": "effect_held"}'


@pytest.mark.parametrize(
    ("stdout", "exit_code", "answer"),
    [
        (ALLOW + b"\n", 0, Answer("allow", "effect_held")),
        (b'\n {"reason": "x",\n "decision": "deny", "more": [{}]} ', 1, Answer("deny", "x")),
        (b"", 2, Answer("malformed")),
        (b'{"error": "malformed_record"}\n', 2, Answer("malformed")),
        (b"malformed: line 1\n", 2, Answer("malformed")),
    ],
)
def test_an_answer_is_read(stdout: bytes, exit_code: int, answer: Answer) -> None:
    assert read_answer(stdout, exit_code) == answer


@pytest.mark.parametrize(
    ("stdout", "exit_code", "complaint"),
    [
        (b"", 0, "printed nothing; it has not answered"),
        (b"", 1, "exited with 1 and printed nothing; it has not answered"),
        (b"allow\n", 0, "printed no JSON object: 'allow'; it has not answered"),
        (b"{allow}", 0, "printed no JSON object: '{allow}'; it has not answered"),
        (ALLOW, -11, "was ended by signal 11: it has not answered"),
        (ALLOW, 1, "exited with 1 and printed allow, for which the exit is 0"),
        (ALLOW, 3, "exited with 3 and printed allow, for which the exit is 0"),
        (ALLOW, 2, "exited with 2 and printed a decision; 2 is for malformed records"),
        (ALLOW + b"\xff", 0, "printed bytes that are not UTF-8"),
        (ALLOW + b"\n" + ALLOW, 0, "printed more than one JSON object; one is due"),
        (b"{}{}", 2, "printed more than one JSON object; one is due"),
        (b"loading\n" + ALLOW, 0, "printed text around the JSON object; the object alone is due"),
        (ALLOW + b" done", 0, "printed text around the JSON object; the object alone is due"),
        (b"[" + ALLOW + b"]", 0, "printed text around the JSON object; the object alone is due"),
        (
            b'note: {"decision": "allow"}',
            2,
            "printed text around the JSON object; the object alone is due",
        ),
        (
            b'{"decision": "allow", "decision": "deny", "reason": ""}',
            0,
            "printed an object that holds a member name twice",
        ),
        (
            b'{"decision": "maybe", "reason": ""}',
            0,
            "printed the decision 'maybe', which is neither allow nor deny",
        ),
        (b'{"verdict": "allow"}', 0, "printed the decision None, which is neither allow nor deny"),
        (b'{"decision": "deny"}', 1, "printed a decision without a reason"),
        (b'{"a":' * 9999, 0, None),
    ],
)
def test_each_misbehaviour_has_its_own_sentence(
    stdout: bytes, exit_code: int, complaint: str | None
) -> None:
    answer = read_answer(stdout, exit_code)
    assert answer.got == "no answer"
    assert answer.complaint
    assert complaint in (None, answer.complaint)


def test_a_wrong_decision_and_a_wrong_reason_are_told_apart() -> None:
    row = one("say('deny', 'x')")
    assert row.findings == ("The reader answered deny x; expected allow effect_held.",)
    row = one("say('deny', 'x')", "two-effects-though-confirmed")
    assert row.findings == (
        "The decision deny is right and its reason is not: it said x; expected duplicate_effect.",
    )


def test_a_malformed_record_is_due_exit_2_and_no_decision() -> None:
    assert one("sys.exit(2)", "byte-order-mark").passed
    row = one("say('deny', 'malformed')", "byte-order-mark")
    assert row.findings == (
        "The reader answered deny malformed; expected malformed (exit 2 and no decision).",
    )


def test_a_crash_shows_its_traceback_and_counts_as_no_answer() -> None:
    row = one("raise RuntimeError('lost')")
    assert row.got == "no answer"
    assert row.findings == ("The reader exited with 1 and printed nothing; it has not answered.",)
    assert b"RuntimeError: lost" in row.outputs[0].stderr


def test_a_reader_that_hangs_with_a_grandchild_is_ended_with_it() -> None:
    row = one(
        """
        import subprocess
        for apart in (False, True):
            child = subprocess.Popen(["sleep", "60"], start_new_session=apart)
            print(child.pid, flush=True)
        print('{"decision": "allow", "reason": "effect_held"}', flush=True)
        time.sleep(60)
        """,
        limit_s=1,
    )
    assert row.findings == ("The reader did not finish within 1 s, and was ended.",)
    assert row.outputs[0].exit == "ended at the time limit"
    assert not [pid for pid in row.outputs[0].stdout.split()[:2] if is_running(int(pid))]


def test_what_a_reader_leaves_running_is_ended_and_reported() -> None:
    row = one(
        """
        import subprocess
        child = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL)
        print(child.pid, file=sys.stderr)
        say("allow", "effect_held")
        """
    )
    assert row.findings == ("The reader left processes running (1); they were ended.",)
    assert not is_running(int(row.outputs[0].stderr))


def is_running(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_output_without_end_is_capped_and_a_finding() -> None:
    row = one("print('x' * 3_000_000); say('allow', 'effect_held')")
    assert row.findings == (
        f"The reader printed more than {2 * CAPTURE_BYTES_MAX} bytes; one JSON object is due.",
    )
    assert len(row.outputs[0].stdout) < 3 * CAPTURE_BYTES_MAX
