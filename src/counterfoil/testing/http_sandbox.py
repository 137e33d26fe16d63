"""A proxy on loopback between a user's client and the user's sandbox server, which loses replies,
delivers late, serves stale reads and delivers twice: real sockets, chosen moments.
"""

from __future__ import annotations

import contextlib
import http.client
import select
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast
from urllib.parse import unquote_plus, urlsplit

from counterfoil.errors import BadInput, BrokenWorld
from counterfoil.operation.promises import Duration, seconds
from counterfoil.testing.sandbox import Fault, Request

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from counterfoil.owners.port import Attempt

UPSTREAM_TIMEOUT_S = 30.0
"""Seconds that the server behind the proxy may take for one reply."""

SILENCE_S = 10.0
"""Seconds that a caller is left without a reply before its connection is closed."""

CHUNK_LINE_BYTES_MAX = 1024
"""Bytes of a line that frames a chunk."""

READS = frozenset({"GET", "HEAD", "OPTIONS"})

# RFC 9110, 7.6.1: these belong to one connection; Host and the length are written anew.
PER_CONNECTION = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "expect",
        "host",
        "content-length",
    }
)

Headers = tuple[tuple[str, str], ...]


class HttpRequest(NamedTuple):
    """One request as the client sent it; ``target`` is the path and query as on the wire."""

    method: str
    target: str
    headers: Headers
    body: bytes


class _Response(NamedTuple):
    status: int
    reason: str
    headers: Headers
    body: bytes


class HttpSandbox:
    """Stands between your client and your sandbox server; point the client at ``sandbox.url``.

    ``upstream`` is the server's base URL, ``arguments`` makes named arguments for one new
    operation, ``effects`` counts what the server really holds (ask it directly, past the proxy).
    ``writes`` says which requests belong to a call; without it, all but GET, HEAD and OPTIONS do.
    ``silence`` is how long a caller hears nothing before it is cut off: let its own time-out be
    shorter. Use it as a context manager. Raises ``BadInput`` for a URL that is not http or https.
    """

    def __init__(
        self,
        upstream: str,
        *,
        arguments: Callable[[], Mapping[str, Any]],
        effects: Callable[[Attempt], int],
        writes: Callable[[HttpRequest], bool] | None = None,
        silence: Duration = SILENCE_S,
    ) -> None:
        parts = urlsplit(upstream)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(f"{upstream!r} is no server's URL; write http://host or https://host")
        self._scheme, self._netloc = parts.scheme, parts.netloc.rpartition("@")[2]
        self._arguments, self._effects, self._writes = arguments, effects, writes
        self._silence_s = seconds(silence, of="silence")
        self._lock = threading.Lock()
        self._fault: Fault | None = None
        self._held: list[HttpRequest] = []
        self._heard: list[Request] = []
        self._last_reads: dict[tuple[str, str], _Response] = {}
        self._stale: dict[tuple[str, str], _Response] | None = None
        self._stopped = threading.Event()
        self._server = _Server(self)
        port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{port}{parts.path.rstrip('/')}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), name="http sandbox", daemon=True
        )

    # --- the sandbox -----------------------------------------------------------------------------

    def arguments(self) -> Mapping[str, Any]:
        """Return named arguments for one new operation."""
        return self._arguments()

    def effects(self, attempt: Attempt) -> int:
        """Return how many effects the server holds."""
        return self._effects(attempt)

    def set_fault(self, fault: Fault | None) -> bool:
        """Let calls meet this fault, or pass."""
        with self._lock:
            self._fault = fault
            if fault is Fault.STALE_READ:
                self._stale = dict(self._last_reads)
        return True

    def release(self) -> None:
        """Deliver what is held, wait for the server's replies, and serve reads afresh.

        Raises ``BrokenWorld`` if the server cannot be reached.
        """
        with self._lock:
            self._stale = None
            held, self._held = self._held, []
        for request in held:
            try:
                self._forward(request)
            except (OSError, http.client.HTTPException) as error:
                raise BrokenWorld(
                    f"the sandbox server at {self._netloc} did not take a request "
                    f"({type(error).__name__}); start it, and check again"
                ) from error

    def requests(self) -> Sequence[Request]:
        """Return every request so far, in order."""
        with self._lock:
            return tuple(self._heard)

    # --- its life --------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the proxy; what is still held is never delivered."""
        self._stopped.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    # --- one exchange ----------------------------------------------------------------------------

    def serve(self, request: HttpRequest, client: socket.socket) -> bytes | None:
        """Return the bytes to send back, or None to close the connection without a reply."""
        writes = request.method not in READS
        if self._writes is not None:
            writes = self._writes(request)
        with self._lock:
            line = f"{request.method} {request.target}"
            self._heard.append(Request(writes, line, _text(request)))
            fault = self._fault if writes else None
            stale = None if writes or self._stale is None else self._stale.get(_place(request))
            if fault is Fault.LATE_COMMIT:
                self._held.append(request)
                return None
        if stale is not None:
            return _wire(stale, request.method)
        try:
            response = self._forward(request)
            if fault is Fault.SENT_TWICE:
                response = self._forward(request)
        except (OSError, http.client.HTTPException) as error:
            said = f"the sandbox server did not answer: {type(error).__name__}\n".encode()
            response = _Response(502, "Bad Gateway", (("Content-Type", "text/plain"),), said)
        if fault is Fault.NO_REPLY:
            self._keep_silent(client)
        if fault in (Fault.NO_REPLY, Fault.CUT_REPLY, Fault.STALE_READ):
            return None
        if not writes:
            with self._lock:
                self._last_reads[_place(request)] = response
        return _wire(response, request.method)

    def _forward(self, request: HttpRequest) -> _Response:
        secure = self._scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(self._netloc, timeout=UPSTREAM_TIMEOUT_S)
        with contextlib.closing(connection):
            connection.putrequest(
                request.method, request.target, skip_host=True, skip_accept_encoding=True
            )
            connection.putheader("Host", self._netloc)
            for name, value in request.headers:
                connection.putheader(name, value)
            connection.putheader("Connection", "close")
            if request.body or request.method not in READS:
                connection.putheader("Content-Length", str(len(request.body)))
            connection.endheaders(request.body)
            got = connection.getresponse()
            headers = tuple(h for h in got.getheaders() if h[0].lower() not in PER_CONNECTION)
            return _Response(got.status, got.reason, headers, got.read())

    def _keep_silent(self, client: socket.socket) -> None:
        """Wait until the caller hangs up, or has waited long enough."""
        until_s = time.monotonic() + self._silence_s
        while time.monotonic() < until_s and not self._stopped.is_set():
            readable, _, _ = select.select([client], [], [], 0.02)
            if readable:
                return  # it closed: nothing more is due from it on this connection


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # `server_close` waits for every exchange

    def __init__(self, sandbox: HttpSandbox) -> None:
        self.sandbox = sandbox
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    """Reads one request, and closes the connection after it."""

    protocol_version = "HTTP/1.1"
    timeout = UPSTREAM_TIMEOUT_S

    def handle(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self.raw_requestline = self.rfile.readline(65_537)
            if self.raw_requestline and self.parse_request():
                sandbox = cast("_Server", self.server).sandbox
                reply = sandbox.serve(self._request(), self.connection)
                if reply is not None:
                    self.wfile.write(reply)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing: a caller that hangs up is what this is for."""

    def _request(self) -> HttpRequest:
        headers = tuple(h for h in self.headers.items() if h[0].lower() not in PER_CONNECTION)
        return HttpRequest(self.command, self.path, headers, self._body())

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", "").lower():
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        body = b""
        while size := int(self.rfile.readline(CHUNK_LINE_BYTES_MAX).split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline(CHUNK_LINE_BYTES_MAX)
        while self.rfile.readline(CHUNK_LINE_BYTES_MAX).strip():
            pass  # trailers
        return body


def _place(request: HttpRequest) -> tuple[str, str]:
    return request.method, request.target


def _text(request: HttpRequest) -> str:
    """All of a request, in which a key can be searched."""
    headers = "\n".join(f"{name}: {value}" for name, value in request.headers)
    return "\n".join(
        (unquote_plus(request.target), headers, request.body.decode("utf-8", "replace"))
    )


def _wire(response: _Response, method: str) -> bytes:
    head = [f"HTTP/1.1 {response.status} {response.reason}"]
    head += [f"{name}: {value}" for name, value in response.headers]
    bare = method == "HEAD" or response.status in (204, 304)
    if not bare:
        head.append(f"Content-Length: {len(response.body)}")
    head += ["Connection: close", "", ""]
    return "\r\n".join(head).encode("latin-1") + (b"" if bare else response.body)
