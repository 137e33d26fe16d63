"""DSSE envelopes: signed bytes with their type. Total: verified bytes, or one reason.

The rules are those of the design page (faults, "Signatures"); their numbers stand where they are
kept. Nothing of a payload is parsed here, and nothing of it may be before this says so.
"""

from __future__ import annotations

import json

from counterfoil import limits
from counterfoil.errors import BadInput, MalformedRecord
from counterfoil.evidence import base64_text
from counterfoil.evidence.keyring import KeyFault, UnusableKey
from counterfoil.evidence.reasons import EvidenceRefused, Reason
from counterfoil.record.strict_json import parse_object
from counterfoil.record.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from counterfoil.evidence.keyring import Keyring, PublicKey, SigningKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"
SIGNATURES_MAX = 16
"""Signatures in an envelope (rule 10): each may have to be tried under every trusted key."""

ENVELOPE_BYTES_MAX = limits.RECORD_BYTES_MAX
"""One envelope, as one record: readers hold no more of either."""


class Verified(Value):
    """Bytes that enough trusted keys have signed, and who: each key once, as the keyring has it."""

    payload: bytes
    payload_type: str
    signers: tuple[PublicKey, ...]


class _Envelope(Value):
    payload: bytes
    payload_type: str
    signatures: tuple[tuple[object, bytes], ...]


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that a signature is over: the type and the payload with their lengths.

    Lengths are in bytes, the type's in UTF-8 (rule 1). Raises BadInput for a lone surrogate.
    """
    try:
        named = payload_type.encode("utf-8")
    except UnicodeEncodeError:
        raise BadInput("a payload type with a lone surrogate; use text that UTF-8 has") from None
    return b"DSSEv1 %d %b %d %b" % (len(named), named, len(payload), payload)


def sign(payload_type: str, payload: bytes, keys: Sequence[SigningKey]) -> bytes:
    """Return the JSON bytes of an envelope, one line without its end, signed by each key.

    Raises BadInput without a key, with more than ``SIGNATURES_MAX``, and where the envelope would
    be longer than a reader takes; UnusableKey for one key twice.
    """
    if not 1 <= len(keys) <= SIGNATURES_MAX:
        raise BadInput(f"{len(keys)} keys to sign with; name 1 to {SIGNATURES_MAX}")
    ids = [key.public.key_id for key in keys]
    if len(set(ids)) != len(ids):
        raise UnusableKey(KeyFault.KEY_DUPLICATE, "one key signs once; name each key once")
    message = pae(payload_type, payload)
    signatures = [
        {"keyid": name, "sig": base64_text.encode(key.sign(message))}
        for name, key in zip(ids, keys, strict=True)
    ]
    values = {
        "payload": base64_text.encode(payload),
        "payloadType": payload_type,
        "signatures": signatures,
    }
    envelope = json.dumps(values, separators=(",", ":")).encode()
    if len(envelope) > ENVELOPE_BYTES_MAX:
        raise BadInput(
            f"the envelope would be longer than {ENVELOPE_BYTES_MAX} bytes; sign a shorter record"
        )
    return envelope


def verify(
    envelope: bytes, keyring: Keyring, payload_types: Collection[str] = (PAYLOAD_TYPE,)
) -> Verified | EvidenceRefused:
    """Return the payload that enough keys of the keyring have signed, or why there is none.

    ``payload_types`` lists the types that are accepted, to the letter. Whether a key is within its
    window is not judged here: the record's time is in bytes that nobody has read yet.
    """
    try:
        values = parse_object(envelope)
    except MalformedRecord as error:
        return EvidenceRefused(Reason.NOT_AN_ENVELOPE, f"no JSON object to read: {error}")
    return verify_values(values, keyring, payload_types)


def verify_values(
    values: Mapping[str, object],
    keyring: Keyring,
    payload_types: Collection[str] = (PAYLOAD_TYPE,),
) -> Verified | EvidenceRefused:
    """Do as ``verify`` does with the members of an envelope, as ``strict_json`` gave them."""
    envelope = _read(values)
    if isinstance(envelope, EvidenceRefused):
        return envelope
    signers = _signers(envelope, keyring)
    if not signers:
        return EvidenceRefused(
            Reason.NOT_SIGNED_BY_TRUSTED_KEYS,
            f"none of {len(envelope.signatures)} signatures holds under a trusted key; "
            "check the keys, or do not use it",
        )
    if len(signers) < keyring.threshold:
        return EvidenceRefused(
            Reason.THRESHOLD,
            f"signed by {len(signers)} of the {keyring.threshold} trusted keys that are asked for",
        )
    # Rule 6: the type is the signer's word only once the signature holds.
    if envelope.payload_type not in payload_types:
        return EvidenceRefused(
            Reason.WRONG_PAYLOAD_TYPE,
            f"signed as {envelope.payload_type[:80]!a}, not as {' or '.join(payload_types)}",
        )
    return Verified(envelope.payload, envelope.payload_type, signers)


def _signers(envelope: _Envelope, keyring: Keyring) -> tuple[PublicKey, ...]:
    """Return the trusted keys under which a signature holds, each once (rules 3 and 10).

    The key id decides nothing (rule 2): it only says which key to try first.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    message = pae(envelope.payload_type, envelope.payload)
    holding: set[bytes] = set()
    for hint, signature in envelope.signatures:
        for key in sorted(keyring.keys, key=lambda key: key.key_id != hint):
            try:
                Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, message)
            except InvalidSignature:
                continue
            holding.add(key.raw)
            break
    return tuple(key for key in keyring.keys if key.raw in holding)


def _read(values: Mapping[str, object]) -> _Envelope | EvidenceRefused:
    payload, payload_type = values.get("payload"), values.get("payloadType")
    listed = values.get("signatures")
    if not isinstance(payload, str) or not isinstance(payload_type, str):
        return _no_envelope("payload and payloadType must be strings")
    if not isinstance(listed, list):
        return _no_envelope("signatures must be a list")
    if not listed:
        return EvidenceRefused(Reason.NO_SIGNATURES, "nobody has signed it")
    if len(listed) > SIGNATURES_MAX:
        return EvidenceRefused(
            Reason.TOO_MANY_SIGNATURES,
            f"{len(listed)} signatures, and at most {SIGNATURES_MAX} are read",
        )
    data = base64_text.decode(payload)
    if data is None:
        return _bad_base64("/payload")
    signatures: list[tuple[object, bytes]] = []
    for index, item in enumerate(listed):
        if not isinstance(item, dict) or not isinstance(item.get("sig"), str):
            return _no_envelope(f"/signatures/{index} must be an object with a string sig")
        hint = item.get("keyid")
        if hint is not None and not isinstance(hint, str):
            return _no_envelope(f"/signatures/{index}/keyid must be a string, or not there")
        signature = base64_text.decode(item["sig"])
        if signature is None:
            return _bad_base64(f"/signatures/{index}/sig")
        signatures.append((hint, signature))
    return _Envelope(data, payload_type, tuple(signatures))


def _no_envelope(detail: str) -> EvidenceRefused:
    return EvidenceRefused(Reason.NOT_AN_ENVELOPE, detail)


def _bad_base64(path: str) -> EvidenceRefused:
    return EvidenceRefused(
        Reason.BAD_BASE64, f"{path} is not exactly base64: padded, one alphabet, no white space"
    )
