"""Owners on loopback that misbehave in one chosen way, for tests of whatever talks to an owner.

A behaviour is a function over one accepted ``Peer``. ``HOSTILE`` names a behaviour for each way of
going wrong after a request was written; ``HostileOwner`` serves one, and remembers what it saw.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import ipaddress
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

PATIENCE_S = 10.0
ENDLESS_S = 3.0
"""What is called endless here ends after this, so that a caller without a deadline fails a test
instead of hanging it."""

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@dataclass
class Peer:
    """One accepted connection, as the owner sees it."""

    sock: socket.socket
    stopped: threading.Event
    received: bytearray = field(default_factory=bytearray)
    ended_by: str | None = None

    def read_request(self) -> None:
        """Read one head and the body that its Content-Length names."""
        while b"\r\n\r\n" not in self.received:
            if not self._read():
                return
        head, _, body = bytes(self.received).partition(b"\r\n\r\n")
        named = re.search(rb"(?i)content-length: *([0-9]+)", head)
        while len(body) < (int(named[1]) if named else 0) and self._read():
            body = bytes(self.received).partition(b"\r\n\r\n")[2]

    def _read(self) -> bool:
        piece = self.sock.recv(65_536)
        self.received += piece
        return bool(piece)

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def drip(self, piece: bytes, every_s: float = 0.05) -> None:
        """Send a piece again and again until the other side, or the test, ends."""
        ends_s = time.monotonic() + ENDLESS_S
        while not self.stopped.wait(every_s) and time.monotonic() < ends_s:
            self.send(piece)

    def pour(self, piece: bytes) -> None:
        """Send a piece without end, as fast as it is taken."""
        ends_s = time.monotonic() + ENDLESS_S
        while not self.stopped.is_set() and time.monotonic() < ends_s:
            self.send(piece)

    def reset(self) -> None:
        """Close so that the other side sees a reset."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def await_end(self) -> None:
        """Read until the other side closes; ``ended_by`` is then "close" or "reset"."""
        try:
            while self._read():
                pass
            self.ended_by = "close"
        except ConnectionResetError:
            self.ended_by = "reset"


Behaviour = Callable[[Peer], None]


class HostileOwner:
    """A listener that gives every connection to one behaviour, in a thread of its own."""

    def __init__(self, behave: Behaviour, *, tls: ssl.SSLContext | None = None) -> None:
        self._behave = behave
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._stopped = threading.Event()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self.peers: list[Peer] = []
        self.port: int = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept()
        self._listener.close()
        for peer in self.peers:
            with contextlib.suppress(OSError):
                peer.sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive(), "a hostile owner's thread did not end"

    def wait_for(self, seen: Callable[[list[Peer]], bool]) -> None:
        """Wait until the peers are as wanted; fail loudly if they never are."""
        with self._changed:
            assert self._changed.wait_for(lambda: seen(self.peers), PATIENCE_S), self.peers

    def first_end(self) -> Peer:
        """Wait until the first connection has ended for its behaviour, and return it."""
        self.wait_for(lambda peers: bool(peers) and peers[0].ended_by is not None)
        return self.peers[0]

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.settimeout(PATIENCE_S)
            peer = Peer(sock, self._stopped)
            with self._changed:
                self.peers.append(peer)
                self._changed.notify_all()
            self._start(self._serve, peer)

    def _serve(self, peer: Peer) -> None:
        with contextlib.suppress(OSError):
            if self._tls is not None:
                peer.sock = self._tls.wrap_socket(peer.sock, server_side=True)
            self._behave(peer)
        peer.sock.close()
        with self._changed:
            self._changed.notify_all()


class DeafOwner:
    """A listener that never accepts; ``full`` leaves no room for one more connection to wait."""

    def __init__(self, *, full: bool) -> None:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0 if full else 8)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._waiting: list[socket.socket] = []
        while full and self._wait_in_line():
            pass

    def _wait_in_line(self) -> bool:
        caller = socket.socket()
        caller.settimeout(0.1)
        self._waiting.append(caller)
        try:
            caller.connect(self._listener.getsockname())
        except TimeoutError:
            return False
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for sock in (*self._waiting, self._listener):
            sock.close()


def closed_port() -> int:
    """Return a port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


# --- behaviours ----------------------------------------------------------------------------------


def says(data: bytes) -> Behaviour:
    """Read the request, send these bytes, close."""

    def behave(peer: Peer) -> None:
        peer.read_request()
        peer.send(data)

    return behave


def drips(start: bytes, piece: bytes) -> Behaviour:
    """Read the request, send a start, then a piece every now and then without end."""

    def behave(peer: Peer) -> None:
        peer.read_request()
        peer.send(start)
        peer.drip(piece)

    return behave


def pours(start: bytes, piece: bytes) -> Behaviour:
    """Read the request, send a start, then a piece as fast as it is taken, without end."""

    def behave(peer: Peer) -> None:
        peer.read_request()
        peer.send(start)
        peer.pour(piece)

    return behave


def says_then_holds(data: bytes) -> Behaviour:
    """Read the request, send these bytes, and leave the connection open."""

    def behave(peer: Peer) -> None:
        peer.read_request()
        peer.send(data)
        peer.await_end()

    return behave


def holds(peer: Peer) -> None:
    """Read whatever comes and say nothing."""
    peer.await_end()


def closes_at_once(peer: Peer) -> None:
    """Close without reading a byte."""
    peer.sock.close()


def resets_before_reading(peer: Peer) -> None:
    """Let the request arrive, then reset with all of it unread."""
    peer.sock.recv(1, socket.MSG_PEEK)
    peer.reset()


def resets_after_request(peer: Peer) -> None:
    """Read the request, then reset."""
    peer.read_request()
    peer.reset()


def half_closes(peer: Peer) -> None:
    """Read the request, end our side without a word, and keep listening."""
    peer.read_request()
    peer.sock.shutdown(socket.SHUT_WR)
    peer.await_end()


def _reply(head: str, body: bytes = b"") -> bytes:
    return b"HTTP/1.1 200 OK\r\n" + head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body


def _second_reply_later(peer: Peer) -> None:
    peer.read_request()
    peer.send(OK)
    peer.stopped.wait(0.1)  # so that the first was read alone
    peer.send(OK)


_BOMB = gzip.compress(b"\0" * 50_000_000, 9)

HOSTILE: dict[str, Behaviour] = {
    "accepts and is silent": holds,
    "drips a status line": drips(b"HTTP/1.1 200 ", b"O"),
    "drips 100 Continue": drips(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "drips a body": drips(_reply("Content-Length: 5000"), b"x"),
    "drips chunks": drips(_reply("Transfer-Encoding: chunked"), b"1\r\nx\r\n"),
    "drips headers": drips(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    "endless 100 Continue": pours(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 50),
    "endless headers": pours(b"HTTP/1.1 200 OK\r\n", b"X-Pad: " + b"y" * 1000 + b"\r\n"),
    "one endless header": pours(b"HTTP/1.1 200 OK\r\nX-Pad: ", b"y" * 1000),
    "endless body without a length": pours(_reply("Content-Type: text/plain"), b"x" * 4096),
    "endless chunked body": pours(
        _reply("Transfer-Encoding: chunked"), b"1000\r\n" + b"x" * 4096 + b"\r\n"
    ),
    "endless trailer": pours(_reply("Transfer-Encoding: chunked", b"0\r\n"), b"X: y\r\n"),
    "a length that is too large": says_then_holds(_reply("Content-Length: 999999999")),
    "resets before it reads": resets_before_reading,
    "resets after it reads": resets_after_request,
    "closes at once": closes_at_once,
    "reads and closes": says(b""),
    "half-closes": half_closes,
    "truncated head": says(b"HTTP/1.1 200 OK\r\nContent-Le"),
    "truncated body": says(_reply("Content-Length: 10", b"{}")),
    "truncated chunk": says(_reply("Transfer-Encoding: chunked", b"a\r\n{}")),
    "no last chunk": says(_reply("Transfer-Encoding: chunked", b"2\r\n{}\r\n")),
    "a length that is too short": says(_reply("Content-Length: 1", b"{}")),
    "a length that is no number": says(_reply("Content-Length: +2", b"{}")),
    "two lengths": says(_reply("Content-Length: 2\nContent-Length: 3", b"{}")),
    "two lengths in one line": says(_reply("Content-Length: 2, 2", b"{}")),
    "a length and chunks": says(
        _reply("Content-Length: 2\nTransfer-Encoding: chunked", b"2\r\n{}\r\n0\r\n\r\n")
    ),
    "an unknown transfer coding": says(_reply("Transfer-Encoding: gzip, chunked", b"0\r\n\r\n")),
    "a chunk longer than it says": says(_reply("Transfer-Encoding: chunked", b"1\r\n{}}0\r\n\r\n")),
    "a chunk size that is no number": says(_reply("Transfer-Encoding: chunked", b"-1\r\n")),
    "no length at all": says(_reply("Content-Type: application/json", b"{}")),
    "garbage": says(b"\x16\x03\x01\x00\xfa whatever this is\r\n\r\n"),
    "another protocol's status line": says(b"SSH-2.0-OpenSSH_9.2\r\n\r\n"),
    "bare line feeds": says(b"HTTP/1.1 200 OK\nContent-Length: 2\n\n{}"),
    "one bare line feed": says(b"HTTP/1.1 200 OK\nContent-Length: 2\r\n\r\n{}"),
    "a folded header": says(_reply("X-Note: a\n b\nContent-Length: 2", b"{}")),
    "a space before the colon": says(_reply("Content-Length : 2", b"{}")),
    "a header with a NUL": says(_reply("X-Note: a\0b\nContent-Length: 2", b"{}")),
    "a switch of protocols": says(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n" + OK),
    "no content, with content": says(b"HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n{}"),
    "no content, with a length": says(b"HTTP/1.1 204 No\r\nContent-Length: 2\r\n\r\n"),
    "two replies in one": says(OK + OK),
    "two replies, one after the other": _second_reply_later,
    "a gzip bomb": says(
        _reply(f"Content-Encoding: gzip\nContent-Length: {len(_BOMB)}", _BOMB),
    ),
}
"""What may happen once a request was written, none of it a reply."""

TIMES_OUT = frozenset(
    {
        "accepts and is silent",
        "drips a status line",
        "drips 100 Continue",
        "drips a body",
        "drips chunks",
        "drips headers",
    }
)
"""Of HOSTILE, those that only the deadline ends; the others show that they are no reply."""


# --- TLS -----------------------------------------------------------------------------------------


def tls_contexts(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return an owner's context for 127.0.0.1, and a caller's context that trusts it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hostile owner")])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    both = folder / "owner.pem"
    both.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + pem
    )
    owner = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    owner.load_cert_chain(both)
    return owner, ssl.create_default_context(cadata=pem.decode())
