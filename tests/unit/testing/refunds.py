"""A refund server on loopback that holds real effects, and effects written against it."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import parse_qs, urlsplit

import counterfoil as cf
from counterfoil.testing import HttpSandbox

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PAGE = 20
CLIENT_TIMEOUT_S = 0.3


@dataclass
class Refunds:
    """The server. ``commit_delay_s`` passes before an effect is there, ``reply_delay_s`` after it;
    ``read_lag_s`` before it is shown; ``tombstones``: an absent answer closes its key for requests
    that were sent before it."""

    deduplicates: bool = False
    refuses_repeats: bool = False
    tombstones: bool = False
    commit_delay_s: float = 0.0
    accepts_first: bool = False
    read_lag_s: float = 0.0
    made: list[dict[str, Any]] = field(default_factory=list)
    closed: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        self.server = _Server(self)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def count(self, attempt: cf.Attempt) -> int:
        """How many refunds there are of the attempt's order."""
        return sum(each["order"] == attempt.arguments["order"] for each in list(self.made))

    def post(self, key: str, sent_at: float, body: dict[str, Any]) -> tuple[int, object]:
        known = [each for each in self.made if key and each["key"] == key]
        if known and self.refuses_repeats:
            return 409, {"error": "key_used"}
        if known and self.deduplicates:
            return 200, known[0]
        if sent_at < self.closed.get(key, 0.0):
            return 410, {"error": "closed"}
        if self.accepts_first:
            threading.Thread(target=self._commit, args=(key, body)).start()
            return 202, {"accepted": True}
        return 200, self._commit(key, body)

    def _commit(self, key: str, body: dict[str, Any]) -> dict[str, Any]:
        time.sleep(self.commit_delay_s)
        with self.lock:
            made = {"id": f"r-{len(self.made) + 1}", "key": key, "at": time.monotonic(), **body}
            self.made.append(made)
            return made

    def get(self, target: str) -> tuple[int, object]:
        parts = urlsplit(target)
        shown = [m for m in self.made if m["at"] <= time.monotonic() - self.read_lag_s]
        if parts.path == "/refunds":
            limit = int(parse_qs(parts.query).get("limit", [str(PAGE)])[0])
            return 200, shown[::-1][:limit]
        key = parts.path.rpartition("/")[2]
        for each in shown:
            if each["key"] == key:
                return 200, each
        if self.tombstones:
            self.closed[key] = time.monotonic()
        return 404, {"final": self.tombstones}


class _Server(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, refunds: Refunds) -> None:
        self.refunds = refunds
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        refunds = cast("_Server", self.server).refunds
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        key = self.headers.get("Idempotency-Key", "")
        sent_at = float(self.headers.get("Sent-At", "inf"))
        self.reply(*refunds.post(key, sent_at, body))

    def do_GET(self) -> None:
        self.reply(*cast("_Server", self.server).refunds.get(self.path))

    def reply(self, status: int, said: object) -> None:
        body = json.dumps(said).encode()
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@dataclass
class Client:
    """What a user has: a small client with a base URL."""

    base: str = ""
    timeout_s: float = CLIENT_TIMEOUT_S

    def send(self, key: str | None, body: Mapping[str, object]) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of the reply."""
        headers = {"Content-Type": "application/json", "Sent-At": str(time.monotonic())}
        if key is not None:
            headers["Idempotency-Key"] = key
        request = urllib.request.Request(
            self.base + "/refunds", json.dumps(body).encode(), headers=headers
        )
        try:
            response = urllib.request.urlopen(request, timeout=self.timeout_s)
        except urllib.error.HTTPError as error:
            response = error
        with response:
            return response.status, json.load(response)

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(self.base + path, timeout=5) as response:
            return json.load(response)


def refund(attempt: cf.Attempt, client: Client, order: str) -> object:
    """The right call."""
    status, said = client.send(attempt.key, {"order": order})
    if status in (409, 410):
        raise cf.NoEffect(said["error"])
    if status not in (200, 202):
        raise RuntimeError(f"status {status}")
    return said


def find(attempt: cf.Attempt, client: Client) -> object:
    """The right look-up, for an owner whose own answer says whether absent is final."""
    try:
        found = client.get(f"/refunds/{attempt.key}")
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 404:
                return cf.absent(final=json.load(error)["final"])
            raise
    return cf.present(found, effect_id=found["id"])


_orders = iter(range(1, 10**9))


def sandbox_for(refunds: Refunds, client: Client, **options: Any) -> HttpSandbox:
    """A sandbox before the server, with the client pointed at it."""
    sandbox = HttpSandbox(
        refunds.url,
        arguments=lambda: {"order": f"order-{next(_orders)}"},
        effects=refunds.count,
        silence=1,
        **options,
    )
    client.base = sandbox.url
    return sandbox


def declare(
    client: Client,
    call: Callable[..., object] = refund,
    look_up: Callable[..., object] | None = find,
    **promises: Any,
) -> cf.Effect[..., Any]:
    """Declare an effect over a call and a look-up that take the client."""

    @cf.effect("payment.refund", owner=cf.Owner("refunds", **promises))
    def effect(attempt: cf.Attempt, *, order: str) -> object:
        return call(attempt, client, order)

    if look_up is not None:
        effect.reconcile(lambda attempt: look_up(attempt, client))
    return effect
