"""Envelopes: what is accepted, and each way to spoil one with its own reason."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from envelopes import ANN, BOB, CURVE_ORDER, EVE, b64, data, reason, signed, trust
from securesystemslib.dsse import Envelope
from securesystemslib.signer import CryptoSigner, SSlibKey

from counterfoil import limits
from counterfoil.errors import BadInput
from counterfoil.evidence import base64_text, dsse
from counterfoil.evidence.keyring import KeyFault, SigningKey, UnusableKey
from counterfoil.evidence.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Callable

PEER_PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32)
NON_ASCII = "application/caf\u00e9"


def peer_key(key: SigningKey) -> SSlibKey:
    keyval = {"public": key.public.raw.hex()}
    return SSlibKey(key.public.key_id, "ed25519", "ed25519", keyval)


def check(values: Any, threshold: int = 1, *keys: SigningKey) -> Reason | None:
    return reason(dsse.verify(data(values), trust(*keys, threshold=threshold)))


# --- what is signed ------------------------------------------------------------------------------


def test_the_signed_bytes_count_the_type_in_bytes_not_in_characters() -> None:
    expected = b"DSSEv1 17 application/caf\xc3\xa9 2 {}"
    assert dsse.pae(NON_ASCII, b"{}") == expected
    assert Envelope(b"{}", NON_ASCII, {}).pae() == expected


def test_the_signed_bytes_of_the_published_example_are_these() -> None:
    expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert dsse.pae("http://example.com/HelloWorld", b"hello world") == expected


@pytest.mark.parametrize("payload_type", [dsse.PAYLOAD_TYPE, NON_ASCII])
def test_another_implementation_verifies_ours(payload_type: str) -> None:
    envelope = Envelope.from_dict(signed(b"said", ANN, BOB, payload_type=payload_type))
    accepted = envelope.verify([peer_key(ANN), peer_key(BOB)], 2)
    assert set(accepted) == {ANN.public.key_id, BOB.public.key_id}


@pytest.mark.parametrize("payload_type", [dsse.PAYLOAD_TYPE, NON_ASCII])
def test_we_verify_another_implementations(payload_type: str) -> None:
    theirs = Envelope(b"said", payload_type, {})
    theirs.sign(CryptoSigner(PEER_PRIVATE, peer_key(ANN)))
    found = dsse.verify(data(theirs.to_dict()), trust(), (payload_type,))
    assert found == dsse.Verified(b"said", payload_type, (ANN.public,))


def test_what_was_signed_comes_back_with_each_trusted_signer() -> None:
    found = dsse.verify(data(signed(b"said", BOB, ANN)), trust(ANN, BOB, EVE, threshold=2))
    assert found == dsse.Verified(b"said", dsse.PAYLOAD_TYPE, (ANN.public, BOB.public))


# --- what an attacker may change and still be refused, or not matter -----------------------------


def test_a_payload_that_was_not_signed_is_refused() -> None:
    values = signed()
    values["payload"] = b64(b"{}")
    assert check(values) is Reason.NOT_SIGNED_BY_TRUSTED_KEYS


def test_another_payload_type_than_was_signed_breaks_the_signature() -> None:
    values = signed(b"said", payload_type="text/plain")
    values["payloadType"] = dsse.PAYLOAD_TYPE
    assert check(values) is Reason.NOT_SIGNED_BY_TRUSTED_KEYS


@pytest.mark.parametrize(
    "payload_type",
    ["text/plain", "Application/vnd.in-toto+json", dsse.PAYLOAD_TYPE + ";v=1", NON_ASCII, ""],
)
def test_a_signed_payload_of_a_type_not_listed_is_refused_for_its_type(payload_type: str) -> None:
    assert check(signed(b"{}", payload_type=payload_type)) is Reason.WRONG_PAYLOAD_TYPE


def test_the_type_is_looked_at_only_after_the_signature() -> None:
    values = signed(b"{}", EVE, payload_type="text/plain")
    assert check(values) is Reason.NOT_SIGNED_BY_TRUSTED_KEYS


def test_a_key_that_is_not_trusted_is_refused() -> None:
    assert check(signed(None, EVE)) is Reason.NOT_SIGNED_BY_TRUSTED_KEYS


def test_the_trusted_keys_id_on_another_keys_signature_changes_nothing() -> None:
    values = signed(None, EVE)
    values["signatures"][0]["keyid"] = ANN.public.key_id
    assert check(values) is Reason.NOT_SIGNED_BY_TRUSTED_KEYS


@pytest.mark.parametrize("keyid", ["", "no key of ours", BOB.public.key_id, None])
def test_a_wrong_key_id_does_not_matter(keyid: str | None) -> None:
    values = signed()
    values["signatures"][0]["keyid"] = keyid
    assert check(values, 1, ANN, BOB) is None


def test_a_missing_key_id_does_not_matter() -> None:
    values = signed()
    del values["signatures"][0]["keyid"]
    assert check(values) is None


def test_one_key_under_two_names_counts_once() -> None:
    values = signed()
    values["signatures"].append({**values["signatures"][0], "keyid": BOB.public.key_id})
    assert check(values, 2, ANN, BOB) is Reason.THRESHOLD


def test_fewer_signers_than_are_asked_for_are_refused() -> None:
    assert check(signed(), 2, ANN, BOB) is Reason.THRESHOLD
    assert check(signed(None, ANN, EVE), 2, ANN, BOB) is Reason.THRESHOLD
    assert check(signed(None, ANN, BOB), 2, ANN, BOB) is None


@pytest.mark.parametrize("extra", [b"", b"\0" * 64, b"\xff" * 64, b"of another kind" * 5])
def test_an_extra_signature_that_does_not_hold_does_not_matter(extra: bytes) -> None:
    values = signed()
    values["signatures"].insert(0, {"keyid": ANN.public.key_id, "sig": b64(extra)})
    assert check(values) is None


def test_a_second_spelling_of_a_signature_does_not_hold() -> None:
    values = signed()
    raw = base64.b64decode(values["signatures"][0]["sig"])
    scalar = int.from_bytes(raw[32:], "little") + CURVE_ORDER
    values["signatures"][0]["sig"] = b64(raw[:32] + scalar.to_bytes(32, "little"))
    assert check(values) is Reason.NOT_SIGNED_BY_TRUSTED_KEYS


def test_seventeen_signatures_are_too_many_and_sixteen_are_not() -> None:
    values = signed()
    values["signatures"] *= 16
    assert check(values) is None
    values["signatures"] += values["signatures"][:1]
    assert check(values) is Reason.TOO_MANY_SIGNATURES


def test_no_signature_is_refused() -> None:
    assert check({**signed(), "signatures": []}) is Reason.NO_SIGNATURES


# --- base64 --------------------------------------------------------------------------------------

SPOILS: dict[str, Callable[[str], str]] = {
    "a space": lambda text: text[:4] + " " + text[4:],
    "a line end": lambda text: text + "\n",
    "no padding": lambda text: text.rstrip("="),
    "more padding": lambda text: text + "====",
    "a character of no alphabet": lambda text: "!" + text[1:],
    "a letter beyond ASCII": lambda text: "\u00e9" + text[1:],
    "trailing bits": lambda text: text.rstrip("=")[:-1] + "\x7f" + "==",
}


def trailing_bits(text: str) -> str:
    """The same bytes in another spelling, which the standard decoder takes."""
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    last = text.rstrip("=")
    respelled = last[:-1] + alphabet[alphabet.index(last[-1]) + 1] + "=" * (len(text) - len(last))
    assert base64.b64decode(respelled) == base64.b64decode(text)
    return respelled


SPOILS["trailing bits"] = trailing_bits


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_base64_of_a_payload_has_one_spelling(spoil: Callable[[str], str]) -> None:
    values = signed(b"said")
    assert "=" in values["payload"]
    values["payload"] = spoil(values["payload"])
    assert check(values) is Reason.BAD_BASE64


@pytest.mark.parametrize("spoil", SPOILS.values(), ids=SPOILS)
def test_base64_of_a_signature_has_one_spelling(spoil: Callable[[str], str]) -> None:
    values = signed()
    values["signatures"][0]["sig"] = spoil(values["signatures"][0]["sig"])
    assert check(values) is Reason.BAD_BASE64


def test_the_url_safe_alphabet_is_accepted() -> None:
    payload = b"\xfb\xef\xbe\xff\xff\xff"
    values = signed(payload)
    assert values["payload"] == "++++////"
    values["payload"] = "----____"
    found = dsse.verify(data(values), trust())
    assert isinstance(found, dsse.Verified)
    assert found.payload == payload


def test_two_alphabets_in_one_text_are_refused() -> None:
    values = signed(b"\xfb\xef\xbe\xff\xff\xff")
    values["payload"] = "++++____"
    assert check(values) is Reason.BAD_BASE64


def test_base64_of_nothing_is_nothing() -> None:
    assert base64_text.decode("") == b""


# --- shapes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"payload": None},
        {"payload": 1},
        {"payloadType": None},
        {"payloadType": ["a"]},
        {"signatures": None},
        {"signatures": {}},
        {"signatures": "sig"},
        {"signatures": ["sig"]},
        {"signatures": [{}]},
        {"signatures": [{"sig": 1}]},
        {"signatures": [{"sig": "", "keyid": 1}]},
    ],
)
def test_what_has_another_shape_is_no_envelope(change: dict[str, object]) -> None:
    assert check({**signed(), **change}) is Reason.NOT_AN_ENVELOPE


@pytest.mark.parametrize(
    "name", ["payload", "payloadType", "signatures"], ids=lambda name: f"no {name}"
)
def test_what_lacks_a_member_is_no_envelope(name: str) -> None:
    values = signed()
    del values[name]
    assert check(values) is Reason.NOT_AN_ENVELOPE


@pytest.mark.parametrize(
    "raw",
    [b"", b"[]", b"null", b"\xff", b"{", b"[" * 100_000, b'{"a": ' * 200 + b"1" + b"}" * 200],
    ids=["nothing", "list", "null", "no UTF-8", "half", "deep", "deep objects"],
)
def test_bytes_that_are_no_json_object_are_no_envelope(raw: bytes) -> None:
    assert reason(dsse.verify(raw, trust())) is Reason.NOT_AN_ENVELOPE


@pytest.mark.parametrize("name", ['"payload"', '"p\\u0061yload"'])
def test_a_member_twice_makes_no_envelope(name: str) -> None:
    raw = data(signed())
    doubled = raw[:-1] + f', {name}: ""}}'.encode()
    assert reason(dsse.verify(doubled, trust())) is Reason.NOT_AN_ENVELOPE


def test_an_envelope_longer_than_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = data(signed())
    monkeypatch.setattr(limits, "RECORD_BYTES_MAX", len(raw) - 1)
    found = dsse.verify(raw, trust())
    assert reason(found) is Reason.NOT_AN_ENVELOPE


def test_members_that_nobody_knows_do_not_matter() -> None:
    values = {**signed(), "more": 1}
    values["signatures"][0]["cert"] = "x"
    assert check(values) is None


# --- signing -------------------------------------------------------------------------------------


def test_signing_needs_a_key_and_takes_each_once() -> None:
    with pytest.raises(BadInput):
        dsse.sign("t", b"", [])
    with pytest.raises(UnusableKey) as refused:
        dsse.sign("t", b"", [ANN, BOB, SigningKey(bytes([1]) * 32)])
    assert refused.value.fault is KeyFault.KEY_DUPLICATE


def test_no_more_keys_sign_than_are_read() -> None:
    keys = [SigningKey(bytes([number]) * 32) for number in range(17)]
    assert len(json.loads(dsse.sign("t", b"", keys[:16]))["signatures"]) == 16
    with pytest.raises(BadInput):
        dsse.sign("t", b"", keys)


def test_an_envelope_that_no_reader_would_take_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dsse, "ENVELOPE_BYTES_MAX", 200)
    with pytest.raises(BadInput, match="longer than 200 bytes"):
        dsse.sign("t", b"x" * 200, [ANN])


def test_a_type_that_utf_8_cannot_carry_is_refused() -> None:
    with pytest.raises(BadInput):
        dsse.sign("\ud800", b"", [ANN])
