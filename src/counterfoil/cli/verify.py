"""``counterfoil verify``: judges records and says what it found.

Harnesses start it once per case, so it parses its own options and imports the record and the reader
only. A file of many records is read line by line: memory does not grow with it.
"""

from __future__ import annotations

import os
import stat
import sys
from json import dumps

from counterfoil import limits
from counterfoil.errors import BadInput
from counterfoil.reader.checks import HELD
from counterfoil.reader.shown import escaped
from counterfoil.reader.verdict import Malformed, Verdict, judge_briefly, judge_bytes
from counterfoil.record.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

ALLOWED, DENIED, UNUSABLE, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141
STDIN = "-"
FLAGS = ("--json", "--explain", "--strict")
SKIP_BYTES = 1024 * 1024  # held at a time of a line that is too long to be judged


class Options(Value):
    """What the command line asks for."""

    paths: tuple[str, ...]
    as_json: bool = False
    explain: bool = False
    strict: bool = False


def run(argv: list[str]) -> int:
    """Judge what ``argv`` names; print the answers; return the exit code.

    0: all allowed. 1: one denied, or with ``--strict`` one with an advisory. 2: one malformed, or
    an input that cannot be used, which is said on the error stream.
    """
    if sys.stdout is None:
        _complain("standard output is closed; open it, or nobody hears the answer")
        return UNUSABLE
    try:
        options = parse_options(argv)
        report = _Report(options)
        for path in options.paths:
            _judge_path(path, report, alone=len(options.paths) == 1)
        sys.stdout.flush()
    except BadInput as error:
        _complain(str(error))
        _drop_output()
        return UNUSABLE
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()  # the reader of our output left
        return BROKEN_PIPE
    except OSError as error:
        _complain(f"standard output: {_reason(error)}; the answers are not complete")
        _drop_output()
        return UNUSABLE
    return report.exit_code


def parse_options(argv: list[str]) -> Options:
    """Return what ``argv`` asks for. Raises BadInput for an unknown option, or without a path."""
    paths: list[str] = []
    flags: set[str] = set()
    rest = iter(argv)
    for word in rest:
        if word == "--":
            paths += rest
        elif word in FLAGS:
            flags.add(word)
        elif word.startswith("-") and word != STDIN:
            raise BadInput(f"no option {escaped(word)}; the options are {', '.join(FLAGS)}")
        else:
            paths.append(word)
    if not paths:
        raise BadInput("name a record, a folder or - for standard input; --help shows examples")
    return Options(tuple(paths), *(flag in flags for flag in FLAGS))


# --- what is judged ------------------------------------------------------------------------------


def _judge_path(path: str, report: _Report, *, alone: bool) -> None:
    """Judge a path of the command line. What cannot be read is said and counted; the rest goes on.

    A single record, named alone, is answered by one object without ``path`` and ``line``.
    """
    try:
        if path == STDIN:
            if sys.stdin is None:
                raise BadInput("standard input is closed; give it a stream of records")
            _judge_lines(sys.stdin.buffer, path, report, flush=True)
        elif os.path.isdir(path):  # noqa: PTH112 - pathlib costs a third of Python's own start
            _judge_folder(path, report)
        elif path.endswith(".jsonl"):
            with open(path, "rb") as stream:
                _judge_lines(stream, path, report)
        else:
            _judge_file(path, report, alone=alone)
    except (BrokenPipeError, BadInput):
        raise
    except OSError as error:
        report.cannot_use(error.filename or path, _reason(error))
    except ValueError:  # what open() says to a path that holds a NUL
        report.cannot_use(path, "not a path; check it")


def _judge_folder(folder: str, report: _Report) -> None:
    names = sorted(_record_names(folder, report))
    if not names:
        report.cannot_use(folder, "holds no .json or .jsonl file; name a folder of records")
    for name in names:
        _judge_path(name, report, alone=False)


def _record_names(folder: str, report: _Report) -> Iterator[str]:
    def unreadable(error: OSError) -> None:
        report.cannot_use(error.filename or folder, _reason(error))

    for parent, _, names in os.walk(folder, onerror=unreadable):
        for name in names:
            path = os.path.join(parent, name)  # noqa: PTH118 - as above
            # A pipe that happens to lie there would be waited for; one that is named is read.
            if name.endswith((".json", ".jsonl")) and not _is_pipe_or_device(path):
                yield path


def _is_pipe_or_device(path: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - as above
    except OSError:
        return False  # let opening it say what is wrong


def _judge_file(path: str, report: _Report, *, alone: bool) -> None:
    with open(path, "rb") as stream:
        data = stream.read(limits.RECORD_BYTES_MAX + 1)
    report.begin(None if alone else path)
    report.add(report.judge(data), 1)


def _judge_lines(stream: BinaryIO, path: str, report: _Report, *, flush: bool = False) -> None:
    """Judge one record a line; a line too long is answered by its beginning and skipped."""
    longest = limits.RECORD_BYTES_MAX
    number = 0
    report.begin(path)
    while line := stream.readline(longest + 1):
        number += 1
        if line[-1] == 0x0A:
            line = line[:-1]
        elif len(line) > longest:
            _skip_line(stream)
        report.add(report.judge(line), number)
        if flush:
            _flush()
    if not number:
        report.cannot_use(path, "holds no record; nothing was judged")


def _skip_line(stream: BinaryIO) -> None:
    while (part := stream.readline(SKIP_BYTES)) and part[-1] != 0x0A:
        pass


# --- what is printed -----------------------------------------------------------------------------


class _Report:
    """Prints answers as they come, and keeps what the exit code needs."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._write = _write
        self._denied = self._unusable = False
        self._path: str | None = None
        self._place = ""
        self._usual: dict[str, str] = {}
        self.judge = judge_bytes if options.explain else judge_briefly

    @property
    def exit_code(self) -> int:
        return UNUSABLE if self._unusable else DENIED if self._denied else ALLOWED

    def begin(self, path: str | None) -> None:
        """Answers that follow are of records in this file; None for a record without a place."""
        self._path = path
        if path is not None:
            self._place = f'{{"path": {dumps(_carried(path))}, "line": '

    def add(self, answer: Verdict | Malformed, line: int) -> None:
        """Print the answer for the record that this line holds."""
        if isinstance(answer, Verdict) and answer.record is None and self._path is not None:
            # A plain record: a text for each outcome, once made, answers them all.
            usual = self._usual.get(answer.explanation)
            if usual is not None:
                self._write(f"{self._place}{line}, {usual}\n")
                return
        if isinstance(answer, Malformed):
            self._unusable = True
        elif answer.reason != HELD or (self._options.strict and answer.advisories):
            self._denied = True
        if self._options.as_json:
            self._write_json(answer, line)
        else:
            place = "" if self._path is None else f"{escaped(self._path)}:{line}: "
            self._write_text(place + _sentence(answer) + "\n")
            if self._options.explain and isinstance(answer, Verdict):
                self._write_text(_explanation(answer))

    def cannot_use(self, path: str, problem: str) -> None:
        """Say that an input was not judged, after all that was."""
        self._unusable = True
        _flush()
        _complain(f"{escaped(path)}: {problem}")

    def _write_json(self, answer: Verdict | Malformed, line: int) -> None:
        values = answer.as_json()
        if self._path is None:
            opening = "{"
        else:
            opening = f"{self._place}{line}, "
            if isinstance(answer, Malformed):
                # Beside the file's path, the JSON Pointer goes by its own name.
                values["pointer"] = values.pop("path")
        if self._options.explain and isinstance(answer, Verdict) and answer.record is not None:
            from counterfoil.reader.timeline import timeline

            values["timeline"] = [moment.as_json() for moment in timeline(answer.record)]
        members = dumps(values)[1:]
        self._write(f"{opening}{members}\n")
        if isinstance(answer, Verdict) and answer.record is None and answer.reason == HELD:
            self._usual[answer.explanation] = members

    def _write_text(self, text: str) -> None:
        try:
            self._write(text)
        except UnicodeEncodeError as error:
            self._write(text.encode(error.encoding, "backslashreplace").decode(error.encoding))


def _sentence(answer: Verdict | Malformed) -> str:
    if isinstance(answer, Malformed):
        return f"malformed {escaped(answer.path) or 'document'}: {escaped(answer.detail)}"
    codes = ", ".join(advisory.code for advisory in answer.advisories)
    advisories = f" (advisories: {codes})" if codes else ""
    return f"{answer.decision.value} {answer.reason}: {answer.explanation}{advisories}"


def _explanation(verdict: Verdict) -> str:
    lines = [f"  about {member}" for member in verdict.members]
    for advisory in verdict.advisories:
        lines.append(f"  advisory {advisory.code}: {advisory.detail}")
        lines.append(f"    about {', '.join(advisory.members)}")
    if verdict.record is not None:
        from counterfoil.reader.timeline import timeline

        lines += [
            f"  {moment.at}  {moment.text}  {moment.member}" for moment in timeline(verdict.record)
        ]
    return "".join(line + "\n" for line in lines)


def _reason(error: OSError) -> str:
    problem = (error.strerror or "cannot be read").lower()
    return f"{problem}; check the path and its permissions"


def _write(text: str) -> None:
    """Say something. Raises BadInput where the output takes no more."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _full(error) from None


def _flush() -> None:
    """Say what is due now. Raises BadInput where the output takes no more."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _full(error) from None


def _full(error: OSError) -> BadInput:
    problem = (error.strerror or "cannot be written").lower()
    return BadInput(f"standard output: {problem}; the answers are not complete")


def _drop_output() -> None:
    """What is still buffered has nowhere to go, and Python would complain when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        pass
    else:
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(message: str) -> None:
    if sys.stderr is None:
        return
    text = f"counterfoil verify: {message}\n"
    sys.stderr.write(text.encode("ascii", "backslashreplace").decode("ascii"))


def _carried(text: str) -> str:
    """Return a file's name as text that JSON can carry: bytes that are no UTF-8 are escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
