"""What leaves for an owner, byte for byte, and what is refused before anything is opened."""

from __future__ import annotations

import math
from urllib.parse import unquote

import pytest
from hostile_owner import OK, HostileOwner, says
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.errors import BadInput
from counterfoil.owners.http_exchange import Response, effect_url, exchange


def ask(
    url: str,
    method: str = "POST",
    *,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
    deadline_s: float = 2.0,
    bytes_max: int = 1000,
) -> None:
    result = exchange(
        method,
        url,
        headers=headers or {},
        body=body,
        deadline_s=deadline_s,
        response_bytes_max=bytes_max,
    )
    assert isinstance(result, Response), result


def test_a_request_is_written_once_with_its_length_and_a_wish_to_close() -> None:
    with HostileOwner(says(OK)) as owner:
        ask(f"{owner.url}/effects?dry=0", headers={"Idempotency-Key": "cf1-9"}, body=b"{}")
        assert bytes(owner.peers[0].received) == (
            b"POST /effects?dry=0 HTTP/1.1\r\n"
            b"Host: 127.0.0.1:%d\r\n"
            b"Connection: close\r\n"
            b"Accept-Encoding: identity\r\n"
            b"Content-Length: 2\r\n"
            b"Idempotency-Key: cf1-9\r\n"
            b"\r\n"
            b"{}" % owner.port
        )


@pytest.mark.parametrize(("method", "says_length"), [("POST", True), ("GET", False)])
def test_a_missing_body_is_a_length_of_nought_where_a_body_is_usual(
    method: str, says_length: bool
) -> None:
    with HostileOwner(says(OK)) as owner:
        ask(owner.url, method)
        assert (b"Content-Length: 0\r\n" in owner.peers[0].received) is says_length
        assert owner.peers[0].received.startswith(method.encode() + b" / HTTP/1.1\r\n")


def test_a_large_body_arrives_whole() -> None:
    body = bytes(range(256)) * 8192
    with HostileOwner(says(OK)) as owner:
        ask(owner.url, body=body)
        assert owner.peers[0].received.endswith(b"\r\n\r\n" + body)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "owner.example/effects",
        "ftp://owner.example/",
        "file:///etc/hosts",
        "http\u017f://owner.example/",
        "http://",
        "http:///effects",
        "http://:80/",
        "http://user:secret@owner.example/",
        "http://secret@owner.example/",
        "http://owner.example/#secret",
        "http://owner.example/a secret",
        "http://owner.example/secret\r\nX: y",
        "http://owner.example/\nsecret",
        "http://owner.example/secret\t",
        "http://owner.example/caf\u00e9",
        "http://owner.example/100%",
        "http://owner.example/back\\slash",
        "http://owner.example\r\n/",
        "http://owner.example:0/",
        "http://owner.example:65536/",
        "http://owner.example:\u0661/",
        "http://owner..example/",
        "http://.example/",
        "http://[::1/",
        "http://[1.2]/",
        "http://" + "a" * 64 + ".example/",
        "http://owner.example/" + "secret" * 2000,
    ],
)
def test_a_url_that_cannot_be_sent_as_it_is_written_is_refused_without_being_repeated(
    url: str,
) -> None:
    with pytest.raises(BadInput) as refused:
        ask(url)
    assert "secret" not in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("method", ["", "post", "PO ST", "GET / HTTP/1.1\r\nX: y", "CONNECT"])
def test_a_method_that_is_no_method_is_refused(method: str) -> None:
    with HostileOwner(says(OK)) as owner:
        with pytest.raises(BadInput, match="method"):
            ask(owner.url, method)
        assert not owner.peers


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Note": "secret\r\nX-Other: y"},
        {"X-Note": "secret\n"},
        {"X-Note": "secret\0"},
        {"X-Note": "secret\u0100"},
        {"X-Note": " secret"},
        {"X-Note": "secret "},
        {"": "secret"},
        {"X Note": "secret"},
        {"X-Note:": "secret"},
        {"secret\r\nX": "y"},
        {"X-N\u00f6te": "secret"},
        {"X-Note": "a", "x-note": "secret"},
        {"Host": "secret"},
        {"content-length": "3"},
        {"Transfer-Encoding": "chunked"},
        {"Connection": "keep-alive"},
        {"Accept-Encoding": "gzip"},
        {"Expect": "100-continue"},
    ],
)
def test_a_header_that_would_change_the_request_is_refused_before_a_byte_is_sent(
    headers: dict[str, str],
) -> None:
    with HostileOwner(says(OK)) as owner:
        with pytest.raises(BadInput, match="header") as refused:
            ask(owner.url, headers=headers)
        assert not owner.peers
    assert "secret" not in str(refused.value)
    assert str(refused.value).isprintable()


@pytest.mark.parametrize("deadline_s", [0, -1.0, math.nan, math.inf, 1e9])
def test_a_deadline_that_bounds_nothing_is_refused(deadline_s: float) -> None:
    with pytest.raises(BadInput, match="deadline"):
        ask("http://owner.example/", deadline_s=deadline_s)


def test_a_cap_that_lets_nothing_through_is_refused() -> None:
    with pytest.raises(BadInput, match="response_bytes_max"):
        ask("http://owner.example/", bytes_max=0)


# --- the address of a key ------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["https://owner.example/v1", "https://owner.example/v1/"])
def test_a_key_is_one_segment_under_the_owner_s_url(base: str) -> None:
    assert effect_url(base, "a/b?c#d%") == "https://owner.example/v1/effects/a%2Fb%3Fc%23d%25"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40))
def test_any_key_comes_back_out_of_its_address_and_leaves_the_path_alone(key: str) -> None:
    if key in {".", ".."}:
        return
    url = effect_url("http://owner.example:8080", key)
    prefix = "http://owner.example:8080/effects/"
    assert url.startswith(prefix)
    segment = url.removeprefix(prefix)
    assert not set(segment) & set("/?#\\ \r\n")
    assert unquote(segment) == key


@pytest.mark.parametrize("key", ["", ".", "..", "\ud800"])
def test_a_key_that_cannot_be_a_segment_is_refused(key: str) -> None:
    with pytest.raises(BadInput, match="key"):
        effect_url("http://owner.example", key)


@pytest.mark.parametrize(
    "base", ["owner.example", "http://a@owner.example", "http://owner.example/?x=1", "http://h#f"]
)
def test_a_base_that_is_no_plain_url_is_refused(base: str) -> None:
    with pytest.raises(BadInput, match="URL"):
        effect_url(base, "k")
