"""What ``counterfoil verify`` is to judge: paths into batches of lines, read as they are needed."""

from __future__ import annotations

import os
import stat
import sys

from counterfoil import limits
from counterfoil.errors import BadInput
from counterfoil.record.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

STDIN = "-"
ENDINGS = (".json", ".jsonl")
BATCH_BYTES = 256 * 1024  # enough that handing a batch over costs little, few enough to hold many
SKIP_BYTES = 1024 * 1024  # held at a time of a line that is too long to be judged


class Batch(Value):
    """Lines of one input that follow each other: the evidence to judge.

    ``path`` is None for a file that was named alone and holds one record. ``first`` is the number
    of the first line, from 1. A line too long to be judged is there with its beginning.
    """

    path: str | None
    first: int
    lines: tuple[bytes, ...]


class Problem(Value):
    """An input that cannot be judged, and in one phrase why."""

    path: str
    detail: str


def read(paths: tuple[str, ...], *, live: bool) -> Iterator[Batch | Problem]:
    """Yield what the paths hold, in order. What cannot be read is a problem; the rest goes on.

    With ``live`` a line of standard input is a batch of its own: whoever feeds it may wait for the
    answer. Raises BadInput where standard input is asked for and closed.
    """
    for path in paths:
        yield from _read_path(path, live=live, alone=len(paths) == 1)


def _read_path(path: str, *, live: bool, alone: bool) -> Iterator[Batch | Problem]:
    try:
        if path == STDIN:
            if sys.stdin is None:
                raise BadInput("standard input is closed; give it a stream of records")
            yield from _lines(sys.stdin.buffer, path, 1 if live else BATCH_BYTES)
        elif os.path.isdir(path):  # noqa: PTH112 - pathlib costs a third of Python's own start
            yield from _read_folder(path)
        elif path.endswith(".jsonl"):
            with open(path, "rb") as stream:
                yield from _lines(stream, path, BATCH_BYTES)
        else:
            with open(path, "rb") as stream:
                data = stream.read(limits.RECORD_BYTES_MAX + 1)
            yield Batch(None if alone else path, 1, (data,))
    except OSError as error:
        yield Problem(error.filename or path, reason(error))
    except ValueError as error:
        if isinstance(error, BadInput):
            raise
        yield Problem(path, "not a path; check it")  # what open() says to a NUL


def _read_folder(folder: str) -> Iterator[Batch | Problem]:
    problems: list[Problem] = []

    def unreadable(error: OSError) -> None:
        problems.append(Problem(error.filename or folder, reason(error)))

    names = []
    for parent, _, found in os.walk(folder, onerror=unreadable):
        for name in found:
            path = os.path.join(parent, name)  # noqa: PTH118 - as above
            # A pipe that happens to lie there would be waited for; one that is named is read.
            if name.endswith(ENDINGS) and not _is_pipe_or_device(path):
                names.append(path)
    yield from problems
    if not names:
        yield Problem(folder, "holds no .json or .jsonl file; name a folder of records")
    for path in sorted(names):
        yield from _read_path(path, live=False, alone=False)


def _is_pipe_or_device(path: str) -> bool:
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116 - as above
    except OSError:
        return False  # let opening it say what is wrong


def _lines(stream: BinaryIO, path: str, size: int) -> Iterator[Batch | Problem]:
    """Yield batches of at least ``size`` bytes, the last one apart."""
    longest = limits.RECORD_BYTES_MAX
    first, held, lines = 1, 0, []
    while line := stream.readline(longest + 1):
        if line[-1] == 0x0A:
            line = line[:-1]
        elif len(line) > longest:
            _skip_line(stream)
        lines.append(line)
        held += len(line) + 1
        if held >= size:
            yield Batch(path, first, tuple(lines))
            first, held, lines = first + len(lines), 0, []
    if lines:
        yield Batch(path, first, tuple(lines))
    elif first == 1:
        yield Problem(path, "holds no record; nothing was judged")


def _skip_line(stream: BinaryIO) -> None:
    while (part := stream.readline(SKIP_BYTES)) and part[-1] != 0x0A:
        pass


def reason(error: OSError) -> str:
    """Return in one phrase what was wrong, and what to do."""
    problem = (error.strerror or "cannot be read").lower()
    return f"{problem}; check the path and its permissions"
