"""The counting effect owner as a real HTTP server on the loopback interface.

The contract is the seed's ("The runtime contract"): ``POST /effects``, ``GET /effects/{key}``,
``GET /lease``. Beside it ``GET /effects/{key}?fencingToken=n`` carries a token where questions
fence, and ``POST /fence`` with ``{"fencingToken": n}`` raises the bar where a call of its own does.
A request that cannot be read gets 400, is counted, and never ends the server.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import socketserver
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Self, cast
from urllib.parse import parse_qs, unquote, urlsplit

from counterfoil.conformance.ledger import Did, Event, Kind, Ledger, Tally
from counterfoil.conformance.scenario import (
    CallStep,
    Json,
    Moment,
    Reply,
    Says,
    Scenario,
    ScenarioError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REQUEST_BYTES_MAX = 2 * 1024 * 1024
"""One request's body: arguments are bounded at half of this."""

IDLE_S = 30.0
"""Seconds a connection may stay silent before its handler lets go of it."""

QUIESCE_S = 0.5
"""Seconds that a tally waits for requests which were sent and are not read yet."""

_TOKEN = re.compile(r"[0-9]{1,15}", re.ASCII)
_RESET = struct.pack("ii", 1, 0)  # linger on, zero seconds: close by reset

_REPLY_TO_DID = {
    Did.COMMITTED: 200,
    Did.DEDUPLICATED: 200,
    Did.CONFLICT: 422,
    Did.SUPERSEDED: 412,  # no effect of this call; it says nothing of the operation
}


def _ignore(_: object) -> None:
    """Take no notice."""


class OwnerServer:
    """A counting owner that serves one scenario. Use it as a context manager.

    ``on_moment`` is called in the handler's thread at each moment, and the request stands still
    until it returns; ``on_event`` is called with each request once it was answered.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        port: int = 0,
        on_moment: Callable[[Moment], None] = _ignore,
        on_event: Callable[[Event], None] = _ignore,
    ) -> None:
        self.ledger = Ledger(scenario)
        self.on_moment = on_moment
        self.on_event = on_event
        self.stopping = threading.Event()
        self._server = _Server(("127.0.0.1", port), self)
        self._address = ("127.0.0.1", int(self._server.server_address[1]))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    @property
    def url(self) -> str:
        """The base URL, without a slash at its end."""
        return f"http://127.0.0.1:{self._address[1]}"

    def __enter__(self) -> Self:
        """Start to serve."""
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        """Stop, and cut what is still connected."""
        self.stopping.set()
        self.ledger.close()
        self._server.shutdown()
        self._thread.join()
        self._server.cut_all()
        self._server.server_close()

    def tally(self) -> Tally:
        """Let everything land that was sent, and return what the owner holds."""
        if not self.stopping.is_set():
            self._read_what_was_sent()
        return self.ledger.tally()

    def _read_what_was_sent(self) -> None:
        """A dead sender's request may still lie in the accept queue, which is first in first out.

        A connection of our own is accepted after it; then the handlers have a moment to read.
        """
        with (
            contextlib.suppress(OSError),
            socket.create_connection(self._address, QUIESCE_S) as probe,
        ):
            probe.shutdown(socket.SHUT_WR)
            probe.recv(1)
        self._server.wait_until_read(QUIESCE_S)


@contextlib.contextmanager
def effect_owner(scenario: Scenario) -> Iterator[tuple[str, OwnerServer]]:
    """Serve one scenario; give the owner's base URL and the owner, for ``judge``.

    For a runtime that is driven from its own tests. Raises ``ScenarioError`` for a scenario whose
    faults need a process: those are for ``counterfoil runtime``.
    """
    if scenario.needs_a_process:
        raise ScenarioError(
            scenario.id, "/faults", "needs a process to end or start; use `counterfoil runtime`"
        )
    with OwnerServer(scenario) as server:
        yield server.url, server


class _Server(socketserver.ThreadingTCPServer):
    """Numbers its connections in the order in which they are accepted."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], owner: OwnerServer) -> None:
        self.owner = owner
        self._accepted = 0
        self._unread: set[int] = set()
        self._open: set[socket.socket] = set()
        self._to_reset: set[socket.socket] = set()
        self._changed = threading.Condition()
        super().__init__(address, _Handler)

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        """Accept one connection; the number goes where the peer's address would."""
        connection, _ = self.socket.accept()
        with self._changed:
            self._accepted += 1
            self._unread.add(self._accepted)
            self._open.add(connection)
            number = self._accepted
        return connection, ("127.0.0.1", number)

    def shutdown_request(self, request: socket.socket | tuple[bytes, socket.socket]) -> None:
        """Forget a connection that is done, and close it."""
        connection = cast("socket.socket", request)
        with self._changed:
            at_once = connection in self._to_reset
            self._to_reset.discard(connection)
            self._open.discard(connection)
            self._changed.notify_all()
        if at_once:
            self.close_request(connection)
        else:
            super().shutdown_request(connection)

    def close_at_once(self, connection: socket.socket) -> None:
        """Leave out the orderly end, so that the close is a reset."""
        with self._changed:
            self._to_reset.add(connection)

    def was_read(self, number: int) -> None:
        """The request on this connection took effect, or there was none."""
        with self._changed:
            self._unread.discard(number)
            self._changed.notify_all()

    def wait_until_read(self, timeout_s: float) -> None:
        """Wait until each accepted connection was read."""
        deadline_s = time.monotonic() + timeout_s
        with self._changed:
            while self._unread and (left_s := deadline_s - time.monotonic()) > 0:
                self._changed.wait(left_s)

    def cut_all(self) -> None:
        """Shut every connection, and wait until the handlers have let go of them."""
        with self._changed:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._changed.wait_for(lambda: not self._open, QUIESCE_S)

    def handle_error(self, request: object, client_address: object) -> None:
        """A peer that went away in the middle is no error of ours; anything else shows."""
        import sys

        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Unreadable(Exception):
    """A request that breaks the contract; the text says how."""


class _Handler(BaseHTTPRequestHandler):
    """One request, one connection."""

    protocol_version = "HTTP/1.1"
    timeout = IDLE_S

    def handle(self) -> None:
        """Serve a single request, so that a lost reply is a connection of its own."""
        self.tcp = cast("_Server", self.server)
        self.owner = self.tcp.owner
        self.number: int = self.client_address[1]
        try:
            self.handle_one_request()
        finally:
            self.tcp.was_read(self.number)

    def do_POST(self) -> None:
        """Take a call, or raise the bar."""
        try:
            path, query = self._target()
            if path not in ("/effects", "/fence") or query:
                return self._other(404)
            body = self._json_object()
            if path == "/fence":
                return self._fence(_token(body))
            key, args = body.get("idempotencyKey"), body.get("args")
            if not isinstance(key, str) or not key:
                raise _Unreadable("idempotencyKey is no string, or empty")
            if "args" not in body:
                raise _Unreadable("args is missing")
            spelled = json.dumps(args, sort_keys=True)
            token = None if body.get("fencingToken") is None else _token(body)
        except _Unreadable as error:
            return self._malformed(str(error))
        return self._call(key, spelled, token)

    def do_GET(self) -> None:
        """Answer a question about a key, or about the lease."""
        try:
            path, query = self._target()
            if path == "/lease" and not query:
                return self._lease()
            if not path.startswith("/effects/"):
                return self._other(404)
            key = unquote(path.removeprefix("/effects/"), errors="strict")
            if not key or "/" in path.removeprefix("/effects/"):
                raise _Unreadable("the key in the path is empty, or not quoted")
            token = self._token_of_question(query)
        except (_Unreadable, UnicodeDecodeError) as error:
            return self._malformed(str(error))
        return self._lookup(key, token)

    # --- the three questions ---------------------------------------------------------------------

    def _call(self, key: str, args: str, token: int | None) -> None:
        ledger = self.owner.ledger
        event, step = ledger.call_arrived(key, args, token, self.number)
        self.owner.on_moment(Moment.CALL_ARRIVED)
        did = ledger.act(event, step)
        self.tcp.was_read(self.number)
        if did is Did.COMMITTED:
            self.owner.on_moment(Moment.CALL_LANDED)
        if step.reply is Reply.CONFIRMED:
            did = ledger.wait_until_landed(event)
        self._reply(event, step, did)
        self.owner.on_moment(Moment.CALL_ANSWERED)
        self.owner.on_event(event)

    def _reply(self, event: Event, step: CallStep, did: Did) -> None:
        self.owner.stopping.wait(step.delay_s)
        match step.reply:
            case Reply.CONFIRMED if did in _REPLY_TO_DID:
                status = _REPLY_TO_DID[did]
                word = {"effectId": event.effect_id} if status == 200 else {"error": str(did)}
                self._send(status, dict(word), event)
            case Reply.REFUSED:
                self._send(409, {"error": "refused"}, event)
            case Reply.IN_PROGRESS:
                self._send(step.status, {"error": "in_progress"}, event)
            case Reply.STATUS:
                self._send(step.status, {"error": "failed"}, event)
            case Reply.RESET:
                self._reset(event)
            case Reply.CUT:
                self._cut(event)
            case Reply.GARBAGE:
                self._raw(b"\x00\xff 200 is not how a reply begins\r\n\r\n", "garbage", event)
            case Reply.HANG:
                self._hang(event)
            case Reply.LOST | Reply.CONFIRMED:
                event.answer = "closed without an answer"

    def _lookup(self, key: str, token: int | None) -> None:
        ledger = self.owner.ledger
        event = ledger.lookup_arrived(key, token, self.number)
        self.tcp.was_read(self.number)
        self.owner.on_moment(Moment.LOOKUP_ARRIVED)
        step = ledger.lookup_step(event)
        self.owner.stopping.wait(step.delay_s)
        body = ledger.answer(event, step.says)
        match step.says:
            case Says.TRUTH | Says.ABSENT | Says.PARTIAL:
                self._send(200, body, event)
            case Says.UNAVAILABLE:
                self._send(503, {"error": "unavailable"}, event)
            case Says.CUT:
                self._cut(event)
            case Says.GARBAGE:
                self._send_bytes(200, "text/html", b"<html>please sign in</html>", event)
            case Says.HANG:
                self._hang(event)
        self.owner.on_moment(Moment.LOOKUP_ANSWERED)
        self.owner.on_event(event)

    def _lease(self) -> None:
        event = self.owner.ledger.lease(self.number)
        self.tcp.was_read(self.number)
        self.owner.on_moment(Moment.LEASE_READ)
        if event.token_in_force is None:
            self._send(404, {"error": "no leases here"}, event)
        else:
            self._send(200, {"token": event.token_in_force}, event)
        self.owner.on_event(event)

    def _fence(self, token: int) -> None:
        event, bar = self.owner.ledger.raise_bar(token, self.number)
        if bar is None:
            self._send(404, {"error": "no call raises the bar here"}, event)
        else:
            self._send(200, {"token": bar}, event)
        self.owner.on_event(event)

    # --- reading ---------------------------------------------------------------------------------

    def _target(self) -> tuple[str, str]:
        try:
            parts = urlsplit(self.path)
        except ValueError as error:
            raise _Unreadable(str(error)) from None
        return parts.path, parts.query

    def _token_of_question(self, query: str) -> int | None:
        if not query:
            return None
        try:
            members = parse_qs(query, keep_blank_values=True, strict_parsing=True, errors="strict")
        except ValueError:
            members = {}
        texts = members.get("fencingToken", [])
        if set(members) != {"fencingToken"} or len(texts) != 1 or not _TOKEN.fullmatch(texts[0]):
            raise _Unreadable("the query is not fencingToken= and a whole number")
        return int(texts[0])

    def _json_object(self) -> dict[str, Json]:
        try:
            value: Json = json.loads(
                self._body().decode("utf-8"), parse_float=_number, parse_constant=_no_number
            )
            json.dumps(value)
        except (ValueError, RecursionError):
            raise _Unreadable("the body is not JSON") from None
        if not isinstance(value, dict):
            raise _Unreadable("the body is no JSON object")
        return value

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", "").lower():
            return self._chunks()
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > REQUEST_BYTES_MAX:
            raise _Unreadable("Content-Length is missing, no number, or too large")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise _Unreadable("the body is shorter than its Content-Length")
        return body

    def _chunks(self) -> bytes:
        body = bytearray()
        while True:
            size = self.rfile.readline(64).split(b";")[0].strip()
            if not re.fullmatch(rb"[0-9a-fA-F]{1,8}", size):
                raise _Unreadable("a chunk has no size")
            if len(body) + int(size, 16) > REQUEST_BYTES_MAX:
                raise _Unreadable("the body is too large")
            body += self.rfile.read(int(size, 16))
            self.rfile.readline(8)
            if int(size, 16) == 0:
                return bytes(body)

    # --- writing ---------------------------------------------------------------------------------

    def _send(self, status: int, body: dict[str, Json], event: Event) -> None:
        self._send_bytes(status, "application/json", json.dumps(body).encode(), event)

    def _send_bytes(self, status: int, kind: str, body: bytes, event: Event) -> None:
        event.answer = f"{status} {body.decode()}"
        self.send_response_only(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        # A peer that was killed or gave up reads nothing; what took effect stands.
        with contextlib.suppress(OSError):
            self.end_headers()
            self.wfile.write(body)

    def _raw(self, data: bytes, what: str, event: Event) -> None:
        event.answer = what
        with contextlib.suppress(OSError):
            self.wfile.write(data)

    def _cut(self, event: Event) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 64\r\n\r\n{"
        self._raw(head, "cut in the middle", event)

    def _reset(self, event: Event) -> None:
        event.answer = "reset"
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.tcp.close_at_once(self.connection)

    def _hang(self, event: Event) -> None:
        event.answer = "held without an answer"
        self.owner.stopping.wait()

    def _malformed(self, how: str) -> None:
        event = self.owner.ledger.record(Kind.MALFORMED, self.number)
        self._send(400, {"error": how}, event)
        event.answer = how
        self.owner.on_event(event)

    def _other(self, status: int) -> None:
        event = self.owner.ledger.record(Kind.OTHER, self.number)
        self._send(status, {"error": "no such place"}, event)
        self.owner.on_event(event)

    def send_error(
        self,
        code: int,
        message: str | None = None,
        explain: str | None = None,  # noqa: ARG002
    ) -> None:
        """Count what the HTTP parser could not read."""
        self.command = self.command or "?"
        self.request_version = "HTTP/1.1"
        self._malformed(message or f"no request that can be read ({code})")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Write nothing: the events are the log."""


def _number(text: str) -> float:
    """Read 1.0 as 1: equal arguments are the same arguments (RFC 8785)."""
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is no JSON number")


def _token(body: dict[str, Json]) -> int:
    token = body.get("fencingToken")
    if isinstance(token, bool) or not isinstance(token, int) or token < 0:
        raise _Unreadable("fencingToken is no whole number")
    return token
