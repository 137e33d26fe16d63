"""Base64 with exactly one spelling of each value in each alphabet (faults, signature rule 8).

The standard decoder skips white space, or accepts trailing bits that mean nothing: one signature
would have many spellings. Here text is accepted only if encoding its bytes gives that text again.
"""

from __future__ import annotations

import base64
import binascii


def decode(text: str) -> bytes | None:
    """Return the bytes that base64 text stands for; None if the text is not exactly base64.

    The standard and the URL-safe alphabet are accepted, not both in one text. White space, missing
    or surplus padding and trailing bits that are not zero are not.
    """
    url_safe = "-" in text or "_" in text
    altchars = b"-_" if url_safe else b"+/"
    try:
        data = base64.b64decode(text, altchars, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data, altchars).decode("ascii") == text else None


def encode(data: bytes) -> str:
    """Return the standard base64 text of some bytes, padded."""
    return base64.b64encode(data).decode("ascii")
