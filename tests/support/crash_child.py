"""A process that carries operations and is killed at a named point.

``python crash_child.py '{"point": "after transaction 1", ...}'`` does one task, given as the
members of ``Task``. ``python crash_child.py --serve`` reads commands from its input and forks one
process a task, which saves the start of an interpreter each time (see ``crash_process.py``).

A process says what it does as JSON lines: each durable append once it was acknowledged, then each
operation's outcome or error.
"""

from __future__ import annotations

import codecs
import ctypes
import json
import os
import resource
import signal
import socket
import sys
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import quote, urlsplit

import apsw

import counterfoil as cf
from counterfoil.coordinator.book import Book
from counterfoil.coordinator.clock import SystemClock
from counterfoil.coordinator.governed import money_of
from counterfoil.coordinator.mission_head import Batch
from counterfoil.coordinator.worker import Worker
from counterfoil.operation.commands import Appended
from counterfoil.operation.events import Answered, Dispatched, NewEvent, Opened, Replied
from counterfoil.owners.http import HttpOwner
from counterfoil.record.digests import canonical_bytes
from counterfoil.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from counterfoil.operation.commands import Claimed, Moved
    from counterfoil.operation.history import History
    from counterfoil.operation.identity import StreamId
    from counterfoil.store.mission_log import Beside
    from counterfoil.store.port import WorkerRecord

SETTLES_WITHIN_S = 0.1
LIFE_S = 30
"""Seconds after which a process that should have ended is ended by its own alarm."""

CRASHED = 70
"""The exit status after any error that is none of ours."""

ONE_BYTE_AND_WAIT = "after the first byte, and no other leaves"
"""The one point that the effect's own function makes: it sends one byte and waits to be killed."""


@dataclass(frozen=True)
class Task:
    """What a process is to do. ``point`` is ``before|inside|after`` and the name of a transaction
    (see ``names_of``), or ``append N`` for the N-th of its life.

    ``owner``: "final", "settles" or "mute" (it cannot be asked); ``adapter``: "function" or "http".
    ``stopped``: stop before anything is opened, until somebody continues it. ``begins_on_line``:
    open, then wait for a line of input. ``uid``, ``file_bytes_max`` and ``descriptors_max`` are
    limits that it takes on before it opens the book. ``mission`` is a contract under which it acts,
    by grant ``g`` of run ``r``, reserving 10.
    """

    database: str
    url: str = ""
    point: str = ""
    owner: str = "final"
    adapter: str = "http"
    operations: tuple[str, ...] = ("o-1",)
    times: int = 1
    create: bool = False
    attempts_max: int = 3
    patience_s: float = 5.0
    stopped: bool = False
    uid: int = 0
    file_bytes_max: int = 0
    descriptors_max: int = 0
    mission: str = ""


canonical_bytes({"a": 1})  # else loaded on first use, which a process without descriptors cannot
codecs.lookup("unicode_escape")  # the same, for one whose user may not read this Python


def die() -> NoReturn:
    """Be killed, here and now."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("unreachable")


def say(**said: object) -> None:
    """Write a line that the test reads; unbuffered, so that a kill loses none."""
    os.write(1, json.dumps(said).encode() + b"\n")


# --- where it dies -------------------------------------------------------------------------------


def names_of(events: Sequence[NewEvent]) -> set[str]:
    """Name the transaction that appends these events."""
    kinds = {type(event.body) for event in events}
    names = set()
    if Opened in kinds:
        names.add("transaction 1")
    if Dispatched in kinds and Opened not in kinds:
        names.add("resend")
    if Answered in kinds:
        names.add("answer")
    if Replied in kinds:
        names.add("transaction 2")
    return names


class CrashStore(SqliteStore):
    """The store, and a kill before, inside or after the transaction that the point names."""

    def __init__(self, task: Task, now_us: Callable[[], int]) -> None:
        connections: list[apsw.Connection] = []
        apsw.connection_hooks.append(connections.append)
        super().__init__(Path(task.database), create=task.create, now_us=now_us)
        self._connections = connections
        self._when, _, self._what = task.point.partition(" ")
        self._appends = 0

    def append(
        self,
        stream: StreamId,
        before: History | None,
        events: Sequence[NewEvent],
        *,
        claim: str | None,
        by: WorkerRecord,
        beside: Beside | None = None,
    ) -> Appended | Moved | Claimed:
        """Append, or die. What was acknowledged is said."""
        self._appends += 1
        here = self._what in {*names_of(events), f"append {self._appends}"}
        if here and self._when == "before":
            die()
        if here and self._when == "inside":
            for connection in self._connections:
                connection.set_commit_hook(die)
        result = super().append(stream, before, events, claim=claim, by=by, beside=beside)
        if isinstance(result, Appended):
            said: dict[str, object] = {"stored": [event.event_id.hex() for event in events]}
            if isinstance(beside, Batch):
                said["money"] = money_of(beside.then.state)._asdict()
            say(**said)
        if here and self._when == "after":
            die()
        return result


# --- the effect, in both forms -------------------------------------------------------------------


def declare(task: Task) -> cf.Effect[..., object]:
    """Return the effect as the task wants it."""
    owner = cf.Owner(
        "ledger",
        final_by="answer" if task.owner == "final" else None,
        settles_within=SETTLES_WITHIN_S if task.owner == "settles" else None,
    )
    if task.adapter == "http":
        return cf.effect("change", owner=owner)(HttpOwner(task.url, deadline="10s"))
    where = urlsplit(task.url)
    assert where.hostname is not None
    assert where.port is not None
    address = (where.hostname, where.port)

    @cf.effect("change", owner=owner)
    def change(attempt: cf.Attempt, *, amount: str) -> object:
        body = json.dumps({"idempotencyKey": attempt.key, "args": {"amount": amount}})
        head = f"POST /effects HTTP/1.1\r\nHost: owner\r\nContent-Length: {len(body)}\r\n\r\n"
        return exchange(address, head + body, stops=task.point == ONE_BYTE_AND_WAIT)

    if task.owner != "mute":

        @change.reconcile
        def find(attempt: cf.Attempt) -> object:
            head = f"GET /effects/{quote(attempt.key, safe='')} HTTP/1.1\r\nHost: owner\r\n\r\n"
            said = exchange(address, head)
            if said["result"] == "present":
                return cf.present(said, effect_id=said["effectId"])
            return cf.absent(final=said["final"])

    return change


def exchange(address: tuple[str, int], request: str, *, stops: bool = False) -> dict[str, Any]:
    """Send a request in one piece and return the reply's object; stop after one byte if told."""
    with socket.create_connection(address, timeout=10) as sock:
        if stops:
            sock.sendall(request[:1].encode())
            signal.pause()
        sock.sendall(request.encode())
        reply = b"".join(iter(lambda: sock.recv(4096), b""))
    if not reply.startswith(b"HTTP/1.0 200"):
        raise ConnectionError("no reply")
    said: dict[str, Any] = json.loads(reply.partition(b"\r\n\r\n")[2])
    return said


# --- one process ---------------------------------------------------------------------------------


def open_book(task: Task) -> Book:
    """Open the book as ``counterfoil.open`` does, with the store that dies in between."""
    path, clock = Path(task.database), SystemClock()
    return Book(
        CrashStore(task, clock.now_us),
        Worker(path.with_name(path.name + ".workers")),
        clock,
        patience=task.patience_s,
        attempts_max=task.attempts_max,
        mission=task.mission or None,
    )


def authority(task: Task, book: Book) -> dict[str, Any]:
    """Return the options by which a governed operation is performed."""
    if not task.mission:
        return {}
    return {"under": book.mission.run("r").granted("g"), "resource": "doc", "reserve": "10"}


def take_limits(task: Task) -> None:
    """Take on what the task limits."""
    if task.file_bytes_max:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (task.file_bytes_max,) * 2)
    if task.descriptors_max:
        resource.setrlimit(resource.RLIMIT_NOFILE, (task.descriptors_max,) * 2)
    if task.uid and os.getuid() == 0:
        os.setgroups([])
        os.setgid(task.uid)
        os.setuid(task.uid)


def perform(task: Task) -> int:
    """Do a task; return the exit status. Any error but one of ours is said as a crash."""
    signal.alarm(LIFE_S)
    # A runner in the background hands down that interrupts are ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    status = 0
    try:
        take_limits(task)
        effect = declare(task)
        with open_book(task) as book:
            for operation_id in task.operations * task.times:
                try:
                    options = authority(task, book)
                    outcome = book.perform(effect, operation_id, amount="1", **options)
                except cf.CounterfoilError as error:
                    status = complain(error)
                else:
                    say(
                        outcome=outcome.status,
                        why=outcome.why.code,
                        attempts=outcome.attempts,
                        replayed=outcome.replayed,
                    )
    except cf.CounterfoilError as error:
        return complain(error)
    except KeyboardInterrupt:
        say(interrupted=True)
        return 130
    except BaseException:
        say(crash=traceback.format_exc())
        return CRASHED
    return status


def complain(error: cf.CounterfoilError) -> int:
    """Say an error of ours; return the exit status that it stands for."""
    say(error=type(error).__name__, text=str(error))
    return error.exit_code


# --- many processes ------------------------------------------------------------------------------


class Server:
    """Forks one process a task. Single-threaded and without a database, so a fork is safe."""

    def __init__(self) -> None:
        self._outputs: dict[int, int] = {}

    def run(self, commands: Iterator[str]) -> None:
        """Answer each line: ``start`` with a task, ``wait`` with a pid."""
        known: dict[str, Callable[[str], dict[str, object]]] = {
            "start": self.start,
            "wait": self.wait,
        }
        for line in commands:
            name, _, rest = line.partition(" ")
            print(json.dumps(known[name](rest)), flush=True)

    def start(self, text: str) -> dict[str, object]:
        """Fork a process for a task; a stopped one has stopped when this returns."""
        task = task_from(text)
        output, inner = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(inner, 1)
            os.closerange(3, 64)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            if task.stopped:
                may_be_traced()
                os.kill(os.getpid(), signal.SIGSTOP)
            os._exit(perform(replace(task, stopped=False)))
        os.close(inner)
        self._outputs[pid] = output
        if task.stopped:
            os.waitpid(pid, os.WUNTRACED)
        return {"pid": pid}

    def wait(self, text: str) -> dict[str, object]:
        """Wait for a process to end; return its status (negative: the signal) and what it said."""
        pid = int(text)
        with os.fdopen(self._outputs.pop(pid), "rb") as output:
            said = output.read().decode()
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return {"status": status, "said": [json.loads(line) for line in said.splitlines()]}


def may_be_traced() -> None:
    """Let a tracer that is no parent attach, where the kernel asks for that."""
    pr_set_ptracer, any_process = 0x59616D61, ctypes.c_ulong(-1)
    ctypes.CDLL(None).prctl(pr_set_ptracer, any_process, 0, 0, 0)


def task_from(text: str) -> Task:
    """Read a task from JSON."""
    members = json.loads(text)
    return Task(**{**members, "operations": tuple(members.get("operations", ("o-1",)))})


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        Server().run(sys.stdin)
    else:
        sys.exit(perform(task_from(sys.argv[1])))
