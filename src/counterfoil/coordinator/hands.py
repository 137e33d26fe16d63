"""One thread or task at a time carries an operation; others here wait, or are told."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from counterfoil.errors import OperationInFlight

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from counterfoil.coordinator.drive import Clock
    from counterfoil.operation.identity import StreamId
    from counterfoil.operation.task import Task

LOOK_S = 0.005
"""Seconds between two tries of a task that must not block its event loop."""


class Hands:
    """A lock for each operation that is being carried, for as long as somebody wants it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._guard = threading.Lock()
        self._locks: dict[StreamId, tuple[threading.Lock, int]] = {}

    @contextmanager
    def on(self, task: Task) -> Iterator[None]:
        """Hold the operation. Raises ``OperationInFlight`` when patience runs out."""
        lock = self._want(task.stream)
        try:
            if not lock.acquire(timeout=task.patience_s if task.wait_if_in_flight else 0):
                raise OperationInFlight(task.stream.operation_id)
            try:
                yield
            finally:
                lock.release()
        finally:
            self._drop(task.stream)

    @asynccontextmanager
    async def on_async(self, task: Task) -> AsyncIterator[None]:
        """As ``on``, without blocking the event loop."""
        lock = self._want(task.stream)
        patience_s = task.patience_s if task.wait_if_in_flight else 0.0
        give_up_at_s = self._clock.monotonic_s() + patience_s
        try:
            while not lock.acquire(blocking=False):
                if self._clock.monotonic_s() >= give_up_at_s:
                    raise OperationInFlight(task.stream.operation_id)
                await asyncio.sleep(LOOK_S)
            try:
                yield
            finally:
                lock.release()
        finally:
            self._drop(task.stream)

    def _want(self, stream: StreamId) -> threading.Lock:
        with self._guard:
            lock, wanted = self._locks.get(stream) or (threading.Lock(), 0)
            self._locks[stream] = (lock, wanted + 1)
            return lock

    def _drop(self, stream: StreamId) -> None:
        with self._guard:
            lock, wanted = self._locks[stream]
            if wanted == 1:
                del self._locks[stream]
            else:
                self._locks[stream] = (lock, wanted - 1)
