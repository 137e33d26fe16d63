"""What of a returned value is kept: JSON text, or the reason why there is none."""

from __future__ import annotations

from counterfoil.limits import TEXT_CHARACTERS_MAX, VALUE_BYTES_MAX
from counterfoil.operation.plain_json import encode

UNENCODABLE = "unencodable"
TOO_LARGE = "too_large"


def encode_value(value: object) -> tuple[str | None, str | None]:
    """Return (JSON text, None), or (None, why it cannot be kept); (None, None) for None."""
    if value is None:
        return None, None
    try:
        text = encode(value)
    except (TypeError, ValueError, RecursionError):
        return None, UNENCODABLE
    return (text, None) if len(text) <= VALUE_BYTES_MAX else (None, TOO_LARGE)


def cut_text(text: str | None) -> str | None:
    """Return free text on one line, without control characters, at most 2,048 characters."""
    if text is None:
        return None
    if text.isprintable() and text.isascii() and len(text) <= TEXT_CHARACTERS_MAX:
        return text
    line = "".join(c if c.isprintable() or c == " " else " " for c in text[:TEXT_CHARACTERS_MAX])
    return line.encode("utf-8", "replace").decode()
