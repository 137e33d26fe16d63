"""One HTTP/1.1 exchange with an owner that may be slow, broken or hostile (F28 to F36).

- One connection, one request, one reply. Nothing is pooled, resent, redirected or sent by a proxy.
- One deadline covers the name, the connection, TLS, the write and the read: each wait is given what
  is left of it, so a peer that drips bytes gains nothing. A name look-up cannot be cut short; it
  runs in a thread of its own, which is left to the system's resolver when time runs out.
- One cap covers every byte read: interim replies, heads, framing and body.
- A reply is strict or it is none (``http_reply``).
- ``NOT_SENT`` is said only while the first write has not been tried.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import queue
import re
import socket
import ssl
import struct
import threading
import time
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING
from urllib.parse import quote

from counterfoil.errors import BadInput
from counterfoil.owners.http_reply import (
    EXTRA_BYTES,
    Incoming,
    Response,
    UnreadableReplyError,
    read_reply,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Failure", "FailureKind", "Response", "effect_url", "exchange"]

DEADLINE_S_MAX = 86_400.0
"""Seconds. Longer than any call should take, and within what a socket's timer can hold."""

URL_CHARACTERS_MAX = 8192
"""Characters of a URL: what common servers accept in a request line."""

EXTRA_BYTES_WAIT_S = 0.1
"""Seconds to wait, once a reply is whole, for the owner's close or for bytes that must not be."""

DETAIL_CHARACTERS_MAX = 200
"""A detail is one line in a trail."""

_WRITE_BYTES = 64 * 1024

_METHOD = re.compile(r"[A-Z]{1,32}")
_FIELD_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIELD_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?")
_URL = re.compile(r"(https?)://([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.IGNORECASE | re.ASCII)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(?::([0-9]{1,5}))?")
_HOST_NAME = re.compile(r"[0-9A-Za-z_-]{1,63}(?:\.[0-9A-Za-z_-]{1,63})*\.?")
_PATH_AND_QUERY = re.compile(r"(?:[0-9A-Za-z._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*")

_SET_HERE = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers of framing and of the connection; a caller's would contradict ours."""

_METHODS_WITH_A_BODY = ("PATCH", "POST", "PUT")


class FailureKind(Enum):
    """How an exchange ended without a whole reply.

    ``NOT_SENT``: not one byte of the request was written. ``TIMEOUT``: the deadline ran out after
    a byte may have been written. ``CUT``: a byte may have been written, and what came back is no
    reply: a reset, an early end, too many bytes, bad framing, more than one answer.
    """

    NOT_SENT = "not_sent"
    TIMEOUT = "timeout"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class Failure:
    """No reply. ``detail`` is one printable line that names neither a path nor a header's value."""

    kind: FailureKind
    detail: str


def effect_url(base: str, key: str) -> str:
    """Return the address at which an owner tells of one key: ``{base}/effects/{key}``, key quoted.

    Raises BadInput for a base that is no http(s) URL or has a query, and for a key that cannot be
    one segment of a path. The shape is the owner contract's of uncertain-effect/v1.
    """
    if "?" in base:
        raise BadInput("an owner's URL cannot hold a query; give the part before '?'")
    _target(base)
    # quote() leaves dots alone, and a server may read a segment of dots as a step up.
    if key in {"", ".", ".."}:
        raise BadInput(f"the key {key!r} cannot stand in a URL; use another key")
    try:
        return f"{base.rstrip('/')}/effects/{quote(key, safe='')}"
    except UnicodeEncodeError:
        raise BadInput("the key holds a lone surrogate; use another key") from None


def exchange(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None,
    deadline_s: float,
    response_bytes_max: int,
    before_first_byte: Callable[[], str | None] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Response | Failure:
    """Send one request to an owner, once, and return its reply or how it came to have none.

    ``deadline_s`` bounds the whole exchange, ``response_bytes_max`` every byte that is read.
    ``before_first_byte`` is called when the connection stands and nothing is written; if it returns
    a text, or outlasts the deadline, nothing is written. ``tls`` is used for https alone; without
    it the system's authorities are trusted.

    Raises BadInput, before anything is opened, for what cannot be sent as it is written, and passes
    on whatever ``before_first_byte`` raises. The kinds are those of coordinator, "Replies".
    """
    target = _target(url)
    request = _request(method, target, headers, body)
    if not 0 < deadline_s <= DEADLINE_S_MAX:
        raise BadInput(f"a deadline must be above 0 and at most {DEADLINE_S_MAX:.0f} seconds")
    if response_bytes_max < 1:
        raise BadInput("response_bytes_max must be at least 1")
    deadline = _Deadline(deadline_s)
    connected = _connect(target, tls, deadline)
    if isinstance(connected, Failure):
        return connected
    ended: Response | Failure | None = None
    try:
        refusal = before_first_byte() if before_first_byte is not None else None
        if refusal is None and deadline.left_s() <= 0:
            refusal = "the deadline ran out before the first byte; nothing was sent"
        if refusal is not None:
            ended = _failure(FailureKind.NOT_SENT, refusal)
        else:
            ended = _converse(connected, request, method, response_bytes_max, deadline)
        return ended
    finally:
        # An abandoned exchange is reset, so that what the owner has not read is thrown away.
        _close(connected, by_reset=not isinstance(ended, Response))


# --- the request ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a request goes: ``authority`` as in the Host header, ``path`` with its query."""

    secure: bool
    host: str
    port: int
    authority: str
    path: str


def _target(url: str) -> _Target:
    """Take a URL apart, or refuse it; the message never repeats it, for it may hold a secret."""
    if len(url) > URL_CHARACTERS_MAX:
        raise BadInput(f"the URL is over {URL_CHARACTERS_MAX} characters; use a shorter key")
    parts = _URL.fullmatch(url)
    if parts is None:
        raise BadInput("the URL must begin with http:// or https:// and a host")
    scheme, authority, path, query, fragment = parts.groups(default="")
    if "@" in authority:
        raise BadInput("the URL holds a user or password; send credentials in a header")
    if fragment:
        raise BadInput("the URL holds a fragment, which is never sent; remove it")
    place = _AUTHORITY.fullmatch(authority)
    if place is None or _PATH_AND_QUERY.fullmatch(path + query) is None:
        raise BadInput("the URL holds characters that must be percent-encoded, or no usable host")
    secure = scheme.lower() == "https"
    host, port = place[1], int(place[2] or (443 if secure else 80))
    if not 0 < port <= 65_535:
        raise BadInput("the URL's port must be from 1 to 65535")
    if host.startswith("["):
        host = host[1:-1]
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            raise BadInput("the URL's host is no IPv6 address; correct it") from None
    elif len(host) > 253 or _HOST_NAME.fullmatch(host) is None:
        raise BadInput("the URL's host is no host name; correct it")
    return _Target(secure, host, port, authority, (path or "/") + query)


def _request(method: str, target: _Target, headers: Mapping[str, str], body: bytes | None) -> bytes:
    """Return the request's bytes. Every text is checked first: no line can be smuggled in."""
    if _METHOD.fullmatch(method) is None or method == "CONNECT":
        raise BadInput("the method must be a word in capitals, such as POST, and not CONNECT")
    lines = [
        f"{method} {target.path} HTTP/1.1",
        f"Host: {target.authority}",
        "Connection: close",
        "Accept-Encoding: identity",
    ]
    if body is not None or method in _METHODS_WITH_A_BODY:
        lines.append(f"Content-Length: {len(body or b'')}")
    seen = set(_SET_HERE)
    for name, value in headers.items():
        if _FIELD_NAME.fullmatch(name) is None:
            raise BadInput("a header's name is empty or holds what no name may; correct it")
        if name.lower() in seen:
            raise BadInput(f"the header {name} is set by Counterfoil or given twice; remove it")
        if _FIELD_VALUE.fullmatch(value) is None:
            raise BadInput(f"the header {name} must hold printable ASCII, with no space around it")
        seen.add(name.lower())
        lines.append(f"{name}: {value}")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (body or b"")


# --- the connection ------------------------------------------------------------------------------


class _Deadline:
    """The one end of an exchange, on the monotonic clock."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._ends_s = time.monotonic() + seconds

    def left_s(self) -> float:
        """Seconds left; none or fewer when it is over."""
        return self._ends_s - time.monotonic()

    def hold(self, sock: socket.socket) -> None:
        """Give the next wait on a socket what is left. Raises TimeoutError when that is nothing."""
        left_s = self.left_s()
        if left_s <= 0:
            raise TimeoutError
        sock.settimeout(left_s)


def _connect(
    target: _Target, tls: ssl.SSLContext | None, deadline: _Deadline
) -> socket.socket | Failure:
    """Return a connection on which nothing of the request is written, or why there is none."""
    stage = "find the address of"
    try:
        addresses = _resolve(target, deadline)
        stage = "connect to"
        sock = _reach(addresses, deadline)
        if not target.secure:
            return sock
        stage = "agree on TLS with"
        return _secure(sock, tls or _system_tls(), target.host, deadline)
    except TimeoutError:
        why = f"not within the deadline of {deadline.seconds:g} s"
    except OSError as error:
        why = _said(error)
    return _failure(
        FailureKind.NOT_SENT, f"could not {stage} {target.authority}: {why}; nothing was sent"
    )


def _resolve(target: _Target, deadline: _Deadline) -> list[tuple[socket.AddressFamily, object]]:
    """Look the host up, once. Raises OSError or TimeoutError.

    The system's look-up takes no deadline, hence the thread. It ends when the resolver gives up.
    """
    answers: queue.SimpleQueue[list[tuple[socket.AddressFamily, object]] | OSError]
    answers = queue.SimpleQueue()

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
            answers.put([(family, address) for family, _, _, _, address in found])
        except OSError as error:
            answers.put(error)
        except UnicodeError:
            answers.put(OSError(0, "the host is no host name"))

    try:
        threading.Thread(target=look_up, name="counterfoil-look-up", daemon=True).start()
    except RuntimeError:
        raise OSError(0, "no thread could be started to look it up") from None
    try:
        answer = answers.get(timeout=max(0.0, deadline.left_s()))
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(answer, OSError):
        raise answer
    return answer


def _reach(
    addresses: list[tuple[socket.AddressFamily, object]], deadline: _Deadline
) -> socket.socket:
    """Connect to the first address that answers. Raises the last one's OSError or TimeoutError."""
    trouble: OSError = OSError(0, "it has no address")
    for position, (family, address) in enumerate(addresses):
        # A dead address must not eat the time of a living one.
        share_s = deadline.left_s() / (len(addresses) - position)
        if share_s <= 0:
            raise TimeoutError
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
        except OSError as error:  # the machine has no such family, or no descriptor left
            trouble = error
            continue
        try:
            sock.settimeout(share_s)
            sock.connect(address)  # type: ignore[arg-type]
        except OSError as error:
            sock.close()
            trouble = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise trouble


@functools.cache
def _system_tls() -> ssl.SSLContext:
    """The system's authorities, checked against the host; reading them takes a while, so once."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _secure(
    sock: socket.socket, context: ssl.SSLContext, host: str, deadline: _Deadline
) -> socket.socket:
    """Return the connection inside TLS. Raises OSError or TimeoutError, and then has closed it."""
    try:
        sock = context.wrap_socket(sock, server_hostname=host, do_handshake_on_connect=False)
        deadline.hold(sock)
        sock.do_handshake()
    except BaseException:
        sock.close()
        raise
    return sock


def _close(sock: socket.socket, *, by_reset: bool) -> None:
    """Close a connection; a reset keeps the system from delivering what is still in its buffers."""
    with contextlib.suppress(OSError):
        if by_reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    with contextlib.suppress(OSError):
        sock.close()


def _converse(
    sock: socket.socket, request: bytes, method: str, bytes_max: int, deadline: _Deadline
) -> Response | Failure:
    """Write the request and read its reply. From here on a failure is never ``NOT_SENT``."""

    def receive(count: int) -> bytes:
        deadline.hold(sock)
        return sock.recv(count)

    doing = "writing the request"
    try:
        waiting = memoryview(request)
        while waiting:
            deadline.hold(sock)
            waiting = waiting[sock.send(waiting[:_WRITE_BYTES]) :]
        doing = "reading the reply"
        response = read_reply(Incoming(receive, bytes_max), method)
        if not _more_follows(sock, deadline):
            return response
        raise UnreadableReplyError(EXTRA_BYTES)
    except UnreadableReplyError as error:
        return _failure(FailureKind.CUT, str(error))
    except OSError as error:
        # The system has a time-out of its own, for a peer that has gone: that one has a number.
        if isinstance(error, TimeoutError) and error.errno is None:
            return _failure(
                FailureKind.TIMEOUT, f"the deadline of {deadline.seconds:g} s ran out while {doing}"
            )
        return _failure(FailureKind.CUT, f"the connection failed while {doing}: {_said(error)}")


def _more_follows(sock: socket.socket, deadline: _Deadline) -> bool:
    """Whether bytes come after a whole reply. Leaving the connection open is no fault."""
    wait_s = min(EXTRA_BYTES_WAIT_S, deadline.left_s())
    if wait_s <= 0:
        return False
    sock.settimeout(wait_s)
    try:
        return bool(sock.recv(1))
    except OSError:
        return False


# --- words ---------------------------------------------------------------------------------------


def _failure(kind: FailureKind, detail: str) -> Failure:
    return Failure(kind, _one_line(detail))


def _one_line(text: str) -> str:
    """Return a text as one printable line, cut to size."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    return shown[:DETAIL_CHARACTERS_MAX]


def _said(error: OSError) -> str:
    """What the system, or TLS, says of a failure; never bytes that the peer sent."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return error.verify_message
    if isinstance(error, ssl.SSLError):
        return error.reason or "a TLS error"
    return error.strerror or type(error).__name__
