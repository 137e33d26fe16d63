"""The proxy itself: what a client and a server see through it."""

from __future__ import annotations

import http.client
import socket
import threading
import time
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

import counterfoil as cf
from counterfoil.testing import Fault, HttpSandbox

from .refunds import Client, Refunds, sandbox_for

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server() -> Iterator[Refunds]:
    with Refunds(deduplicates=True) as refunds:
        yield refunds


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def sandbox(server: Refunds, client: Client) -> Iterator[HttpSandbox]:
    with sandbox_for(server, client) as opened:
        yield opened


BODY = {"order": "1"}


def test_without_a_fault_it_is_not_there(
    server: Refunds, client: Client, sandbox: HttpSandbox
) -> None:
    status, made = client.send("k-1", BODY)
    assert (status, made) == (200, server.made[0])
    assert client.get("/refunds/k-1") == made
    assert [(r.writes, r.line) for r in sandbox.requests()] == [
        (True, "POST /refunds"),
        (False, "GET /refunds/k-1"),
    ]
    assert [r.mentions("k-1") for r in sandbox.requests()] == [True, True]
    assert not sandbox.requests()[0].mentions("k-2")


def test_a_cut_reply_breaks_the_connection_after_the_commit(
    server: Refunds, client: Client, sandbox: HttpSandbox
) -> None:
    sandbox.set_fault(Fault.CUT_REPLY)
    with pytest.raises(ConnectionError):
        client.send("k", BODY)
    assert len(server.made) == 1


def test_no_reply_lasts_until_the_client_gives_up(
    server: Refunds, client: Client, sandbox: HttpSandbox
) -> None:
    sandbox.set_fault(Fault.NO_REPLY)
    with pytest.raises(TimeoutError):
        client.send("k", BODY)
    assert len(server.made) == 1


def test_silence_ends_for_a_client_that_never_gives_up(server: Refunds) -> None:
    client = Client(timeout_s=5)
    with HttpSandbox(
        server.url, arguments=dict, effects=lambda attempt: 0, silence="50ms"
    ) as sandbox:
        client.base = sandbox.url
        sandbox.set_fault(Fault.NO_REPLY)
        with pytest.raises(ConnectionError):
            client.send("k", BODY)


def test_a_late_request_reaches_the_server_when_it_is_released(
    server: Refunds, client: Client, sandbox: HttpSandbox
) -> None:
    sandbox.set_fault(Fault.LATE_COMMIT)
    with pytest.raises(ConnectionError):
        client.send("k", BODY)
    sandbox.set_fault(None)
    assert not server.made
    sandbox.release()
    assert [each["key"] for each in server.made] == ["k"]


def test_a_stale_read_shows_what_was_read_before_until_it_is_released(
    server: Refunds, client: Client, sandbox: HttpSandbox
) -> None:
    assert client.get("/refunds") == []
    sandbox.set_fault(Fault.STALE_READ)
    with pytest.raises(ConnectionError):
        client.send("k", BODY)
    sandbox.set_fault(None)
    assert client.get("/refunds") == []
    assert client.get("/refunds/k") == server.made[0]  # never read before: nothing old to show
    sandbox.release()
    assert client.get("/refunds") == server.made


def test_a_request_sent_twice_reaches_the_server_twice(client: Client) -> None:
    with Refunds() as forgetful, sandbox_for(forgetful, client) as sandbox:
        sandbox.set_fault(Fault.SENT_TWICE)
        _, made = client.send("k", BODY)
        assert made == forgetful.made[1]


def test_which_requests_belong_to_a_call_can_be_said(server: Refunds, client: Client) -> None:
    with sandbox_for(server, client, writes=lambda request: request.target == "/x") as sandbox:
        sandbox.set_fault(Fault.CUT_REPLY)
        assert client.send("k", BODY)[0] == 200
        assert [request.writes for request in sandbox.requests()] == [False]


def test_a_chunked_request_goes_through_whole(server: Refunds, sandbox: HttpSandbox) -> None:
    connection = http.client.HTTPConnection(sandbox.url.removeprefix("http://"), timeout=5)
    connection.request("POST", "/refunds", iter([b'{"order"', b': "1"}']), encode_chunked=True)
    assert connection.getresponse().status == 200
    connection.close()
    assert server.made[0]["order"] == "1"


def test_a_head_request_and_a_missing_page_go_through(sandbox: HttpSandbox) -> None:
    connection = http.client.HTTPConnection(sandbox.url.removeprefix("http://"), timeout=5)
    connection.request("GET", "/refunds/none")
    response = connection.getresponse()
    assert (response.status, response.read()) == (404, b'{"final": false}')
    connection.request("HEAD", "/refunds/none")
    assert connection.getresponse().status == 501
    connection.close()


def test_a_path_of_the_server_stays_in_the_url(server: Refunds) -> None:
    nothing: dict[str, Any] = {"arguments": dict, "effects": lambda attempt: 0}
    with HttpSandbox(server.url + "/refunds/", **nothing) as sandbox:
        assert sandbox.url.endswith("/refunds")
        with urllib.request.urlopen(sandbox.url, timeout=5) as response:
            assert response.read() == b"[]"


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def test_a_server_that_is_down_is_a_gateway_error_to_the_client_and_named_at_release() -> None:
    client = Client()
    nothing: dict[str, Any] = {"arguments": dict, "effects": lambda attempt: 0}
    with HttpSandbox(f"http://127.0.0.1:{closed_port()}", **nothing) as sandbox:
        client.base = sandbox.url
        with pytest.raises(ValueError, match="Expecting value"):
            client.send("k", BODY)
        sandbox.set_fault(Fault.LATE_COMMIT)
        with pytest.raises(ConnectionError):
            client.send("k", BODY)
        with pytest.raises(cf.BrokenWorld, match="start it"):
            sandbox.release()


def test_closing_ends_a_silence(server: Refunds) -> None:
    client = Client(timeout_s=20)
    sandbox = sandbox_for(server, client)
    sandbox.__enter__()
    sandbox.set_fault(Fault.NO_REPLY)
    ended: list[BaseException] = []

    def send() -> None:
        try:
            client.send("k", BODY)
        except OSError as error:
            ended.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    until_s = time.monotonic() + 5
    while not server.made and time.monotonic() < until_s:
        threading.Event().wait(0.005)
    sandbox.close()
    thread.join(5)
    assert ended


@pytest.mark.parametrize("url", ["ftp://host", "host", "http://"])
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(cf.BadInput, match="no server's URL"):
        HttpSandbox(url, arguments=dict, effects=lambda attempt: 0)
