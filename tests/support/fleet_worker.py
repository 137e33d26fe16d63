"""A worker process of the fleet, and the one that forks them.

``python fleet_worker.py`` reads commands on its input and forks one process a task: it has one
thread and no database open, so a fork is safe, and a worker costs no start of the interpreter.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
import traceback
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

import counterfoil as cf
from counterfoil.coordinator import worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

LIFE_S = 240
"""Seconds after which a forgotten process ends by itself."""

ACTION = "fleet.change"

# What is imported on first use is imported before the fork.
_LOADED = (cf.open, cf.HttpOwner, cf.Owner, cf.effect, cf.Status, cf.OperationInFlight)


@dataclass(frozen=True)
class Task:
    """What a worker does.

    ``report``: the file to which it appends one JSON line for each outcome that it was given.
    ``disturb``: a signal that it sends itself in its first call, after the last look and before the
    first byte; ``unconnected``: before it even connects. ``host``: the host that it claims to run
    on, "" for the one it does.
    ``witness``: "each" where the witness is to know of every commit.
    ``until_settled``: it goes on until everything is, in an order of its own that begins near place
    ``begin``; otherwise it performs each operation once.
    """

    database: str
    url: str
    report: str
    operations: tuple[str, ...]
    seed: int = 0
    promises: dict[str, Any] = field(default_factory=dict)
    deadline_s: float = 1.0
    lease_s: float = 3.0
    patience_s: float = 0.3
    disturb: int = 0
    unconnected: bool = False
    host: str = ""
    witness: str | None = None
    until_settled: bool = False
    begin: int = 0

    def to_json(self) -> str:
        """Return the task as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        """Read what ``to_json`` wrote."""
        members = json.loads(text)
        return cls(**{**members, "operations": tuple(members["operations"])})


class DisturbedOwner(cf.HttpOwner):
    """Sends its own process a signal at the worst moment of the first call."""

    disturb = 0
    unconnected = False

    def execute(self, operation: cf.Operation, attempt: cf.Attempt) -> Any:
        """Send as the base class does, the signal coming after the look that allows it."""
        if self.disturb and self.unconnected:
            self._send_signal()
        elif self.disturb:
            attempt = attempt._replace(look=self._disturbed(attempt.look))
        return super().execute(operation, attempt)

    def _disturbed(self, look: Callable[[], str | None] | None) -> Callable[[], str | None]:
        def looked_and_disturbed() -> str | None:
            found = None if look is None else look()
            self._send_signal()
            return found

        return looked_and_disturbed

    def _send_signal(self) -> None:
        number, self.disturb = self.disturb, 0
        os.kill(os.getpid(), number)


def declare(
    url: str,
    promises: dict[str, Any],
    *,
    deadline_s: float = 1.0,
    disturb: int = 0,
    unconnected: bool = False,
) -> cf.Effect[..., Any]:
    """Declare the one effect of the fleet, at an owner with these promises."""
    fences = promises.get("fences", "no")
    owner = DisturbedOwner(url, deadline=deadline_s, sends_token=fences != "no")
    owner.disturb, owner.unconnected = disturb, unconnected
    return cf.effect(ACTION, owner=cf.Owner("fleet-owner", **promises))(owner)


def open_book(task: Task) -> cf.Book:
    """Open the database as the task says."""
    if task.host:
        worker.host_id = lambda: task.host
    return cf.open(
        task.database, lease=task.lease_s, patience=task.patience_s, witness=task.witness
    )


def work(task: Task) -> None:
    """Do a task."""
    effect = declare(
        task.url,
        task.promises,
        deadline_s=task.deadline_s,
        disturb=task.disturb,
        unconnected=task.unconnected,
    )
    with Report(task.report) as report, open_book(task) as book:
        report.say(worker=book.worker_id, pid=os.getpid())
        if task.until_settled:
            work_until_settled(task, book, effect, report)
            return
        for operation_id in task.operations:
            report.outcome(book.perform(effect, operation_id, amount="1"))


def work_until_settled(
    task: Task, book: cf.Book, effect: cf.Effect[..., Any], report: Report
) -> None:
    """Perform and recover until every operation is settled."""
    seeded = random.Random(task.seed)
    left = shuffled(task.operations[task.begin :] + task.operations[: task.begin], seeded)
    while left:
        unsettled = []
        for operation_id in left:
            try:
                outcome = book.perform(
                    effect, operation_id, amount="1", wait_if_in_flight=seeded.random() < 0.5
                )
            except cf.OperationInFlight:
                unsettled.append(operation_id)
                continue
            report.outcome(outcome)
            if outcome.status is cf.Status.UNKNOWN:
                unsettled.append(operation_id)
        left = unsettled
        for outcome in book.recover(limit=200):
            report.outcome(outcome)
        time.sleep(0.02)  # what is left waits for another worker, or for the owner


def shuffled(operations: Iterable[str], seeded: random.Random, reach: int = 200) -> list[str]:
    """Return the list in an order of one's own that keeps near the list's, so that workers meet."""
    placed = [(place + seeded.uniform(0, reach), each) for place, each in enumerate(operations)]
    return [each for _, each in sorted(placed)]


class Report:
    """Appends whole lines to a file that several processes share."""

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def say(self, **members: object) -> None:
        """Append one line."""
        os.write(self._descriptor, json.dumps(members).encode() + b"\n")

    def outcome(self, outcome: cf.Outcome[Any]) -> None:
        """Append what the caller was told."""
        self.say(op=outcome.operation_id, status=outcome.status, code=outcome.why.code)


def run(task: Task) -> int:
    """Do a task in this process; return its exit status. What broke it is in the report."""
    signal.alarm(LIFE_S)
    try:
        work(task)
    except cf.CounterfoilError as error:
        with Report(task.report) as report:
            report.say(error=type(error).__name__, text=str(error))
        return error.exit_code
    except BaseException:
        with Report(task.report) as report:
            report.say(crash=traceback.format_exc())
        return 70
    return 0


# --- the process that forks them -----------------------------------------------------------------


class Server:
    """Answers each line: ``start TASK``, ``ended PID``, ``wait PID``, ``stopped PID``."""

    def __init__(self) -> None:
        self._running: set[int] = set()

    def serve(self) -> None:
        """Answer until the input ends; then end every process that still runs."""
        for line in sys.stdin:
            name, _, rest = line.partition(" ")
            print(json.dumps(self._answer(name, rest)), flush=True)
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _answer(self, name: str, rest: str) -> int | None:
        if name == "start":
            return self._start(Task.from_json(rest))
        options = {"ended": os.WNOHANG, "wait": 0, "stopped": os.WUNTRACED}[name]
        pid, status = os.waitpid(int(rest), options)
        if pid == 0 or os.WIFSTOPPED(status):
            return None
        self._running.discard(pid)
        return os.waitstatus_to_exitcode(status)

    def _start(self, task: Task) -> int:
        pid = os.fork()
        if pid == 0:
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.closerange(3, 64)
            os._exit(run(task))
        self._running.add(pid)
        return pid


if __name__ == "__main__":
    Server().serve()
