"""Envelopes under any change: what comes out was signed, or nothing comes out (invariant I12)."""

from __future__ import annotations

import base64
import json

from hypothesis import example, given
from hypothesis import strategies as st

from counterfoil.evidence import base64_text, dsse
from counterfoil.evidence.keyring import SigningKey, UnusableKey, keyring_of, public_key
from counterfoil.evidence.opening import Opened, open_evidence
from counterfoil.evidence.reasons import EvidenceRefused

ANN, BOB, EVE = (SigningKey(bytes([number]) * 32) for number in (1, 2, 3))
KEYS = (ANN, BOB, EVE)
PAYLOAD = b'{"said": "caf\xc3\xa9"}'
TYPES = ("text/plain", "application/caf\u00e9")
ENVELOPES = tuple(dsse.sign(kind, PAYLOAD, [ANN, BOB]) for kind in TYPES)
KEYRING = keyring_of([ANN.public, BOB.public])


@given(st.sampled_from(ENVELOPES), st.data())
def test_a_flipped_bit_anywhere_never_changes_what_is_verified(
    envelope: bytes, data: st.DataObject
) -> None:
    bit = data.draw(st.integers(0, len(envelope) * 8 - 1))
    flipped = bytearray(envelope)
    flipped[bit // 8] ^= 1 << bit % 8
    found = dsse.verify(bytes(flipped), KEYRING, TYPES)
    if isinstance(found, dsse.Verified):
        assert found.payload == PAYLOAD
        assert set(found.signers) <= {ANN.public, BOB.public}


@given(st.sampled_from(ENVELOPES), st.data())
def test_a_flipped_bit_in_the_payload_or_in_its_type_is_refused(
    envelope: bytes, data: st.DataObject
) -> None:
    values = json.loads(envelope)
    if data.draw(st.booleans()):
        payload = bytearray(PAYLOAD)
        payload[data.draw(st.integers(0, len(PAYLOAD) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        values["payload"] = base64.b64encode(payload).decode()
    else:
        values["payloadType"] = TYPES[values["payloadType"] == TYPES[0]]
    found = dsse.verify(json.dumps(values).encode(), KEYRING, TYPES)
    assert isinstance(found, EvidenceRefused)


@given(st.integers(0, 511))
def test_a_signature_with_one_flipped_bit_does_not_hold(bit: int) -> None:
    values = json.loads(dsse.sign(TYPES[0], PAYLOAD, [ANN]))
    signature = bytearray(base64.b64decode(values["signatures"][0]["sig"]))
    signature[bit // 8] ^= 1 << bit % 8
    values["signatures"][0]["sig"] = base64.b64encode(signature).decode()
    assert isinstance(dsse.verify(json.dumps(values).encode(), KEYRING, TYPES[:1]), EvidenceRefused)


@given(
    st.lists(st.sampled_from(KEYS), min_size=1, unique=True),
    st.lists(st.sampled_from(KEYS), min_size=1, unique=True),
    st.integers(1, 3),
    st.binary(max_size=50),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    st.integers(1, 3),
)
def test_enough_trusted_signers_are_exactly_what_is_asked_for(
    signing: list[SigningKey],
    trusted: list[SigningKey],
    threshold: int,
    payload: bytes,
    kind: str,
    copies: int,
) -> None:
    """Whatever the type and payload, and however often each signature stands in the envelope."""
    keyring = keyring_of((key.public for key in trusted), min(threshold, len(trusted)))
    values = json.loads(dsse.sign(kind, payload, signing))
    values["signatures"] *= copies
    found = dsse.verify(json.dumps(values).encode(), keyring, (kind,))
    both = tuple(key.public for key in trusted if key in signing)
    if len(both) >= keyring.threshold:
        assert found == dsse.Verified(payload, kind, both)
    else:
        assert isinstance(found, EvidenceRefused)


@given(st.one_of(st.binary(max_size=200), st.text(max_size=100).map(lambda text: text.encode())))
@example(b'{"payload": "", "payloadType": "", "signatures": [{"sig": ""}]}')
@example(b'{"_type": 1, "predicate": {}}')
def test_any_bytes_get_one_answer(raw: bytes) -> None:
    assert isinstance(open_evidence(raw), Opened | EvidenceRefused)
    assert isinstance(open_evidence(raw, KEYRING), EvidenceRefused)


@given(st.text("AQgw/+-_= \n", max_size=12))
def test_no_two_texts_of_one_alphabet_stand_for_the_same_bytes(text: str) -> None:
    found = base64_text.decode(text)
    if found is not None:
        url_safe = "-" in text or "_" in text
        again = base64.urlsafe_b64encode(found) if url_safe else base64.b64encode(found)
        assert again.decode() == text


@given(st.binary())
def test_all_bytes_survive_base64(data: bytes) -> None:
    assert base64_text.decode(base64_text.encode(data)) == data
    assert base64_text.decode(base64.urlsafe_b64encode(data).decode()) == data


@given(st.binary(min_size=32, max_size=32))
def test_any_32_bytes_are_a_key_or_are_refused(raw: bytes) -> None:
    try:
        key = public_key(raw)
    except UnusableKey:
        return
    assert key.raw == raw
