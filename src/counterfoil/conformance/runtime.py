"""Drives a runtime under test through one scenario.

The command is run as ``<runtime> <scenario.json>`` with the owner's base URL in
``AEV_EFFECT_OWNER`` and, in ``COUNTERFOIL_STATE_DIR``, a folder that is fresh for each scenario and
found again by every worker of it. Its last line is ``{"outcome": ...}`` and it exits 0, within a
minute (seed, "The runtime contract").
"""

from __future__ import annotations

import json
import os
import queue
import shlex
import shutil
import signal
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.conformance.judging import findings, got
from counterfoil.conformance.owner_server import OwnerServer
from counterfoil.conformance.process import Process
from counterfoil.conformance.report import Output, Row
from counterfoil.conformance.respell import respelled, worker_name
from counterfoil.conformance.scenario import Deed, Fault, Json, Moment, Outcome, Scenario
from counterfoil.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Sequence

TIME_LIMIT_S = 60.0
"""A runtime must finish within a minute (seed)."""

STUCK_S = 5.0
"""Seconds after which a run ends in which only frozen workers are left."""

_LOOK_S = 0.2  # how often limits are looked at

OWNER_VARIABLE = "AEV_EFFECT_OWNER"
STATE_VARIABLE = "COUNTERFOIL_STATE_DIR"

_LINE_MAX = 200  # characters of a runtime's line that are quoted in a sentence


class RuntimeNotStarted(BadInput):
    """The command that was named cannot be started: nothing was judged."""


def resolve_command(text: str) -> tuple[str, ...]:
    """Split a command as a shell would. Raises ``RuntimeNotStarted`` for no such program."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise RuntimeNotStarted(f"the command {text!r} cannot be split: {error}") from None
    if not words:
        raise RuntimeNotStarted("the command is empty; name the program that is to be run")
    if shutil.which(words[0]) is None:
        raise RuntimeNotStarted(
            f"no program {words[0]!r} that can be run; check the path, and that it is executable"
        )
    return tuple(words)


def run_scenario(
    command: Sequence[str],
    scenario: Scenario,
    *,
    seed: int,
    time_limit_s: float = TIME_LIMIT_S,
    stop: threading.Event | None = None,
) -> Row:
    """Drive the command through one scenario and judge it.

    Raises ``RuntimeNotStarted`` if the command cannot be started. ``seed`` decides the spelling of
    ids, keys and arguments. ``stop`` ends the run early, and the row with it is worth nothing.
    """
    with tempfile.TemporaryDirectory(prefix="run-", ignore_cleanup_errors=True) as folder:
        stop = stop or threading.Event()
        return _Run(tuple(command), scenario, seed, time_limit_s, Path(folder), stop).row()


@dataclass(slots=True)
class _Worker:
    process: Process
    number: int
    limit_at_s: float | None
    """When its time is up, on the monotonic clock; None while it is frozen."""
    exit_code: int | None = None
    killed: bool = False
    overran: bool = False
    left: int = 0
    done: bool = False


class _Run:
    """One scenario being driven.

    The fault script is a queue. A step waits for its moment and is done inside it, while the
    request that made the moment stands still; steps without a moment follow at once.
    """

    def __init__(
        self,
        command: tuple[str, ...],
        scenario: Scenario,
        seed: int,
        time_limit_s: float,
        folder: Path,
        stop: threading.Event,
    ) -> None:
        self._command = command
        self._scenario, self._neutral_id = respelled(scenario, seed)
        self._seed = seed
        self._time_limit_s = time_limit_s
        self._folder = folder
        self._lock = threading.RLock()
        self._script = list(scenario.faults)
        self._seen = 0
        self._workers: list[_Worker] = []
        self._worker_numbers = 0
        self._ended: queue.Queue[_Worker] = queue.Queue()
        self._broken: OSError | None = None
        self._stop = stop
        self._over = False

    def row(self) -> Row:
        began_s = time.monotonic()
        (self._folder / "state").mkdir()
        with OwnerServer(self._scenario, on_moment=self._moment) as self._server:
            try:
                with self._lock:
                    self._start(new_worker=True)
                    self._follow_on()
                self._await_workers()
            finally:
                for worker in self._running():
                    worker.process.end()
                    worker.process.leftovers()
            if self._broken is not None:
                raise RuntimeNotStarted(
                    f"{self._command[0]!r} cannot be started: {self._broken.strerror}"
                )
            return self._judged(time.monotonic() - began_s)

    # --- the fault script ------------------------------------------------------------------------

    def _moment(self, moment: Moment) -> None:
        with self._lock:
            if self._over or not self._script or self._script[0].at is not moment:
                return
            self._seen += 1
            if self._seen == self._script[0].count:
                self._do_next()
                self._follow_on()

    def _follow_on(self) -> None:
        while self._script and self._script[0].at is None:
            self._do_next()

    def _do_next(self) -> None:
        fault: Fault = self._script.pop(0)
        self._seen = 0
        latest = self._workers[-1]
        match fault.do:
            case Deed.KILL:
                latest.killed = True
                latest.process.signal(signal.SIGKILL)
            case Deed.FREEZE:
                latest.limit_at_s = None
                latest.process.signal(signal.SIGSTOP)
            case Deed.WAKE:
                self._server.ledger.wake()
                for worker in self._workers:
                    if worker.limit_at_s is None:
                        worker.limit_at_s = time.monotonic() + self._time_limit_s
                        worker.process.signal(signal.SIGCONT)
            case Deed.START_AGAIN:
                self._start(new_worker=False)
            case Deed.START_SECOND:
                self._start(new_worker=True)
            case Deed.DELIVER:
                self._server.ledger.deliver()
            case Deed.MOVE_LEASE:
                self._server.ledger.move_lease()

    # --- workers ---------------------------------------------------------------------------------

    def _start(self, *, new_worker: bool) -> None:
        self._worker_numbers += new_worker
        name = worker_name(self._scenario, self._seed, self._worker_numbers)
        number = len(self._workers) + 1
        # The name of the file says nothing; a worker that is started again finds the same text.
        file = self._folder / f"scenario-{self._worker_numbers}.json"
        file.write_text(json.dumps(self._scenario.shown(self._neutral_id, name), indent=2) + "\n")
        environment = {
            **os.environ,
            OWNER_VARIABLE: self._server.url,
            STATE_VARIABLE: str(self._folder / "state"),
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
        try:
            process = Process(
                [*self._command, str(file)], environment, f"{self._folder.name}-{number}"
            )
        except OSError as error:
            # May happen inside a handler's thread; the run ends and says so.
            self._broken = error
            return
        worker = _Worker(process, number, time.monotonic() + self._time_limit_s)
        self._workers.append(worker)
        threading.Thread(target=self._watch, args=(worker,), daemon=True).start()

    def _watch(self, worker: _Worker) -> None:
        worker.exit_code = worker.process.wait()
        self._ended.put(worker)

    def _await_workers(self) -> None:
        """Wait until every worker has ended, or only frozen ones are left that nobody wakes."""
        stuck_at_s: float | None = None
        while (running := self._running()) and self._broken is None and not self._stop.is_set():
            now_s = time.monotonic()
            frozen = all(worker.limit_at_s is None for worker in running)
            stuck_at_s = (stuck_at_s or now_s + STUCK_S) if frozen else None
            if stuck_at_s is not None and stuck_at_s <= now_s:
                break
            try:
                worker = self._ended.get(timeout=_LOOK_S)
            except queue.Empty:
                self._end_overrunning(running)
                continue
            worker.left = worker.process.leftovers()
            worker.done = True
            if not worker.killed:
                self._moment(Moment.WORKER_ENDED)
        with self._lock:
            self._over = True

    def _running(self) -> list[_Worker]:
        # Under the lock: a fault that is being done may be about to start another worker.
        with self._lock:
            return [worker for worker in self._workers if not worker.done]

    def _end_overrunning(self, running: list[_Worker]) -> None:
        for worker in running:
            if worker.limit_at_s is not None and worker.limit_at_s <= time.monotonic():
                worker.overran = True
                worker.process.end()

    # --- what came of it -------------------------------------------------------------------------

    def _judged(self, duration_s: float) -> Row:
        sentences: list[str] = []
        outcomes: list[str] = []
        last: str | None = None
        outputs = []
        for worker in self._workers:
            out, err = worker.process.stdout.data, worker.process.stderr.data
            outputs.append(Output(worker.number, self._exit_in_words(worker), out, err))
            last = None
            if worker.killed or worker.exit_code is None:
                continue
            complaint, last = read_outcome(out, worker.exit_code)
            if worker.overran:
                complaint, last = f"did not finish within {self._time_limit_s:g} s", None
            who = f"Worker {worker.number}" if len(self._workers) > 1 else "The runtime"
            if complaint:
                sentences.append(f"{who} {complaint}.")
            if worker.left:
                count = worker.left
                sentences.append(f"{who} left processes running ({count}); they were ended.")
            if last is not None:
                outcomes.append(last)
        earlier = outcomes[:-1] if last is not None else outcomes
        tally = self._server.tally()
        sentences += findings(self._scenario, tally, last, earlier=earlier)
        return Row(
            id=self._scenario.id,
            set_name=self._scenario.set_name,
            expected=self._scenario.expected,
            got=got(tally, last),
            duration_s=duration_s,
            findings=tuple(sentences),
            notes=tuple(self._notes()),
            outputs=tuple(outputs),
        )

    def _notes(self) -> list[str]:
        """Say which faults did not happen: the runtime never came to their moment."""
        return [
            f"The fault {fault.do} at {fault.at} did not happen: the runtime never came there."
            for fault in self._script[:1]
        ]

    @staticmethod
    def _exit_in_words(worker: _Worker) -> str:
        code = worker.exit_code
        if worker.killed:
            return "killed by the scenario"
        if worker.overran:
            return "ended at the time limit"
        if code is None:
            return "frozen to the end"
        return f"signal {-code}" if code < 0 else str(code)


def read_outcome(stdout: bytes, exit_code: int) -> tuple[str | None, str | None]:
    """Return what is wrong with a runtime's report, if anything, and the outcome it reported.

    The complaint is a predicate ("printed nothing"), so that a name can go before it.
    """
    try:
        lines = [line for line in stdout.decode("utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError:
        return "printed bytes that are not UTF-8", None
    if exit_code != 0:
        how = f"was ended by signal {-exit_code}" if exit_code < 0 else f"exited with {exit_code}"
        return f"{how}; the contract asks for exit 0", None
    if not lines:
        return 'printed nothing; its last line must be {"outcome": ...}', None
    quoted = lines[-1][:_LINE_MAX]
    try:
        value: Json = json.loads(lines[-1])
    except (ValueError, RecursionError):
        return f"printed a last line that is not JSON: {quoted!r}", None
    if not isinstance(value, dict) or "outcome" not in value:
        return f"printed a last line that is no object with an outcome: {quoted!r}", None
    outcome = value["outcome"]
    if not isinstance(outcome, str) or outcome not in set(Outcome):
        return f"reported {outcome!r}, which is none of {', '.join(Outcome)}"[:_LINE_MAX], None
    return None, outcome
