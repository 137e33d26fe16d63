"""Judges batches in several processes side by side; the answers come in the order of the batches.

A process is given its next batch when its last answers are here: none is ever blocked on a full
pipe, and no more than a batch a process is held.
"""

from __future__ import annotations

import signal
from collections import deque
from multiprocessing import get_context
from typing import TYPE_CHECKING

from counterfoil.cli.verify_answers import Answerer
from counterfoil.cli.verify_inputs import Problem
from counterfoil.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from counterfoil.cli.verify_answers import Answers, Asked
    from counterfoil.cli.verify_inputs import Batch


def answers_of(
    items: Iterable[Batch | Problem], asked: Asked, jobs: int
) -> Iterator[Answers | Problem]:
    """Yield the answers to every batch, and every problem, in order.

    Raises BadInput where a process that judges is ended from outside: its answers are lost.
    """
    team = _Team(asked, jobs)
    due: deque[Connection | Problem] = deque()
    try:
        for item in items:
            if isinstance(item, Problem):
                due.append(item)
                continue
            ready: list[Answers | Problem] = []
            worker = team.idle()
            while worker is None:
                first = due.popleft()
                if isinstance(first, Problem):
                    ready.append(first)
                else:
                    ready.append(_received(first))
                    worker = first
            _send(worker, item)  # before its last answers are printed: it need not wait for that
            due.append(worker)
            yield from ready
        while due:
            first = due.popleft()
            yield first if isinstance(first, Problem) else _received(first)
    finally:
        team.dismiss()


class _Team:
    """The processes, started when they are first needed."""

    def __init__(self, asked: Asked, jobs: int) -> None:
        self._asked, self._jobs = asked, jobs
        # Not forked: the child of a fork would hold the other pipes open, and outlive us.
        self._context = get_context("spawn")
        self._members: list[tuple[BaseProcess, Connection]] = []

    def idle(self) -> Connection | None:
        """Return a new process's connection, or None if all have been started."""
        if len(self._members) == self._jobs:
            return None
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_judge, args=(theirs, self._asked), daemon=True)
        process.start()
        theirs.close()
        self._members.append((process, ours))
        return ours

    def dismiss(self) -> None:
        """End all. What they were still judging is not wanted."""
        for process, connection in self._members:
            connection.close()
            process.terminate()
        for process, _ in self._members:
            process.join()


def _judge(connection: Connection, asked: Asked) -> None:
    """Judge until nobody asks any more. Runs in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who asks ends us
    answerer = Answerer(asked)
    try:
        while True:
            connection.send(answerer.answer(connection.recv()))
    except (EOFError, OSError):
        return


def _send(connection: Connection, batch: Batch) -> None:
    try:
        connection.send(batch)
    except OSError:
        raise _lost() from None


def _received(connection: Connection) -> Answers:
    try:
        answers: Answers = connection.recv()
    except (EOFError, OSError):
        raise _lost() from None
    return answers


def _lost() -> BadInput:
    return BadInput(
        "a process that judged was ended from outside; the answers are not complete; "
        "try again, with fewer --jobs if memory is short"
    )
