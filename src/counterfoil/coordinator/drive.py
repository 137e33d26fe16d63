"""Drives the protocol against a store, an owner and this machine, in the caller's thread."""

from __future__ import annotations

import contextvars
import json
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from counterfoil.errors import StoreError
from counterfoil.operation.commands import (
    Append,
    Appended,
    Call,
    Load,
    Pause,
    Prove,
    Question,
    RaiseFence,
    ReadToken,
    Sent,
)
from counterfoil.operation.events import FORGOTTEN, Dispatched
from counterfoil.operation.replies import Answer, NoAnswer, Reply, ReplyKind
from counterfoil.owners import port

if TYPE_CHECKING:
    from collections.abc import Callable

    from counterfoil.coordinator.heart import Heart
    from counterfoil.coordinator.missions import Missions
    from counterfoil.coordinator.worker import Worker
    from counterfoil.operation.commands import Command, Happened
    from counterfoil.operation.history import Attempt, History
    from counterfoil.operation.identity import StreamId
    from counterfoil.operation.task import Carrying, Ended
    from counterfoil.store.port import Store


class Clock(Protocol):
    """Two clocks and a way to wait."""

    def now_us(self) -> int:
        """Return the wall clock in microseconds since 1970."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds that never go back."""
        ...

    def sleep_until(self, until_s: float) -> None:
        """Wait until ``monotonic_s`` reaches ``until_s``."""
        ...


@dataclass
class Shell:
    """What carries out one operation's commands. It decides nothing.

    ``late`` is told of a reply that came after its call had run past its deadline.
    """

    store: Store
    worker: Worker
    clock: Clock
    stream: StreamId
    adapter: port.Adapter
    late: Callable[[int, Reply], None]
    heart: Heart
    missions: Missions
    history: History | None = None
    interruption: BaseException | None = None
    lease_ends_at_s: float = 0.0

    def sent(self, happened: Happened) -> Sent:
        """Return what happened, with the time and whether to go on."""
        clock = self.clock
        stop = self.interruption is not None
        return Sent(happened, clock.now_us(), clock.monotonic_s(), stop)

    def do(self, command: Command) -> Happened:
        """Carry out one command in this thread."""
        match command:
            case Call():
                return self.call(command.attempt)
            case Question():
                view = self.question(command)
                return cast("Answer | NoAnswer", self.adapter.ask(view))
            case Pause():
                self.clock.sleep_until(command.until_s)
                return None
            case _:
                return self.do_at_store(command)

    def do_at_store(self, command: Command) -> Happened:
        """Carry out a command that waits for no call and no answer."""
        match command:
            case Load():
                self.history = self.store.load(self.stream)
                return self.history
            case Append():
                began_s = self.clock.monotonic_s()
                before = self.history if command.expected_n else None
                result = self.missions.append(self.stream, before, command.events, command.claim)
                if isinstance(result, Appended):
                    self.history = result.history
                    last = command.events[-1].body
                    if isinstance(last, Dispatched):
                        self.lease_ends_at_s = began_s + last.lease_s
                return result
            case ReadToken():
                return self.adapter.read_token()
            case RaiseFence():
                view = self.view(command.attempt, command.token)
                return self.adapter.raise_fence(view)
            case Prove():
                return self.prove(command.workers)
            case _:
                raise AssertionError(command)

    def prove(self, workers: tuple[str, ...]) -> dict[str, str]:
        """Return which workers are proven dead, and why."""
        proven = {}
        for name in workers:
            if name == FORGOTTEN:
                why = self.worker.proof_that_all_before_died()
                if why is not None:
                    proven[name] = why
                continue
            record = self.store.worker(name)
            why = self.worker.proof_of_death(record) if record is not None else None
            if why is not None:
                proven[name] = why
        return proven

    def view(self, attempt: Attempt, token: int | None) -> port.Attempt:
        """Return an attempt as an adapter sees it."""
        return port.Attempt(
            self.operation(), attempt.number, attempt.key, token, attempt.deadline_s
        )

    def operation(self) -> port.Operation:
        """Return the operation as an adapter sees it, its arguments as they were digested."""
        assert self.history is not None
        opened, stream = self.history.opened, self.stream
        return port.Operation(
            id=stream.operation_id,
            action=opened.action,
            tenant=stream.tenant,
            arguments=json.loads(opened.arguments or "{}"),
            preconditions=json.loads(opened.preconditions) if opened.preconditions else {},
        )

    def question(self, asked: Question) -> port.Attempt:
        """Return what a look-up is given; number 0 where nothing was dispatched yet."""
        if asked.attempt is not None:
            return self.view(asked.attempt, asked.fence)
        return port.Attempt(self.operation(), 0, asked.key, None, None)

    def call(self, attempt: Attempt) -> Reply:
        """Send the attempt; an interrupt is recorded as unknown and goes on up afterwards."""
        view = self.view(attempt, attempt.token)._replace(look=self.look)
        try:
            if self.adapter.bounds_calls:
                return cast("Reply", self.adapter.call(view))
            if attempt.deadline_s is None:
                return self.call_unbounded(view)
            return self.call_bounded(view, attempt.deadline_s)
        except BaseException as error:  # noqa: BLE001 - an interrupt: raised again by `drive`
            self.interruption = error
            ended = attempt.deadline_s is None or self.adapter.bounds_calls
            return Reply(ReplyKind.CONNECTION_LOST, detail=interrupted(error), ended=ended)

    def look(self) -> str | None:
        """The look before the first byte, where an adapter can take it: is the lease still ours?"""
        if self.clock.monotonic_s() >= self.lease_ends_at_s:
            return "its lease ended before the first byte"
        return None

    def call_unbounded(self, view: port.Attempt) -> Reply:
        """Call in this thread for as long as it takes, the lease renewed meanwhile."""
        self.heart.start(self.stream)
        try:
            return cast("Reply", self.adapter.call(view))
        finally:
            self.heart.end(self.stream)

    def call_bounded(self, view: port.Attempt, deadline_s: float) -> Reply:
        """Call on a thread of its own; past the deadline the call has not ended, only our wait."""
        future: Future[Reply] = Future()
        context = contextvars.copy_context()

        def run() -> None:
            try:
                future.set_result(context.run(lambda: cast("Reply", self.adapter.call(view))))
            except BaseException as error:  # noqa: BLE001 - the thread's end is the call's end
                future.set_result(Reply(ReplyKind.CONNECTION_LOST, detail=interrupted(error)))

        threading.Thread(target=run, name=f"counterfoil {view.key}", daemon=True).start()
        try:
            return future.result(deadline_s)
        except FutureTimeout:
            return self.overdue(future, view.number)
        except BaseException:
            self.overdue(future, view.number)
            raise

    def overdue(self, future: Future[Reply], number: int) -> Reply:
        """Return what is seen at the deadline; the reply is recorded when the call returns."""
        future.add_done_callback(lambda done: self.late(number, done.result()))
        detail = "the call ran past its deadline and has not returned"
        return Reply(ReplyKind.TIMEOUT, detail=detail, ended=False)


def interrupted(error: BaseException) -> str:
    """Say that a call was broken off from our side."""
    return f"interrupted by {type(error).__name__}"


def drive(carrying: Carrying, shell: Shell) -> Ended:
    """Run a carrying to its end. What interrupted a call is raised again after it was recorded."""
    try:
        command = next(carrying)
        while True:
            try:
                happened = shell.do(command)
            except StoreError as error:
                command = carrying.throw(error)
            else:
                command = carrying.send(shell.sent(happened))
    except StopIteration as stop:
        ended: Ended = stop.value
    if shell.interruption is not None:
        raise shell.interruption
    return ended
