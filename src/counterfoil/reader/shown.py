"""Text of a record on its way to a person: it can never act on a terminal, a line or a page."""

from __future__ import annotations

SHOWN_CHARACTERS_MAX = 80


def shown(text: str, characters_max: int | None = SHOWN_CHARACTERS_MAX) -> str:
    """Return the text in double quotes, cut, with all that is not visible text escaped.

    Control characters, line breaks, bidirectional and zero-width marks, lone surrogates, the quote
    and the backslash become escapes; letters of any script stay.
    """
    cut = characters_max is not None and len(text) > characters_max
    kept = text[:characters_max] if cut else text
    return f'"{escaped(kept)}"' + ("..." if cut else "")


def escaped(text: str) -> str:
    """Return the text without quotes, all that is not visible text escaped."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return text
    return "".join(_escape(character) for character in text)


def _escape(character: str) -> str:
    if character in {'"', "\\"}:
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
