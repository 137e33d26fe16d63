"""What the tests of evidence share: keys from fixed seeds, a record, and envelopes to spoil."""

from __future__ import annotations

import base64
import json
from typing import Any

from counterfoil.evidence import dsse
from counterfoil.evidence.keyring import Keyring, SigningKey, keyring_of
from counterfoil.evidence.reasons import EvidenceRefused, Reason
from counterfoil.evidence.statement import statement_of
from counterfoil.record.model import CONTRACT_ID

ANN, BOB, EVE = (SigningKey(bytes([number]) * 32) for number in (1, 2, 3))
DIGEST = "ab" * 32
CURVE_ORDER = 2**252 + 27742317777372353535851937790883648493


def record(**changes: object) -> dict[str, Any]:
    """One operation, sent once, whose reply was lost and which the owner found present."""
    values: dict[str, Any] = {
        "contractId": CONTRACT_ID,
        "operation": {
            "id": "op-1",
            "action": "refund",
            "idempotencyKey": "k-1",
            "argsDigest": f"sha256:{DIGEST}",
        },
        "effectOwner": {"id": "pay", "deduplicatesByKey": False, "keyRetentionSeconds": 600.5},
        "attempts": [
            {
                "attempt": 1,
                "idempotencyKey": "k-1",
                "argsDigest": f"sha256:{DIGEST}",
                "dispatchedAt": "2025-03-01T10:00:00Z",
                "reply": "timeout",
            }
        ],
        "reconciliations": [
            {
                "at": "2025-03-01T10:05:00Z",
                "idempotencyKey": "k-1",
                "result": "present",
                "final": True,
            }
        ],
        "ownerEffects": [{"id": "e-1"}],
        "reported": {"outcome": "committed"},
        "note": "caf\u00e9 \u20ac \U0001f600",
    }
    return {**values, **changes}


RECORD = json.dumps(record()).encode()


def statement(**changes: object) -> dict[str, Any]:
    """The Statement over the record, its members changed."""
    return {**json.loads(statement_of(RECORD)), **changes}


def signed(payload: object = None, *keys: SigningKey, payload_type: str = dsse.PAYLOAD_TYPE) -> Any:
    """The members of an envelope, by default over the record's Statement and signed by Ann."""
    data = payload if isinstance(payload, bytes) else json.dumps(payload or statement()).encode()
    return json.loads(dsse.sign(payload_type, data, keys or (ANN,)))


def trust(*keys: SigningKey, threshold: int = 1) -> Keyring:
    return keyring_of((key.public for key in keys or (ANN,)), threshold)


def data(values: object) -> bytes:
    return json.dumps(values).encode()


def reason(answer: object) -> Reason | None:
    """The reason of a refusal; None for what was opened."""
    return answer.reason if isinstance(answer, EvidenceRefused) else None


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
