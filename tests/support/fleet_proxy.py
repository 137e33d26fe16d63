"""A wire between a worker and its owner that delivers the first call's bytes later."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from typing import TYPE_CHECKING, Self

from fleet_owner import read_request, reset

if TYPE_CHECKING:
    from collections.abc import Callable

    from fleet_owner import FleetOwner


class DelayingWire:
    """Holds the bytes of the first call and cuts its sender off; passes on whatever follows.

    ``deliver`` brings the held bytes to the owner. ``when``: "before" or "after" says on which side
    of the second call's bytes that happens by itself. ``on_hold`` is called when the first call is
    held. An owner that promises to settle in time promises it of its wire too: what was held for
    ``bound_s`` or more, on ``clock``, is lost. Use it as a context manager.
    """

    def __init__(
        self,
        owner: FleetOwner,
        *,
        when: str,
        clock: Callable[[], float],
        bound_s: float | None = None,
        on_hold: Callable[[], object] = lambda: None,
    ) -> None:
        self.calls = 0
        self._owner, self._when, self._on_hold = owner, when, on_hold
        self._clock, self._bound_s = clock, bound_s
        self._held: bytes | None = None
        self._held_since_s = 0.0
        self._key: str | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._closing = False
        self._serving = threading.Thread(target=self._serve, daemon=True)
        owner.held_elsewhere = lambda key: key == self._key

    @property
    def url(self) -> str:
        """Where the worker finds its owner."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def deliver(self) -> None:
        """Bring the held call to the owner, if it is held and may still arrive."""
        held, self._held = self._held, None
        held_s = self._clock() - self._held_since_s
        if held is not None and (self._bound_s is None or held_s < self._bound_s):
            self._exchange(held)
        self._key = None

    def __enter__(self) -> Self:
        self._serving.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing = True
        with contextlib.suppress(OSError), socket.create_connection(self._listener.getsockname()):
            pass  # ends the wait in accept()
        self._serving.join()
        self._listener.close()

    def _serve(self) -> None:
        """One connection at a time: the one worker sends one request at a time."""
        while True:
            connection, _ = self._listener.accept()
            if self._closing:
                connection.close()
                return
            with contextlib.suppress(OSError), connection:
                connection.settimeout(20.0)
                self._pass_on(connection)

    def _pass_on(self, connection: socket.socket) -> None:
        request = read_request(connection)
        if request is None:
            return
        line, body, raw = request
        if not line.startswith("POST /effects "):
            connection.sendall(self._exchange(raw))
            return
        self.calls += 1
        if self.calls == 1:
            self._held, self._key = raw, json.loads(body)["idempotencyKey"]
            self._held_since_s = self._clock()
            self._on_hold()
            reset(connection)
            return
        if self._when == "before":
            self.deliver()
        said = self._exchange(raw)
        if self._when == "after":
            self.deliver()
        connection.sendall(said)

    def _exchange(self, raw: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", self._owner.port), 20.0) as wire:
            wire.sendall(raw)
            said = b""
            while more := wire.recv(65536):
                said += more
            return said
