"""Bytes of an HTTP/1.1 reply -> ``Response``, strictly, or a reason why they are none. Pure.

A reply's end must be said by one length or by chunks: the end of a connection is what a crash looks
like too. Whatever two readers could read in two ways is refused. Nothing is ever inflated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

LINE_BYTES_MAX = 16 * 1024
"""Bytes of one line of a reply's head or framing."""

HEADER_LINES_MAX = 256
"""Header lines of one head, and of one trailer."""

INTERIM_REPLIES_MAX = 16
"""1xx heads before the reply: a few are lawful, an endless run is not."""

EXTRA_BYTES = "bytes came after the reply, so it cannot be told which of them is the answer"
"""What is said of two replies where one was asked for."""

_RECEIVE_BYTES = 64 * 1024

# One pass over a line and no two neighbours that match the same byte: no line is slow to refuse.
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?")
_FIELD_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t\x20-\x7e\x80-\xff]*)")
_LENGTH = re.compile(r"[0-9]{1,15}")
_CHUNK_LINE = re.compile(rb"([0-9A-Fa-f]{1,12})[\t ]*(?:;[\t\x20-\x7e\x80-\xff]*)?")


class UnreadableReplyError(Exception):
    """What came back is no reply; the message is one line and repeats nothing of it."""


@dataclass(frozen=True, slots=True)
class Response:
    """A whole, well-framed reply: whatever its status, redirects included.

    ``headers`` keep their order, with names in lower case; ``body`` is as it was on the wire, out
    of its chunks.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class Incoming:
    """The bytes of one reply, under a cap.

    ``receive(count)`` returns from 1 to ``count`` bytes, or none at the connection's end; what it
    raises goes through.
    """

    def __init__(self, receive: Callable[[int], bytes], bytes_max: int) -> None:
        self._receive = receive
        self._bytes_max = bytes_max
        self._bytes_left = bytes_max
        self._held = bytearray()

    def _grow(self) -> None:
        received = self._receive(min(_RECEIVE_BYTES, self._bytes_left + 1))
        if not received:
            raise UnreadableReplyError("the connection ended before a whole reply")
        if len(received) > self._bytes_left:
            raise self._too_large()
        self._bytes_left -= len(received)
        self._held += received

    def _too_large(self) -> UnreadableReplyError:
        return UnreadableReplyError(f"the reply is over {self._bytes_max} bytes")

    def _take(self, count: int) -> bytes:
        taken = bytes(self._held[:count])
        del self._held[:count]
        return taken

    @property
    def is_empty(self) -> bool:
        """Whether every byte received so far was taken."""
        return not self._held

    def line(self) -> bytes:
        """Return the next line without its CR LF."""
        looked = 0
        while (end := self._held.find(b"\n", looked)) < 0 and len(self._held) <= LINE_BYTES_MAX:
            looked = len(self._held)
            self._grow()
        if not 0 <= end <= LINE_BYTES_MAX:
            raise UnreadableReplyError(f"the reply has a line over {LINE_BYTES_MAX} bytes")
        line = self._take(end + 1)
        if not line.endswith(b"\r\n"):
            raise UnreadableReplyError("the reply has a line that does not end in CR LF")
        return line[:-2]

    def exactly(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        if count - len(self._held) > self._bytes_left:
            raise self._too_large()
        while len(self._held) < count:
            self._grow()
        return self._take(count)


def read_reply(incoming: Incoming, method: str) -> Response:
    """Read the reply to a request made with ``method``, past its 1xx heads.

    Raises UnreadableReplyError for what is no whole reply, and for bytes already received that
    follow one.
    """
    for _ in range(INTERIM_REPLIES_MAX + 1):
        matched = _STATUS_LINE.fullmatch(incoming.line())
        if matched is None:
            raise UnreadableReplyError("the reply does not begin with an HTTP/1 status line")
        status, headers = int(matched[2]), _read_headers(incoming)
        if status == 101:
            raise UnreadableReplyError("the owner changed the protocol, which was not asked for")
        if status >= 200:
            break
    else:
        raise UnreadableReplyError(f"more than {INTERIM_REPLIES_MAX} interim replies came first")
    body = _read_body(incoming, method, status, headers, chunks_known=matched[1] == b"1")
    if not incoming.is_empty:
        raise UnreadableReplyError(EXTRA_BYTES)
    return Response(status, headers, body)


def _read_headers(incoming: Incoming) -> tuple[tuple[str, str], ...]:
    """Read header lines up to the empty one. A folded line, or a space before ':', is refused."""
    headers: list[tuple[str, str]] = []
    while line := incoming.line():
        matched = _FIELD_LINE.fullmatch(line)
        if matched is None:
            raise UnreadableReplyError("the reply has a malformed header line")
        if len(headers) == HEADER_LINES_MAX:
            raise UnreadableReplyError(f"the reply has over {HEADER_LINES_MAX} header lines")
        headers.append((matched[1].decode().lower(), matched[2].strip(b" \t").decode("latin-1")))
    return tuple(headers)


def _read_body(
    incoming: Incoming,
    method: str,
    status: int,
    headers: tuple[tuple[str, str], ...],
    *,
    chunks_known: bool,
) -> bytes:
    """Read the body by the one framing that its head names (RFC 9112, 6.3, without rule 8)."""

    def named(wanted: str) -> list[str]:
        return [value.lower() for name, value in headers if name == wanted]

    if any(coding != "identity" for coding in named("content-encoding")):
        raise UnreadableReplyError("the body is compressed, though it was asked for as it is")
    lengths, codings = named("content-length"), named("transfer-encoding")
    if len(lengths) + len(codings) > 1:
        raise UnreadableReplyError("the head names more than one length or coding of the body")
    if lengths and _LENGTH.fullmatch(lengths[0]) is None:
        raise UnreadableReplyError("the Content-Length is no number")
    if codings and not (chunks_known and codings == ["chunked"]):
        raise UnreadableReplyError("the body has a transfer coding other than chunked")
    if method == "HEAD" or status == 304:  # these tell of a body that does not follow
        return b""
    if status == 204:
        if codings or any(int(length) for length in lengths):
            raise UnreadableReplyError("the reply says that it has no body, and names one")
        return b""
    if codings:
        return _read_chunks(incoming)
    if not lengths:
        raise UnreadableReplyError(
            "the reply names no length, so its end cannot be told from a cut"
        )
    return incoming.exactly(int(lengths[0]))


def _read_chunks(incoming: Incoming) -> bytes:
    body = bytearray()
    while True:
        matched = _CHUNK_LINE.fullmatch(incoming.line())
        if matched is None:
            raise UnreadableReplyError("the body has a malformed chunk size")
        size = int(matched[1], 16)
        if size == 0:
            _read_headers(incoming)  # a trailer is framing here, and nothing of the reply
            return bytes(body)
        body += incoming.exactly(size)
        if incoming.exactly(2) != b"\r\n":
            raise UnreadableReplyError("a chunk of the body is longer than it says")
