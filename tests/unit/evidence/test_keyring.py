"""Keys: what is loaded, what is refused and why, and that a seed is never shown."""

from __future__ import annotations

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from envelopes import ANN, BOB, EVE, b64, trust

from counterfoil.errors import BadInput
from counterfoil.evidence.keyring import (
    FIELD,
    KEYS_MAX,
    PRIVATE_PREFIX,
    PUBLIC_PREFIX,
    KeyFault,
    PublicKey,
    SigningKey,
    UnusableKey,
    keyring_of,
    private_line,
    public_key,
    public_line,
    read_private_key,
    read_public_keys,
)
from counterfoil.record.instants import parse

SEED = bytes(range(32))
LINE = public_line(ANN.public)

# The points whose order divides 8, as encoded; two more by the other sign of x.
LOW_ORDER = {
    "order 1": "01" + "00" * 31,
    "order 2": "ec" + "ff" * 30 + "7f",
    "order 4": "00" * 32,
    "order 4, other sign": "00" * 31 + "80",
    "order 8": "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "order 8, other sign": "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "order 8, negative": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "order 8, both": "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
}


def fault_of(raw: bytes) -> KeyFault:
    with pytest.raises(UnusableKey) as refused:
        public_key(raw)
    return refused.value.fault


def fault_in(text: str | bytes) -> KeyFault:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(UnusableKey) as refused:
        read_public_keys(data)
    assert "\n" not in str(refused.value)
    return refused.value.fault


# --- weak keys -----------------------------------------------------------------------------------


def test_the_library_below_takes_a_signature_on_anything_under_a_low_order_key() -> None:
    """Why we look ourselves: this verifies, whatever the message."""
    key = bytes.fromhex(LOW_ORDER["order 1"])
    Ed25519PublicKey.from_public_bytes(key).verify(key + bytes(32), b"any message at all")


@pytest.mark.parametrize("encoded", LOW_ORDER.values(), ids=LOW_ORDER)
def test_a_key_of_low_order_is_refused(encoded: str) -> None:
    assert fault_of(bytes.fromhex(encoded)) is KeyFault.KEY_LOW_ORDER


@pytest.mark.parametrize("y", range(FIELD, 2**255))
@pytest.mark.parametrize("sign", [0, 1])
def test_a_second_spelling_of_a_key_is_refused(y: int, sign: int) -> None:
    raw = (y | sign << 255).to_bytes(32, "little")
    assert fault_of(raw) is KeyFault.KEY_NOT_CANONICAL


@pytest.mark.parametrize("y", [1, FIELD - 1])
def test_a_zero_with_a_sign_is_a_second_spelling(y: int) -> None:
    assert fault_of((y | 1 << 255).to_bytes(32, "little")) is KeyFault.KEY_NOT_CANONICAL


def test_bytes_that_are_no_point_are_refused() -> None:
    assert fault_of((2).to_bytes(32, "little")) is KeyFault.KEY_UNREADABLE


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_bytes_of_another_length_are_refused(length: int) -> None:
    assert fault_of(bytes(length)) is KeyFault.KEY_UNREADABLE


@pytest.mark.parametrize("number", range(40))
def test_an_honest_key_is_taken(number: int) -> None:
    raw = SigningKey(bytes([number]) * 32).public.raw
    assert public_key(raw).raw == raw


# --- keyrings ------------------------------------------------------------------------------------


def test_one_key_twice_in_a_keyring_is_refused_whatever_its_window() -> None:
    again = PublicKey(ANN.public.raw, not_before=parse("2025-01-01T00:00:00Z"))
    with pytest.raises(UnusableKey) as refused:
        keyring_of([ANN.public, BOB.public, again], 2)
    assert refused.value.fault is KeyFault.KEY_DUPLICATE


@pytest.mark.parametrize("threshold", [-1, 0, 3])
def test_a_threshold_outside_the_keyring_is_refused(threshold: int) -> None:
    with pytest.raises(UnusableKey) as refused:
        trust(ANN, BOB, threshold=threshold)
    assert refused.value.fault is KeyFault.THRESHOLD


@pytest.mark.parametrize("count", [0, KEYS_MAX + 1])
def test_a_keyring_has_a_size(count: int) -> None:
    keys = [SigningKey(bytes([number]) * 32).public for number in range(count)]
    with pytest.raises(UnusableKey) as refused:
        keyring_of(keys)
    assert refused.value.fault is KeyFault.KEYRING_SIZE


# --- public key files ----------------------------------------------------------------------------


def test_a_public_line_reads_back() -> None:
    assert PUBLIC_PREFIX + b64(ANN.public.raw) == LINE
    assert read_public_keys(f"{LINE}\n".encode()) == (ANN.public,)


def test_a_file_may_hold_several_keys_remarks_and_other_line_ends() -> None:
    text = f"# refunds\r\n{LINE}\r\n\r\n{public_line(BOB.public)}"
    assert read_public_keys(text.encode()) == (ANN.public, BOB.public)


def test_a_window_reads_back_and_both_its_ends_are_inside() -> None:
    start, end = parse("2025-01-01T00:00:00Z"), parse("2025-12-31T23:59:59.5Z")
    key = public_key(ANN.public.raw, start, end)
    assert read_public_keys(public_line(key).encode()) == (key,)
    assert key.is_valid_at(start)
    assert key.is_valid_at(end)
    assert not key.is_valid_at(parse("2024-12-31T23:59:59.999999999Z"))
    assert not key.is_valid_at(parse("2025-12-31T23:59:59.500000001Z"))


@pytest.mark.parametrize(
    "window",
    [
        "not_before=yesterday",
        "not_before=2025-01-01",
        "not_before",
        "not_befor=2025-01-01T00:00:00Z",
        "not_after=2025-01-01T00:00:00Z not_after=2026-01-01T00:00:00Z",
        "not_before=2026-01-01T00:00:00Z not_after=2025-01-01T00:00:00Z",
        "for-ever",
    ],
)
def test_a_window_that_cannot_be_read_refuses_its_key(window: str) -> None:
    assert fault_in(f"{LINE} {window}") is KeyFault.KEY_UNREADABLE


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing but a remark\n",
        "hello",
        b64(ANN.public.raw),
        PUBLIC_PREFIX,
        LINE[:-1],
        LINE[:-4],
        f"{PUBLIC_PREFIX} {b64(ANN.public.raw)}",
        LINE.upper(),
        private_line(SEED),
        b"\xff\xfe",
        "-----BEGIN PUBLIC KEY-----\nnot base64\n-----END PUBLIC KEY-----\n",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ],
)
def test_what_is_no_public_key_file_is_refused(text: str | bytes) -> None:
    assert fault_in(text) is KeyFault.KEY_UNREADABLE


def test_a_low_order_key_in_a_file_is_refused_for_that() -> None:
    assert fault_in(PUBLIC_PREFIX + b64(b"\1" + bytes(31))) is KeyFault.KEY_LOW_ORDER


def test_a_pem_public_key_is_the_same_key() -> None:
    public = Ed25519PublicKey.from_public_bytes(ANN.public.raw)
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert read_public_keys(pem) == (ANN.public,)


def test_a_low_order_key_in_pem_is_refused_for_that() -> None:
    public = Ed25519PublicKey.from_public_bytes(b"\1" + bytes(31))
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert fault_in(pem) is KeyFault.KEY_LOW_ORDER


def test_a_pem_key_of_another_algorithm_is_refused() -> None:
    public = generate_private_key(SECP256R1()).public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert fault_in(pem) is KeyFault.KEY_UNREADABLE


def test_a_private_key_in_pem_is_not_trusted_by_mistake() -> None:
    private = Ed25519PrivateKey.from_private_bytes(SEED)
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    assert fault_in(pem) is KeyFault.KEY_UNREADABLE


# --- private keys --------------------------------------------------------------------------------


def test_a_private_line_reads_back_as_the_same_key() -> None:
    key = read_private_key(f"{private_line(SEED)}\n".encode())
    assert key.public == SigningKey(SEED).public
    assert key.sign(b"m") == SigningKey(SEED).sign(b"m")


def test_a_key_id_is_the_digest_of_the_raw_key() -> None:
    # RFC 8032, section 7.1, the first test's key pair
    seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
    raw = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    key = SigningKey(bytes.fromhex(seed)).public
    assert key.raw.hex() == raw
    assert key.key_id == "21fe31dfa154a261626bf854046fd2271b7bed4b6abe45aa58877ef47f9721b9"


@pytest.mark.parametrize(
    "text",
    [
        "",
        PRIVATE_PREFIX,
        private_line(SEED[:31]),
        private_line(SEED + b"\0"),
        private_line(SEED).replace("=", ""),
        private_line(SEED) + "\n" + private_line(SEED),
        b64(SEED),
        LINE,
    ],
)
def test_what_is_no_private_key_file_is_refused_without_quoting_it(text: str) -> None:
    with pytest.raises(BadInput) as refused:
        read_private_key(text.encode())
    assert b64(SEED)[:20] not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_signing_key_does_not_show_its_seed() -> None:
    shown = repr(SigningKey(SEED)) + str(SigningKey(SEED))
    assert SEED.hex() not in shown
    assert base64.b64encode(SEED).decode() not in shown
    assert EVE.public.key_id in repr(EVE)
