"""What makes two requests the same operation: its id, its key, its digest.

Unique is (namespace, tenant, operation id). The key is made once from those and the action, stored,
and never computed again (coordinator, "Identity").
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from counterfoil.errors import BadInput, InvalidOperationId
from counterfoil.limits import KEY_CHARACTERS_MAX, OPERATION_ID_BYTES_MAX

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_KEY = re.compile(r"[\x21-\x7e]+", re.ASCII)
_AMOUNT = re.compile(r"(?:0|[1-9][0-9]*)(?:\.[0-9]+)?", re.ASCII)
_AMOUNT_CHARACTERS_MAX = 64


class StreamId(NamedTuple):
    """Which operation, in which book: unique in a store."""

    namespace: str
    tenant: str
    operation_id: str


def check_name(text: object, what: str) -> str:
    """Return ``text`` if it can name something: 1 to 256 bytes of UTF-8, no control characters.

    Raises ``InvalidOperationId``.
    """
    if not isinstance(text, str):
        raise InvalidOperationId(f"{what} must be text, not {type(text).__name__}")
    if not text:
        raise InvalidOperationId(f"{what} is empty; name the one change that is intended")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidOperationId(f"{what} holds a lone surrogate; use text that is UTF-8") from None
    if size > OPERATION_ID_BYTES_MAX:
        raise InvalidOperationId(
            f"{what} has {size} bytes; at most {OPERATION_ID_BYTES_MAX} can be stored"
        )
    if not text.isprintable() and _CONTROL.search(text):
        raise InvalidOperationId(f"{what} holds a control character; leave it out")
    return text


def make_key(stream: StreamId, action: str) -> str:
    """Return the idempotency key: ``cf1-`` and 112 bits of a hash, 32 ASCII characters.

    Four characters stay free below 36, the least that common APIs take, for a later ``.2``. Names
    hold no control characters, so lines keep them apart.
    """
    parts = f"{stream.namespace}\n{stream.tenant}\n{action}\n{stream.operation_id}"
    return "cf1-" + hashlib.sha256(parts.encode()).hexdigest()[:28]


def check_key(key: object) -> str:
    """Return a caller's own key if an HTTP header can carry it. Raises ``BadInput``."""
    if not isinstance(key, str) or not _KEY.fullmatch(key) or len(key) > KEY_CHARACTERS_MAX:
        raise BadInput(
            f"key: give 1 to {KEY_CHARACTERS_MAX} visible ASCII characters, or leave it out"
        )
    return key


def key_after_refusal(first_key: str, generation: int) -> str:
    """Return the key of a later generation: ``key.2`` after the first refusal, then ``key.3``."""
    return first_key if generation == 1 else f"{first_key}.{generation}"


def check_amount(text: object, what: str) -> str:
    """Return an exact decimal string as it is written without trailing zeros. Raises ``BadInput``.

    ASCII digits and one point; no sign, exponent, space or leading zero (design page, mission).
    """
    if (
        not isinstance(text, str)
        or len(text) > _AMOUNT_CHARACTERS_MAX
        or not _AMOUNT.fullmatch(text)
    ):
        raise BadInput(f'{what}: {text!r} is no amount; write a decimal string such as "12.50"')
    return text.rstrip("0").rstrip(".") if "." in text else text
