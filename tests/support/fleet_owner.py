"""An owner over real HTTP that counts effects by key, loses replies, commits late and refuses.

The contract is the seed's: ``POST /effects``, ``GET /effects/{key}``, ``GET /lease``, and
``POST /fence``. Its ledger is plain and shares nothing with the code under test. It keeps what it
promises: where it is final by its answer, ``final`` counts every request that was accepted before
the question, read or not; where it settles within T, a request that would land later is dropped.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

READ_EARLIER_S = 0.05
"""Seconds that a question waits for the requests that were accepted before it."""

IDLE_S = 60.0
"""Seconds that a connection may stay silent; a frozen sender is silent for some."""

FENCING = ("on_send", "on_ask", "by_call", "by_lease")


class Fate(Enum):
    """What becomes of one call."""

    WELL = "well"
    LOST = "lost"  # commits, and the connection is closed without a reply
    DROPPED = "dropped"  # never commits, and the connection is closed without a reply
    LATE = "late"  # the connection is closed first, and then it commits
    SLOW = "slow"  # commits, and the reply comes after the caller's deadline
    REFUSED = "refused"  # the documented refusal


@dataclass(frozen=True)
class Faults:
    """How often each fate is met, of one; ``refused`` is a share of the keys, for good."""

    lost: float = 0.0
    dropped: float = 0.0
    late: float = 0.0
    slow: float = 0.0
    refused: float = 0.0
    unanswered: float = 0.0
    late_s_max: float = 0.2
    slow_s: float = 1.3


class Effect(NamedTuple):
    """One entry of the ledger."""

    id: str
    args: str
    token: int | None


class FleetOwner:
    """Use it as a context manager. ``faults`` may be replaced while it serves.

    ``clock`` measures ``settles_within_s``. ``hold_calls``: each call that arrives waits, accepted
    and uncommitted, until ``release``. ``held_elsewhere`` says whether a request under a key is
    still on its way through something that stands before this owner.
    """

    def __init__(
        self,
        *,
        seed: int = 0,
        final: bool = False,
        settles_within_s: float | None = None,
        fences: str = "no",
        deduplicates: bool = False,
        faults: Faults | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.faults = Faults() if faults is None else faults
        self.hold_calls = False
        self.held_elsewhere: Callable[[str], bool] = lambda key: False
        self.sends: Counter[str] = Counter()
        self.questions: Counter[str] = Counter()
        self._seed, self._final, self._fences = seed, final, fences
        self._settles_within_s, self._deduplicates = settles_within_s, deduplicates
        self._clock = clock
        self._ledger: dict[str, list[Effect]] = {}
        self._pending: Counter[str] = Counter()
        self._bar = 1
        self._changed = threading.Condition()
        self._unread: set[int] = set()
        self._connections: set[socket.socket] = set()
        self._held = 0
        self._released = threading.Event()
        self._closing = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self._accepting = threading.Thread(target=self._accept, daemon=True)

    # --- what a test looks at --------------------------------------------------------------------

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    @property
    def url(self) -> str:
        """The base URL, without a slash at its end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def effects(self) -> dict[str, int]:
        """How many effects there are under each key."""
        with self._changed:
            return {key: len(made) for key, made in self._ledger.items()}

    @property
    def count(self) -> int:
        """How many effects there are."""
        return sum(self.effects.values())

    def refuses(self, key: str) -> bool:
        """Whether this key is one of those that are refused."""
        return random.Random(f"{self._seed} refused {key}").random() < self.faults.refused

    def wait_for(self, holds: Callable[[], bool], timeout_s: float = 20.0) -> None:
        """Wait until something holds; it is looked at whenever a request was handled."""
        with self._changed:
            assert self._changed.wait_for(holds, timeout_s), "it did not happen in time"

    def wait_until_held(self, calls: int = 1) -> None:
        """Wait until so many calls are held."""
        self.wait_for(lambda: self._held >= calls)

    def release(self) -> None:
        """Let every held call go on, and hold no more."""
        self.hold_calls = False
        self._released.set()

    def settle(self) -> None:
        """Wait until everything that was accepted has been read and has landed."""
        with self._changed:
            done = self._changed.wait_for(
                lambda: not self._unread and not +self._pending, 2 * IDLE_S
            )
            assert done, "requests are still on their way"

    def move_lease(self) -> None:
        """Grant the lease anew: the token before it is superseded (``by_lease``)."""
        with self._changed:
            self._bar += 1

    # --- serving ---------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._released.set()
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
            pass  # ends the wait in accept()
        self._accepting.join()
        self._listener.close()
        with self._changed:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            assert self._changed.wait_for(lambda: not self._connections, 10.0)

    def _accept(self) -> None:
        number = 0
        while True:
            connection, _ = self._listener.accept()
            if self._closing.is_set():
                connection.close()
                return
            number += 1
            with self._changed:
                self._unread.add(number)
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection, number), daemon=True).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            connection.settimeout(IDLE_S)
            request = read_request(connection)
            if request is not None:
                self._handle(connection, number, request[0], request[1])
        except (OSError, ValueError):
            pass  # the sender died, or was cut: that is what this owner is for
        finally:
            connection.close()
            with self._changed:
                self._unread.discard(number)
                self._connections.discard(connection)
                self._changed.notify_all()

    def _handle(self, connection: socket.socket, number: int, line: str, body: bytes) -> None:
        method, target, _ = line.split(" ")
        path, _, query = target.partition("?")
        if method == "POST" and path == "/effects":
            self._call(connection, number, json.loads(body))
        elif method == "POST" and path == "/fence":
            reply(connection, 200, {"token": self._raise(json.loads(body)["fencingToken"])})
        elif path == "/lease":
            reply(connection, 200, {"token": self._bar})
        else:
            token = int(query.removeprefix("fencingToken=")) if query else None
            self._question(connection, number, path.removeprefix("/effects/"), token)

    # --- calls -----------------------------------------------------------------------------------

    def _call(self, connection: socket.socket, number: int, said: Mapping[str, object]) -> None:
        key, token = str(said["idempotencyKey"]), said.get("fencingToken")
        assert token is None or isinstance(token, int)
        args = json.dumps(said["args"], sort_keys=True)
        sent_at_s = self._clock()
        with self._changed:  # pending before it counts as read: no question sees neither
            self.sends[key] += 1
            self._pending[key] += 1
            self._unread.discard(number)
            self._changed.notify_all()
            fate, random_part = self._fate(key, self.sends[key])
        made: Effect | str | None = None
        try:
            if fate is Fate.LATE:
                connection.close()
                self._closing.wait(random_part * self.faults.late_s_max)
            elif self.hold_calls:
                self._hold()
            if fate is not Fate.DROPPED and not self._closing.is_set():
                made = self._commit(key, args, token, sent_at_s, refused=fate is Fate.REFUSED)
        finally:
            with self._changed:
                self._pending[key] -= 1
                self._changed.notify_all()
        if fate is Fate.SLOW:
            self._closing.wait(self.faults.slow_s)
        if fate in (Fate.WELL, Fate.SLOW, Fate.REFUSED) and made is not None:
            answer(connection, made, key)

    def _hold(self) -> None:
        with self._changed:
            self._held += 1
            self._changed.notify_all()
        self._released.wait(IDLE_S)

    def _fate(self, key: str, nth: int) -> tuple[Fate, float]:
        faults = self.faults
        if self.refuses(key):
            return Fate.REFUSED, 0.0
        seeded = random.Random(f"{self._seed} {key} {nth}")
        at = seeded.random()
        for fate, share in (
            (Fate.LOST, faults.lost),
            (Fate.DROPPED, faults.dropped),
            (Fate.LATE, faults.late),
            (Fate.SLOW, faults.slow),
        ):
            if at < share:
                return fate, seeded.random()
            at -= share
        return Fate.WELL, 0.0

    def _commit(
        self, key: str, args: str, token: int | None, sent_at_s: float, *, refused: bool
    ) -> Effect | str | None:
        """Make the effect; the word of a refusal; None where a promise forbids it by now."""
        if refused:
            return "refused"
        with self._changed:
            late_s = self._clock() - sent_at_s
            if self._settles_within_s is not None and late_s >= self._settles_within_s:
                return None
            if self._fences in FENCING and token is not None:
                if token < self._bar:
                    return "token_superseded"
                if self._fences != "by_lease":
                    self._bar = token
            made = self._ledger.setdefault(key, [])
            if not (self._deduplicates and made):
                made.append(Effect(f"e-{len(self._ledger)}-{len(made)}", args, token))
            return made[-1]

    # --- questions -------------------------------------------------------------------------------

    def _question(
        self, connection: socket.socket, number: int, key: str, token: int | None
    ) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._all_read_before(number), READ_EARLIER_S)
            self.questions[key] += 1
            self._unread.discard(number)
            self._changed.notify_all()
            if token is not None and self._fences == "on_ask":
                self._bar = max(self._bar, token)
            seeded = random.Random(f"{self._seed} question {key} {self.questions[key]}")
            if seeded.random() < self.faults.unanswered:
                return
            made = self._ledger.get(key)
            said: dict[str, object] = {"result": "absent", "final": False}
            if made:
                said = {"result": "present", "effectId": made[0].id}
            elif self._final and not self._pending[key] and self._all_read_before(number):
                said["final"] = not self.held_elsewhere(key)
        reply(connection, 200, said)

    def _all_read_before(self, number: int) -> bool:
        return min(self._unread, default=number) >= number

    def _raise(self, token: int) -> int:
        with self._changed:
            if self._fences == "by_call":
                self._bar = max(self._bar, token)
            return self._bar


# --- the wire ------------------------------------------------------------------------------------


def read_request(connection: socket.socket) -> tuple[str, bytes, bytes] | None:
    """Return a request's first line, its body and all its bytes; None where it was not all sent."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    first, *fields = head.decode("ascii").split("\r\n")
    lengths = [f.partition(":")[2] for f in fields if f.lower().startswith("content-length:")]
    length = int(lengths[0]) if lengths else 0
    while len(body) < length:
        more = connection.recv(65536)
        if not more:
            return None
        body += more
    return first, body, head + b"\r\n\r\n" + body


def answer(connection: socket.socket, made: Effect | str, key: str) -> None:
    """Reply to a call: the effect, or the word of a refusal."""
    if isinstance(made, Effect):
        reply(connection, 200, {"effectId": made.id, "idempotencyKey": key})
    else:
        reply(connection, 412 if made == "token_superseded" else 409, {"error": made})


def reply(connection: socket.socket, status: int, said: Mapping[str, object]) -> None:
    """Send one JSON reply, and end the connection."""
    body = json.dumps(said).encode()
    head = (
        f"HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    connection.sendall(head.encode("ascii") + body)
    connection.shutdown(socket.SHUT_WR)


def reset(connection: socket.socket) -> None:
    """Close by a reset."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
