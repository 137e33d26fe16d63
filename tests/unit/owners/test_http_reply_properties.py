"""Whatever bytes come back: a whole reply is read as it was written, and nothing else is one."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import pytest
from hostile_owner import OK, HostileOwner, Peer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from counterfoil.owners.http_exchange import Failure, FailureKind, Response, exchange

if TYPE_CHECKING:
    from collections.abc import Iterator

DEADLINE_S = 5.0
BYTES_MAX = 20_000
QUICK = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


class ScriptedOwner:
    """One listener for all examples; each exchange is answered with the bytes set before it."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._owner = HostileOwner(self._behave)

    def _behave(self, peer: Peer) -> None:
        peer.read_request()
        for piece in self._pieces:
            peer.send(piece)

    def __enter__(self) -> Self:
        self._owner.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._owner.__exit__(None, None, None)

    def answer(self, *pieces: bytes) -> Response | Failure:
        self._pieces = list(pieces)
        return exchange(
            "POST",
            self._owner.url,
            headers={},
            body=b"{}",
            deadline_s=DEADLINE_S,
            response_bytes_max=BYTES_MAX,
        )


@pytest.fixture(scope="module")
def owner() -> Iterator[ScriptedOwner]:
    with ScriptedOwner() as scripted:
        yield scripted


@dataclass(frozen=True)
class Written:
    """A lawful reply and what it means."""

    data: bytes
    meant: Response


names = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=8).map("x-".__add__)
values = st.text(
    st.characters(codec="latin-1", exclude_characters=[chr(n) for n in (*range(32), 127)]),
    max_size=12,
).map(lambda text: text.strip(" \t"))


@st.composite
def replies(draw: st.DrawFn) -> Written:
    status = draw(st.integers(200, 599).filter(lambda code: code not in {204, 304}))
    body = draw(st.binary(max_size=200))
    headers = draw(st.lists(st.tuples(names, values), max_size=4))
    if draw(st.booleans()):
        headers.append(("content-length", str(len(body))))
        framed = body
    else:
        headers.append(("transfer-encoding", "chunked"))
        framed, rest = b"", body
        while rest:
            size = draw(st.integers(1, len(rest)))
            framed += b"%x\r\n%b\r\n" % (size, rest[:size])
            rest = rest[size:]
        framed += b"0\r\n\r\n"
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n" * draw(st.integers(0, 3))
    head = f"HTTP/1.1 {status} Said\r\n" + "".join(f"{n}: {v}\r\n" for n, v in headers) + "\r\n"
    return Written(
        interim + head.encode("latin-1") + framed, Response(status, tuple(headers), body)
    )


@QUICK
@given(written=replies(), cuts=st.lists(st.integers(0, 400), max_size=6))
def test_a_lawful_reply_is_read_as_written_however_it_is_split(
    owner: ScriptedOwner, written: Written, cuts: list[int]
) -> None:
    places = [0, *sorted(cuts), len(written.data)]
    pieces = [written.data[a:b] for a, b in itertools.pairwise(places)]
    assert owner.answer(*pieces) == written.meant


@QUICK
@given(written=replies(), data=st.data())
def test_a_lawful_reply_cut_anywhere_is_no_reply(
    owner: ScriptedOwner, written: Written, data: st.DataObject
) -> None:
    length = data.draw(st.integers(0, len(written.data) - 1))
    result = owner.answer(written.data[:length])
    assert isinstance(result, Failure)
    assert result.kind is FailureKind.CUT


@QUICK
@given(written=replies(), extra=st.binary(min_size=1, max_size=20))
def test_a_lawful_reply_with_bytes_behind_it_is_no_reply(
    owner: ScriptedOwner, written: Written, extra: bytes
) -> None:
    result = owner.answer(written.data + extra)
    assert isinstance(result, Failure)
    assert result.kind is FailureKind.CUT


fragments = st.one_of(
    st.binary(max_size=30),
    st.sampled_from(
        [
            OK,
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"HTTP/1.0 204 \r\n",
            b"HTTP/2 200\r\n",
            b"Content-Length: 2\r\n",
            b"Content-Length: 99999999999999999999\r\n",
            b"Content-Length: -1\r\n",
            b"Content-Length:\r\n",
            b"Transfer-Encoding: chunked\r\n",
            b"Content-Encoding: gzip\r\n",
            b"ffffffffffff\r\n",
            b"2;a=b\r\n{}\r\n",
            b"0\r\n",
            b"\r\n",
            b"\n",
            b"{}",
            b" " * 3000 + b"\x00\r\n",
            b"x" * 17_000,
        ]
    ),
)


@QUICK
@given(st.lists(fragments, max_size=8).map(b"".join))
def test_any_bytes_give_a_reply_or_a_failure_and_never_an_exception(
    owner: ScriptedOwner, data: bytes
) -> None:
    result = owner.answer(data)
    if isinstance(result, Failure):
        assert result.kind is FailureKind.CUT
        assert result.detail.isprintable()
        assert len(result.detail) <= 200
    else:
        assert data.startswith(b"HTTP/1.")
        assert result.body in data or b"chunked" in data


@QUICK
@given(written=replies(), place=st.integers(0, 500), new=st.binary(max_size=3))
def test_a_reply_with_bytes_changed_never_raises_or_hangs(
    owner: ScriptedOwner, written: Written, place: int, new: bytes
) -> None:
    changed = written.data[:place] + new + written.data[place + 1 :]
    result = owner.answer(changed)
    assert isinstance(result, Response) or result.kind is FailureKind.CUT
