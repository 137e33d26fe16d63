"""One exchange with an owner: what a reply is, and what nothing may ever be taken for one."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest
from hostile_owner import (
    HOSTILE,
    OK,
    TIMES_OUT,
    DeafOwner,
    HostileOwner,
    Peer,
    closed_port,
    holds,
    says,
    says_then_holds,
    tls_contexts,
)

from counterfoil.owners import http_exchange
from counterfoil.owners.http_exchange import Failure, FailureKind, Response, exchange
from counterfoil.owners.http_reply import HEADER_LINES_MAX, INTERIM_REPLIES_MAX, LINE_BYTES_MAX

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

DEADLINE_S = 0.3
GRACE_S = 0.5
BYTES_MAX = 100_000
NO_CONTENT = b"HTTP/1.1 204 No Content\r\n"


def ask(
    url: str,
    method: str = "POST",
    *,
    headers: dict[str, str] | None = None,
    body: bytes | None = b'{"amount":"12.50"}',
    deadline_s: float = DEADLINE_S,
    bytes_max: int = BYTES_MAX,
    hook: Callable[[], str | None] | None = None,
    tls: ssl.SSLContext | None = None,
) -> Response | Failure:
    """Exchange once, and hold the exchange to its deadline."""
    began_s = time.monotonic()
    try:
        return exchange(
            method,
            url,
            headers=headers or {},
            body=body,
            deadline_s=deadline_s,
            response_bytes_max=bytes_max,
            before_first_byte=hook,
            tls=tls,
        )
    finally:
        assert time.monotonic() - began_s < deadline_s + GRACE_S


def kind_of(result: Response | Failure) -> FailureKind:
    assert isinstance(result, Failure), result
    assert result.detail
    assert result.detail.isprintable()
    return result.kind


def detail_of(result: Response | Failure) -> str:
    assert isinstance(result, Failure), result
    return result.detail


def body_of(result: Response | Failure) -> bytes:
    assert isinstance(result, Response), result
    return result.body


# --- what is no reply ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_owner_is_never_believed_and_never_outlasts_the_deadline(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So that a slow machine cannot make the second of two replies come too late to be seen.
    monkeypatch.setattr(http_exchange, "EXTRA_BYTES_WAIT_S", DEADLINE_S)
    with HostileOwner(HOSTILE[name]) as owner:
        kind = kind_of(ask(owner.url))
    assert kind is (FailureKind.TIMEOUT if name in TIMES_OUT else FailureKind.CUT)


@pytest.mark.parametrize(
    "name", ["resets after it reads", "reads and closes", "two replies in one"]
)
def test_a_request_is_never_sent_a_second_time(name: str) -> None:
    with HostileOwner(HOSTILE[name]) as owner:
        ask(owner.url)
        ask(owner.url)
        assert len(owner.peers) == 2
        assert [bytes(peer.received).count(b"POST /") for peer in owner.peers] == [1, 1]


def test_an_owner_that_never_accepts_times_out_because_the_request_may_be_read_later() -> None:
    with DeafOwner(full=False) as owner:
        assert kind_of(ask(owner.url)) is FailureKind.TIMEOUT


def test_an_owner_that_stops_reading_midway_times_out() -> None:
    def behave(peer: Peer) -> None:
        peer.stopped.wait(10)

    with HostileOwner(behave) as owner:
        assert kind_of(ask(owner.url, body=b"x" * 32_000_000)) is FailureKind.TIMEOUT


def test_an_owner_that_reads_a_little_at_a_time_does_not_stretch_the_deadline() -> None:
    def behave(peer: Peer) -> None:
        while not peer.stopped.wait(0.05):
            peer.sock.recv(100_000)

    with HostileOwner(behave) as owner:
        assert kind_of(ask(owner.url, body=b"x" * 32_000_000)) is FailureKind.TIMEOUT


def test_an_owner_that_resets_midway_through_the_request_cuts_it() -> None:
    def behave(peer: Peer) -> None:
        peer.sock.recv(1000)
        peer.reset()

    with HostileOwner(behave) as owner:
        assert kind_of(ask(owner.url, body=b"x" * 32_000_000)) is FailureKind.CUT


def test_a_reply_one_byte_over_the_cap_is_cut() -> None:
    with HostileOwner(says(OK)) as owner:
        assert kind_of(ask(owner.url, bytes_max=len(OK) - 1)) is FailureKind.CUT


def test_a_head_alone_one_byte_over_the_cap_is_cut() -> None:
    head = NO_CONTENT + b"\r\n"
    with HostileOwner(says(head)) as owner:
        assert kind_of(ask(owner.url, bytes_max=len(head) - 1)) is FailureKind.CUT
        assert body_of(ask(owner.url, bytes_max=len(head))) == b""


@pytest.mark.parametrize(
    ("before", "piece", "most", "after"),
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", INTERIM_REPLIES_MAX, NO_CONTENT + b"\r\n"),
        (NO_CONTENT, b"X: y\r\n", HEADER_LINES_MAX, b"\r\n"),
        (NO_CONTENT + b"X:", b"y", LINE_BYTES_MAX - len("X:\r"), b"\r\n\r\n"),
    ],
    ids=["interim replies", "header lines", "bytes of a line"],
)
def test_a_head_is_bounded_in_each_of_its_parts(
    before: bytes, piece: bytes, most: int, after: bytes
) -> None:
    with HostileOwner(says(before + piece * most + after)) as owner:
        assert body_of(ask(owner.url)) == b""
    with HostileOwner(says(before + piece * (most + 1) + after)) as owner:
        assert kind_of(ask(owner.url)) is FailureKind.CUT


def test_a_reply_of_exactly_the_cap_is_a_reply() -> None:
    with HostileOwner(says(OK)) as owner:
        assert body_of(ask(owner.url, bytes_max=len(OK))) == b"{}"


def test_interim_replies_count_towards_the_cap() -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    with HostileOwner(says(interim * 2 + OK)) as owner:
        assert kind_of(ask(owner.url, bytes_max=len(OK) + len(interim))) is FailureKind.CUT
        assert body_of(ask(owner.url, bytes_max=len(OK) + 2 * len(interim))) == b"{}"


# --- not one byte was written --------------------------------------------------------------------


def test_a_refused_connection_was_not_sent() -> None:
    assert kind_of(ask(f"http://127.0.0.1:{closed_port()}")) is FailureKind.NOT_SENT


def test_a_name_that_does_not_resolve_was_not_sent() -> None:
    assert kind_of(ask("http://owner.invalid")) is FailureKind.NOT_SENT


def test_a_name_server_that_hangs_was_not_sent_and_is_held_to_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    released = threading.Event()

    def hang(*_: object, **__: object) -> list[object]:
        released.wait(10)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    result = ask("http://owner.example")
    released.set()
    assert kind_of(result) is FailureKind.NOT_SENT
    assert "address" in detail_of(result)


def test_a_connection_that_is_never_made_was_not_sent_and_says_so() -> None:
    with DeafOwner(full=True) as owner:
        result = ask(owner.url)
    assert kind_of(result) is FailureKind.NOT_SENT
    assert "connect" in detail_of(result)
    assert "nothing was sent" in detail_of(result)


def test_a_second_address_is_tried_when_the_first_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    with HostileOwner(says(OK)) as owner:
        both = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
            for port in (closed_port(), owner.port)
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: both)
        assert body_of(ask("http://owner.example")) == b"{}"
        assert len(owner.peers) == 1


def test_the_hook_that_answers_a_text_keeps_the_request_from_leaving() -> None:
    with HostileOwner(holds) as owner:
        result = ask(owner.url, hook=lambda: "the lease\nis too short")
        peer = owner.first_end()
        assert result == Failure(FailureKind.NOT_SENT, "the lease is too short")
        assert not peer.received


def test_the_hook_is_called_once_the_connection_stands() -> None:
    with HostileOwner(says(OK)) as owner:

        def hook() -> None:
            owner.wait_for(lambda peers: len(peers) == 1)
            assert not owner.peers[0].received

        assert body_of(ask(owner.url, hook=hook)) == b"{}"


def test_a_hook_that_outlasts_the_deadline_keeps_the_request_from_leaving() -> None:
    def hook() -> None:
        threading.Event().wait(DEADLINE_S)

    with HostileOwner(holds) as owner:
        result = ask(owner.url, hook=hook)
        peer = owner.first_end()
        assert kind_of(result) is FailureKind.NOT_SENT
        assert not peer.received


def test_what_the_hook_raises_goes_up_and_nothing_is_written() -> None:
    def hook() -> None:
        raise KeyboardInterrupt

    with HostileOwner(holds) as owner:
        with pytest.raises(KeyboardInterrupt):
            ask(owner.url, hook=hook)
        peer = owner.first_end()
        assert not peer.received


# --- what is a reply -----------------------------------------------------------------------------


def test_a_redirect_is_a_reply_and_is_not_followed() -> None:
    with HostileOwner(says(OK)) as trap:
        for place in (trap.url, "http://169.254.169.254/latest/meta-data/"):
            moved = f"HTTP/1.1 307 Moved\r\nLocation: {place}\r\nContent-Length: 0\r\n\r\n"
            with HostileOwner(says(moved.encode())) as owner:
                result = ask(owner.url)
                assert len(owner.peers) == 1
            assert isinstance(result, Response)
            assert result.status == 307
            assert result.headers[0] == ("location", place)
        assert not trap.peers


def test_a_page_for_people_is_a_reply_and_its_meaning_is_decided_elsewhere() -> None:
    page = b"<html>busy</html>"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(page)
    with HostileOwner(says(head + page)) as owner:
        result = ask(owner.url)
    assert result == Response(
        200, (("content-type", "text/html"), ("content-length", str(len(page)))), page
    )


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"])
def test_a_proxy_in_the_environment_is_ignored(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HostileOwner(holds) as proxy, HostileOwner(says(OK)) as owner:
        monkeypatch.setenv(variable, proxy.url)
        assert body_of(ask(owner.url)) == b"{}"
        assert not proxy.peers


def test_an_http_1_0_reply_with_a_length_is_a_reply() -> None:
    with HostileOwner(says(OK.replace(b"HTTP/1.1", b"HTTP/1.0"))) as owner:
        assert body_of(ask(owner.url)) == b"{}"


def test_chunks_of_an_http_1_0_reply_are_no_reply() -> None:
    reply = b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    with HostileOwner(says(reply)) as owner:
        assert kind_of(ask(owner.url)) is FailureKind.CUT


def test_chunks_are_put_together_and_their_trailer_is_left_out() -> None:
    reply = (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        b"1;note=x\r\n{\r\n01\r\n}\r\n0\r\nX-Sum: 9\r\n\r\n"
    )
    with HostileOwner(says(reply)) as owner:
        result = ask(owner.url)
    assert result == Response(200, (("transfer-encoding", "chunked"),), b"{}")


@pytest.mark.parametrize(
    ("method", "reply"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 500\r\n\r\n"),
        ("DELETE", b"HTTP/1.1 204\r\n\r\n"),
        ("PUT", b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n"),
    ],
)
def test_a_reply_that_has_no_body_ends_with_its_head(method: str, reply: bytes) -> None:
    with HostileOwner(says_then_holds(reply)) as owner:
        assert body_of(ask(owner.url, method, body=None)) == b""


def test_an_owner_that_leaves_the_connection_open_is_answered_without_waiting_for_it() -> None:
    with HostileOwner(says_then_holds(OK)) as owner:
        began_s = time.monotonic()
        assert body_of(ask(owner.url, deadline_s=5)) == b"{}"
        assert time.monotonic() - began_s < 2


# --- how it ends ---------------------------------------------------------------------------------


def test_an_abandoned_exchange_is_reset() -> None:
    with HostileOwner(holds) as owner:
        assert kind_of(ask(owner.url)) is FailureKind.TIMEOUT
        peer = owner.first_end()
        assert peer.ended_by == "reset"


def test_an_exchange_whose_reply_was_read_whole_is_closed_in_order() -> None:
    with HostileOwner(says_then_holds(OK)) as owner:
        assert body_of(ask(owner.url)) == b"{}"
        peer = owner.first_end()
        assert peer.ended_by == "close"


# --- TLS -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    return tls_contexts(tmp_path_factory.mktemp("tls"))


def test_a_reply_over_tls_is_a_reply(tls: tuple[ssl.SSLContext, ssl.SSLContext]) -> None:
    with HostileOwner(says(OK), tls=tls[0]) as owner:
        assert body_of(ask(owner.url, tls=tls[1], deadline_s=2)) == b"{}"


def test_a_certificate_that_is_not_trusted_was_not_sent(
    tls: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    with HostileOwner(says(OK), tls=tls[0]) as owner:
        result = ask(owner.url, deadline_s=2)
        assert kind_of(result) is FailureKind.NOT_SENT
        assert "self-signed" in detail_of(result)
        assert not owner.peers[0].received


def test_a_certificate_for_another_host_was_not_sent(
    tls: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    with HostileOwner(says(OK), tls=tls[0]) as owner:
        url = owner.url.replace("127.0.0.1", "localhost")
        assert kind_of(ask(url, tls=tls[1], deadline_s=2)) is FailureKind.NOT_SENT


def test_a_tls_handshake_that_never_comes_was_not_sent() -> None:
    with HostileOwner(holds) as owner:
        result = ask(owner.url.replace("http:", "https:"))
    assert kind_of(result) is FailureKind.NOT_SENT
    assert "TLS" in detail_of(result)


def test_an_owner_that_speaks_no_tls_was_not_sent() -> None:
    with HostileOwner(lambda peer: peer.send(OK)) as owner:
        assert kind_of(ask(owner.url.replace("http:", "https:"))) is FailureKind.NOT_SENT


@pytest.mark.parametrize("name", ["accepts and is silent", "drips a body", "truncated body"])
def test_a_hostile_owner_behind_tls_is_never_believed(
    name: str, tls: tuple[ssl.SSLContext, ssl.SSLContext]
) -> None:
    with HostileOwner(HOSTILE[name], tls=tls[0]) as owner:
        kind = kind_of(ask(owner.url, tls=tls[1]))
    assert kind is (FailureKind.TIMEOUT if name in TIMES_OUT else FailureKind.CUT)
