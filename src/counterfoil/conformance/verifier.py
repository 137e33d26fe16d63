"""Runs a reader that is not ours over a corpus, and says where it differs.

The command is run as ``<verifier> record.json --json``. It prints one JSON object with ``decision``
and ``reason`` and exits 0 for allow, 1 for deny; where a record is malformed it exits 2 and prints
no decision (seed, "Running it"; conformance, "A reader under test"). It cannot answer from what
surrounds the record: the name, the folder and the order say nothing, and ids are respelled.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.conformance.corpus.building import MALFORMED
from counterfoil.conformance.manifest import RECORD, SUITE
from counterfoil.conformance.process import CAPTURE_BYTES_MAX, Process
from counterfoil.conformance.report import Output, Row, printable_text
from counterfoil.conformance.respell_record import respelled
from counterfoil.conformance.runtime import RuntimeNotStarted, resolve_command
from counterfoil.reader.verdict import Malformed, judge_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from counterfoil.conformance.manifest import ReadCorpus, Vector
    from counterfoil.conformance.scenario import Json

TIME_LIMIT_S = 90.0
"""Seconds a reader has for a case, as in the sister suites."""

ARGUMENTS = f"{RECORD} --json"
NO_ANSWER = "no answer"
EXIT_OF = {"allow": 0, "deny": 1}
EXIT_MALFORMED = 2

_WITHHELD = ("AEV_", "COUNTERFOIL_", "GITHUB_", "ACTIONS_", "PYTEST_")
_QUOTED_MAX = 200  # characters of a reader's output that are quoted in a sentence
_TRIES_MAX = 100  # places at which an object is looked for in text that is none
_LOOK_S = 0.2  # how often the order to stop is looked at


def resolve_verifier(text: str) -> tuple[str, ...]:
    """Split a command as a shell would; make absolute what it names in the working folder.

    The reader runs in another folder, so a program or a file that is named relative to this one
    would not be found there. Raises ``RuntimeNotStarted`` for no such program.
    """
    program, *words = resolve_command(text)
    found = shutil.which(program)
    assert found is not None
    return (
        str(Path(found).absolute()),
        *(str(Path(word).absolute()) if _is_file(word) else word for word in words),
    )


def _is_file(word: str) -> bool:
    try:
        return Path(word).is_file()
    except (OSError, ValueError):
        return False


def shuffled(vectors: Sequence[Vector], seed: int) -> tuple[Vector, ...]:
    """Return the cases in the order in which this seed has them judged."""
    dice = random.Random(f"{seed}:order")  # noqa: S311 - it must repeat, not surprise
    return tuple(dice.sample(list(vectors), len(vectors)))


def disguised(vector: Vector, seed: int) -> bytes:
    """Return a case's record with the ids inside respelled as this seed has it."""
    return respelled(vector.data, random.Random(f"{seed}:{vector.id}"))  # noqa: S311


@dataclass(frozen=True, slots=True)
class Answer:
    """What a reader answered: allow, deny or malformed; else what was wrong with its output.

    ``complaint`` is a predicate ("printed nothing"), so that a name can go before it.
    """

    decision: str | None = None
    reason: str | None = None
    complaint: str | None = None

    @property
    def got(self) -> str:
        """The answer in the words of ``Vector.expected``."""
        if self.complaint is not None or self.decision is None:
            return NO_ANSWER
        return MALFORMED if self.decision == MALFORMED else f"{self.decision} {self.reason}"


def judge_in_process(vector: Vector, corpus_name: str, *, seed: int) -> Row:
    """Put a case before our own reader."""
    began_s = time.monotonic()
    verdict = judge_bytes(disguised(vector, seed))
    if isinstance(verdict, Malformed):
        answer = Answer(MALFORMED)
    else:
        answer = Answer(verdict.decision, verdict.reason)
    return _row(vector, corpus_name, answer, time.monotonic() - began_s)


def run_case(
    command: Sequence[str],
    vector: Vector,
    corpus_name: str,
    *,
    seed: int,
    time_limit_s: float = TIME_LIMIT_S,
    folder: Path | None = None,
    stop: threading.Event | None = None,
) -> Row:
    """Put a case before a command.

    ``folder`` is the reader's working folder; without it, the fresh one that holds the record.
    ``stop`` ends the case early, and the row with it is worth nothing. Raises ``RuntimeNotStarted``
    if the command cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="case-", ignore_cleanup_errors=True) as scratch:
        record = Path(scratch) / RECORD
        record.write_bytes(disguised(vector, seed))
        place = folder or Path(scratch)
        began_s = time.monotonic()
        try:
            process = Process(
                [*command, str(record), "--json"],
                _environment(place),
                Path(scratch).name,
                place,
            )
        except OSError as error:
            raise RuntimeNotStarted(f"{command[0]!r} cannot be started: {error.strerror}") from None
        exit_code = _wait(process, time_limit_s, stop or threading.Event())
        left = process.leftovers()
        duration_s = time.monotonic() - began_s
        return _run_row(process, vector, corpus_name, exit_code, left, duration_s, time_limit_s)


def _environment(place: Path) -> dict[str, str]:
    """Return this process's environment without what tells where and for whom it runs."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(_WITHHELD)}
    return {**kept, "PWD": str(place), "NO_COLOR": "1", "TERM": "dumb"}


def _wait(process: Process, limit_s: float, stop: threading.Event) -> int | None:
    """Return the exit code, or None for a command that was ended: all of it is gone then."""
    codes: list[int] = []
    waiter = threading.Thread(target=lambda: codes.append(process.wait()), daemon=True)
    waiter.start()
    limit_at_s = time.monotonic() + limit_s
    while waiter.is_alive():
        left_s = limit_at_s - time.monotonic()
        if left_s <= 0 or stop.is_set():
            process.end()
            waiter.join()
            return None
        waiter.join(min(left_s, _LOOK_S))
    return codes[0]


def _run_row(
    process: Process,
    vector: Vector,
    corpus_name: str,
    exit_code: int | None,
    left: int,
    duration_s: float,
    time_limit_s: float,
) -> Row:
    stdout, stderr = process.stdout.data, process.stderr.data
    if exit_code is None:
        answer = Answer(complaint=f"did not finish within {time_limit_s:g} s, and was ended")
        how = "ended at the time limit"
    else:
        answer = read_answer(stdout, exit_code)
        how = str(exit_code) if exit_code >= 0 else f"signal {-exit_code}"
        if process.stdout.was_cut:
            size = 2 * CAPTURE_BYTES_MAX
            answer = Answer(complaint=f"printed more than {size} bytes; one JSON object is due")
    more = [f"The reader left processes running ({left}); they were ended."] if left else []
    outputs = (Output(0, how, stdout, stderr),)
    return _row(vector, corpus_name, answer, duration_s, more, outputs)


def _row(
    vector: Vector,
    corpus_name: str,
    answer: Answer,
    duration_s: float,
    more: Sequence[str] = (),
    outputs: tuple[Output, ...] = (),
) -> Row:
    return Row(
        id=vector.id,
        set_name=corpus_name,
        expected=vector.expected,
        got=answer.got,
        duration_s=duration_s,
        findings=(*_findings(vector, answer), *more),
        outputs=outputs,
    )


def _findings(vector: Vector, answer: Answer) -> list[str]:
    if answer.complaint is not None:
        return [f"The reader {answer.complaint}."]
    if answer.got == vector.expected:
        return []
    if answer.decision == vector.decision:
        said = f"said {answer.reason}; expected {vector.reason}"
        return [f"The decision {answer.decision} is right and its reason is not: it {said}."]
    due = " (exit 2 and no decision)" if vector.decision == MALFORMED else ""
    return [f"The reader answered {answer.got}; expected {vector.expected}{due}."]


# --- what a reader printed -----------------------------------------------------------------------


def read_answer(stdout: bytes, exit_code: int) -> Answer:
    """Return what a reader's output and exit code say, or what is wrong with them."""
    if exit_code < 0:
        return Answer(complaint=f"was ended by signal {-exit_code}: it has not answered")
    try:
        text = stdout.decode("utf-8").strip()
    except UnicodeDecodeError:
        return Answer(complaint="printed bytes that are not UTF-8")
    values, complaint = _one_object(text)
    if complaint is not None:
        return Answer(complaint=complaint)
    if exit_code == EXIT_MALFORMED:
        if values is None or "decision" not in values:
            return Answer(MALFORMED)
        return Answer(complaint="exited with 2 and printed a decision; 2 is for malformed records")
    if values is None:
        printed = f"printed no JSON object: {text[:_QUOTED_MAX]!r}" if text else "printed nothing"
        ended = f"exited with {exit_code} and " if exit_code else ""
        return Answer(complaint=f"{ended}{printed}; it has not answered")
    return _decision(values, exit_code)


def _decision(values: dict[str, Json], exit_code: int) -> Answer:
    decision, reason = values.get("decision"), values.get("reason")
    if not isinstance(decision, str) or decision not in EXIT_OF:
        shown = f"{decision!r:.{_QUOTED_MAX}}"
        return Answer(complaint=f"printed the decision {shown}, which is neither allow nor deny")
    if not isinstance(reason, str):
        return Answer(complaint="printed a decision without a reason")
    due = EXIT_OF[decision]
    if exit_code != due:
        return Answer(
            complaint=f"exited with {exit_code} and printed {decision}, for which the exit is {due}"
        )
    return Answer(decision, reason[:_QUOTED_MAX])


def _one_object(text: str) -> tuple[dict[str, Json] | None, str | None]:
    """Return the object that the text is, or None where it holds none; or a complaint."""
    start = text.find("{")
    for _ in range(_TRIES_MAX):
        if start == -1:
            break
        try:
            values, end = _DECODER.raw_decode(text, start)
        except _TwiceError:
            return None, "printed an object that holds a member name twice"
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
            continue
        rest = text[end:].strip()
        if start == 0 and not rest:
            return values, None
        if start == 0 and _begins_with_object(rest):
            return None, "printed more than one JSON object; one is due"
        return None, "printed text around the JSON object; the object alone is due"
    return None, None


def _begins_with_object(text: str) -> bool:
    if not text.startswith("{"):
        return False
    try:
        _DECODER.raw_decode(text)
    except (ValueError, RecursionError, _TwiceError):
        return False
    return True


class _TwiceError(Exception):
    """A member name that stands twice in one object."""


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _TwiceError
    return members


_DECODER = json.JSONDecoder(object_pairs_hook=_unique)


# --- the report ----------------------------------------------------------------------------------


def total(rows: Sequence[Row], cases: int, command: Sequence[str] | None) -> str:
    """Say the total in one line; ``cases`` are all that were to be judged."""
    who = "our own reader" if command is None else printable_text(shlex.join(command))
    answered = sum(row.got != NO_ANSWER for row in rows)
    failed = sum(not row.passed for row in rows)
    found = "1 disagreement" if failed == 1 else f"{failed} disagreements"
    return f"{SUITE}: {who} answered {answered} of {cases} cases, {found}"


def report_json(
    rows: Sequence[Row], corpus: ReadCorpus, command: Sequence[str] | None, *, seed: int
) -> str:
    """Return the report as the sister suites write it, with a row for each case."""
    failed = [row for row in rows if not row.passed]
    failures: list[Json] = [f"{row.id}: {text}" for row in failed for text in row.findings]
    report: dict[str, Json] = {
        "suite": SUITE,
        "corpus": corpus.name,
        "corpusDigest": corpus.digest,
        "rail": "own-reader" if command is None else "external",
        "verifier": {
            "command": None if command is None else list(command),
            "vectorsExecuted": sum(row.got != NO_ANSWER for row in rows),
        },
        "seed": seed,
        "totals": {
            "vectors": len(rows),
            "conform": len(rows) - len(failed),
            "fail": len(failed),
            "suiteRefusals": 0,
        },
        "failures": failures,
        "rows": [row.to_json() for row in rows],
    }
    return json.dumps(report, indent=2) + "\n"
