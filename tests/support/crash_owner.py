"""An owner on loopback that outlives its callers: it counts effects by key and keeps a ledger of
requests, and it can lose a request, lose a reply, or kill the sender at a byte of its choice.

It speaks the seed's contract: ``POST /effects`` with ``idempotencyKey`` and ``args``, and
``GET /effects/{key}`` for ``result``, ``final`` and ``effectId``. Two posts under one key make two
effects: it deduplicates nothing, so that a second send is seen.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import unquote

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT_S = 20.0
"""Seconds after which a wait that should have ended long ago is given up."""


class Step(NamedTuple):
    """What happens to one post. ``kills`` is the byte of the request, "first" or "last", at which
    its sender is sent the signal."""

    commits: bool = True
    replies: bool = True
    kills: str | None = None
    signal: signal.Signals = signal.SIGKILL


COMMIT = Step()
LOSE_BEFORE_COMMIT = Step(commits=False, replies=False)
COMMIT_AND_LOSE_REPLY = Step(replies=False)


class Post(NamedTuple):
    """One post as it came in. ``dispatches`` is what the witness said at its first byte."""

    key: str | None  # None: the request was cut off before its end
    dispatches: int
    committed: bool


class CrashOwner(ThreadingHTTPServer):
    """``script`` says, post by post, what happens; then all is well.

    ``says_final``: its absent answer is the last word, so it waits for every request that reached
    it earlier before it gives one. ``answers``: whether it can be asked at all. ``witness`` is
    called at the first byte of every post; the senders' pids come from ``senders``.
    """

    daemon_threads = True
    request_queue_size = 64

    def __init__(
        self,
        *,
        script: tuple[Step, ...] = (),
        says_final: bool = True,
        answers: bool = True,
        witness: Callable[[], int] = lambda: 0,
    ) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.says_final = says_final
        self.answers = answers
        self.witness = witness
        self.senders: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.posts: list[Post] = []
        self.effects: dict[str, int] = {}
        self.questions = 0
        self._script = list(script)
        self._open: list[object] = []
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.await_quiet()
        self.server_close()

    @property
    def effects_made(self) -> int:
        """How many effects there are, under whatever keys."""
        with self._changed:
            return sum(self.effects.values())

    def await_quiet(self, before: object = None) -> None:
        """Wait until every request that came in (before a given one) has ended."""
        with self._changed:
            ended = self._changed.wait_for(lambda: self._open[:1] in ([], [before]), WAIT_S)
        assert ended, "a request at the owner does not end"

    def process_request(self, request: Any, client_address: Any) -> None:
        # In the accepting thread, so that requests stand here in the order in which they came.
        with self._changed:
            self._open.append(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._changed:
            self._open.remove(request)
            self._changed.notify_all()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A caller that was killed leaves a broken pipe behind; that is what this owner is for."""

    def next_step(self) -> Step:
        """Return what happens to the post that has begun."""
        with self._changed:
            return self._script.pop(0) if self._script else COMMIT

    def record(self, key: str | None, dispatches: int, *, commits: bool) -> str:
        """Write a post into the ledger, and its effect if it commits; return the effect's id."""
        with self._changed:
            self.posts.append(Post(key, dispatches, commits and key is not None))
            if commits and key is not None:
                self.effects[key] = self.effects.get(key, 0) + 1
        return f"e-{key}"

    def kill_sender(self, number: signal.Signals) -> None:
        """Send a signal to the process that is sending, once its pid is known."""
        os.kill(self.senders.get(timeout=WAIT_S), number)


class _Handler(BaseHTTPRequestHandler):
    server: CrashOwner
    connection: socket.socket

    def handle(self) -> None:
        if self.connection.recv(1, socket.MSG_PEEK) == b"P":
            self.handle_post()
        else:
            super().handle()

    def handle_post(self) -> None:
        owner = self.server
        dispatches, step = owner.witness(), owner.next_step()
        if step.kills == "first":
            owner.kill_sender(step.signal)
        key = self.key_of_post()
        if step.kills == "last":
            owner.kill_sender(step.signal)
        effect_id = owner.record(key, dispatches, commits=step.commits)
        if step.replies and key is not None:
            self.say(HTTPStatus.OK, {"idempotencyKey": key, "effectId": effect_id})

    def key_of_post(self) -> str | None:
        """Read the whole request; None if the sender was gone before its last byte."""
        self.raw_requestline = self.rfile.readline()
        if not self.raw_requestline.endswith(b"\n") or not self.parse_request():
            return None
        size = int(self.headers.get("Content-Length", "0"))
        body = self.rfile.read(size)
        if not size or len(body) < size:
            return None
        key = json.loads(body)["idempotencyKey"]
        assert isinstance(key, str)
        return key

    def do_GET(self) -> None:
        owner, key = self.server, unquote(self.path.rpartition("/")[2])
        if not owner.answers:
            self.say(HTTPStatus.SERVICE_UNAVAILABLE, {"error": "not now"})
            return
        if owner.says_final:
            owner.await_quiet(before=self.request)
        owner.questions += 1
        said: dict[str, object]
        if owner.effects.get(key):
            said = {"idempotencyKey": key, "result": "present", "effectId": f"e-{key}"}
        else:
            said = {"idempotencyKey": key, "result": "absent", "final": owner.says_final}
        self.say(HTTPStatus.OK, said)

    def say(self, status: HTTPStatus, said: dict[str, object]) -> None:
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """The ledger is the log."""
