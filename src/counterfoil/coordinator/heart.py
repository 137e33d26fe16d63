"""Heartbeats: while a call without a deadline runs, its lease is renewed.

A heartbeat only keeps others from asking and waiting in vain. It licenses nothing, and a worker
that lost its lease does not take it back.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from counterfoil.errors import StoreError
from counterfoil.operation.events import Leased, NewEvent
from counterfoil.operation.takeover import Standing, standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from counterfoil.coordinator.drive import Clock
    from counterfoil.coordinator.worker import Worker
    from counterfoil.operation.identity import StreamId
    from counterfoil.store.port import Store

BEATS_A_LEASE = 3


class Heart:
    """Renews the leases of operations whose calls are running; its thread starts when needed."""

    def __init__(
        self,
        store: Store,
        worker: Worker,
        clock: Clock,
        lease_s: float,
        new_id: Callable[[], bytes],
    ) -> None:
        self._store, self._worker, self._clock = store, worker, clock
        self._lease_s = lease_s
        self._new_id = new_id
        self._running: dict[StreamId, None] = {}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, stream: StreamId) -> None:
        """Beat for this operation from now on."""
        self._running[stream] = None
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._beat, name="counterfoil heart", daemon=True
            )
            self._thread.start()

    def end(self, stream: StreamId) -> None:
        """The call has returned."""
        self._running.pop(stream, None)

    def close(self) -> None:
        """Stop beating, and wait for a beat that is under way."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _beat(self) -> None:
        while not self._stop.wait(self._lease_s / BEATS_A_LEASE):
            for stream in list(self._running):
                try:
                    self.renew(stream)
                except StoreError:
                    return  # nothing is sent from a store that failed; a lease is no loss

    def renew(self, stream: StreamId) -> None:
        """Renew one lease, under its own token, if it is still this worker's."""
        history = self._store.load(stream)
        if history is None or not history.leases or history.settled is not None:
            return
        now_us = self._clock.now_us()
        if standing(history, self._worker.id, now_us) is not Standing.MINE:
            return
        if now_us - history.leases[-1].acquired_at_us < self._lease_s * 1_000_000 / BEATS_A_LEASE:
            return  # it was taken since the last beat
        event = NewEvent(
            self._new_id(), self._worker.id, Leased(self._lease_s), history.leases[-1].token
        )
        self._store.append(stream, history, [event], claim=None, by=self._worker.record)
