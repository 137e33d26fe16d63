"""Drives the same protocol under asyncio: only waiting differs."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import TYPE_CHECKING, cast

from counterfoil.coordinator.drive import Shell, interrupted
from counterfoil.errors import StoreError
from counterfoil.operation.commands import Call, Pause, Question
from counterfoil.operation.replies import Answer, NoAnswer, Reply, ReplyKind

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from counterfoil.operation.commands import Command, Happened
    from counterfoil.operation.history import Attempt
    from counterfoil.operation.task import Carrying, Ended
    from counterfoil.owners.port import Adapter


async def _do(shell: Shell, command: Command) -> Happened:
    match command:
        case Call():
            return await _call(shell, command.attempt)
        case Question():
            view = shell.question(command)
            if shell.adapter.asks_async:
                asked = cast("Awaitable[Answer | NoAnswer]", shell.adapter.ask(view))
                return await asked
            return cast("Answer | NoAnswer", await asyncio.to_thread(shell.adapter.ask, view))
        case Pause():
            await asyncio.sleep(max(0.0, command.until_s - shell.clock.monotonic_s()))
            return None
        case _ if shell.interruption is not None:
            # The task was cancelled: what was seen is recorded without giving way again.
            return shell.do_at_store(command)
        case _:
            return await asyncio.to_thread(shell.do_at_store, command)


async def _call(shell: Shell, attempt: Attempt) -> Reply:
    adapter = shell.adapter
    if attempt.deadline_s is None:
        shell.heart.start(shell.stream)
        try:
            return await _call_now(shell, adapter, attempt)
        finally:
            shell.heart.end(shell.stream)
    return await _call_now(shell, adapter, attempt)


async def _call_now(shell: Shell, adapter: Adapter, attempt: Attempt) -> Reply:
    view = shell.view(attempt, attempt.token)
    if adapter.calls_async:
        try:
            async with asyncio.timeout(attempt.deadline_s):
                return await cast("Awaitable[Reply]", adapter.call(view))
        except TimeoutError:
            return Reply(ReplyKind.TIMEOUT, detail="the call was cancelled at its deadline")
        except BaseException as error:  # noqa: BLE001 - cancelled: raised again by `drive_async`
            shell.interruption = error
            return Reply(ReplyKind.CONNECTION_LOST, detail=interrupted(error))
    deadline_s = None if adapter.bounds_calls else attempt.deadline_s
    future: Future[Reply] = Future()

    def run() -> None:
        future.set_result(cast("Reply", adapter.call(view)))

    thread = asyncio.get_running_loop().run_in_executor(None, run)
    try:
        async with asyncio.timeout(deadline_s):
            await asyncio.shield(thread)
            return future.result()
    except TimeoutError:
        return shell.overdue(future, attempt.number)
    except BaseException as error:  # noqa: BLE001 - cancelled: raised again by `drive_async`
        shell.overdue(future, attempt.number)
        shell.interruption = error
        return Reply(ReplyKind.CONNECTION_LOST, detail=interrupted(error), ended=False)


async def drive_async(carrying: Carrying, shell: Shell) -> Ended:
    """Run a carrying to its end under asyncio; a cancellation is recorded, then raised again."""
    try:
        command = next(carrying)
        while True:
            try:
                happened = await _do(shell, command)
            except StoreError as error:
                command = carrying.throw(error)
            else:
                command = carrying.send(shell.sent(happened))
    except StopIteration as stop:
        ended: Ended = stop.value
    if shell.interruption is not None:
        raise shell.interruption
    return ended
