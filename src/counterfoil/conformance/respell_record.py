"""Other ids, keys, workers and digests inside a record's bytes, so that no answer can be looked up.

Letters become letters and digits become digits, by one substitution for the whole record: what is
equal stays equal, what differs only by case, by a space or by a mark of no width still does, and a
digest is as long, and as lower-case, as it was. Only values of the members in ``NAMES`` change, and
in them nothing but ASCII letters and digits: no quote, escape, bracket, number, name or byte above
127. What makes a record malformed is one of those, so a respelled record is malformed still.
"""

from __future__ import annotations

import json
import re
import string
import unicodedata
from typing import TYPE_CHECKING

from counterfoil.reader.verdict import Malformed, judge_bytes

if TYPE_CHECKING:
    import random

NAMES = frozenset({"id", "action", "idempotencyKey", "worker", "argsDigest", "effectId"})
DIGEST = "argsDigest"

_LITERAL = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_COLON = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*")
_PIECE = re.compile(rb"\\u[0-9a-fA-F]{4}|\\.|[\x80-\xff]+|.", re.DOTALL)
_HEX_LETTERS = "abcdef"


def respelled(data: bytes, dice: random.Random) -> bytes:
    """Return the record respelled, or as it is where that would change its verdict."""
    words = _substitution(string.ascii_lowercase, dice)
    digests = _substitution(_HEX_LETTERS, dice)
    out: list[bytes] = []
    done = 0
    name, name_end = b"", -1
    for found in _LITERAL.finditer(data):
        colon = _COLON.match(data, found.end())
        if colon is not None:
            name, name_end = found[0], colon.end()
        elif found.start() == name_end and (member := _decoded(name)) in NAMES:
            text = found[0]
            text = _digest(text, digests) if member == DIGEST else _respell(text, words)
            out += [data[done : found.start()], text]
            done = found.end()
    changed = b"".join([*out, data[done:]])
    return changed if _answer(changed) == _answer(data) else data


def _answer(data: bytes) -> str:
    answer = judge_bytes(data)
    return "malformed" if isinstance(answer, Malformed) else answer.reason


def _substitution(letters: str, dice: random.Random) -> dict[str, str]:
    """Return another letter for each letter, alike in both cases, and another digit for each."""
    table: dict[str, str] = {}
    for alphabet in (letters, string.digits):
        shuffled = dice.sample(alphabet, len(alphabet))
        table |= zip(alphabet, shuffled, strict=True)
        table |= zip(alphabet.upper(), map(str.upper, shuffled), strict=True)
    return table


def _digest(literal: bytes, table: dict[str, str]) -> bytes:
    """Respell what follows the name of the algorithm."""
    prefix, colon, digits = literal.rpartition(b":")
    return prefix + colon + _respell(digits, table)


def _respell(literal: bytes, table: dict[str, str]) -> bytes:
    pieces = _PIECE.findall(literal)
    followers = [*pieces[1:], b""]
    return b"".join(
        # A letter with a mark stays: only so is it another spelling of the letter composed.
        piece if _is_mark(follower) else _piece(piece, table)
        for piece, follower in zip(pieces, followers, strict=True)
    )


def _is_mark(piece: bytes) -> bool:
    """Say whether this piece of a literal begins with a combining mark."""
    text = _escaped(piece) if _is_escape(piece) else piece.decode("utf-8", "replace")
    return unicodedata.combining(text[:1] or " ") != 0


def _piece(piece: bytes, table: dict[str, str]) -> bytes:
    if len(piece) == 1:
        return table.get(piece.decode("latin-1"), piece.decode("latin-1")).encode("latin-1")
    if _is_escape(piece):
        one = _escaped(piece)
        return f"\\u{ord(table[one]):04x}".encode() if one in table else piece
    return piece


def _is_escape(piece: bytes) -> bool:
    return len(piece) == 6 and piece.startswith(b"\\u")


def _escaped(piece: bytes) -> str:
    return chr(int(piece.removeprefix(b"\\u"), 16))


def _decoded(literal: bytes) -> str | None:
    """Return the member name that a literal spells, escapes undone; None for what is no text."""
    try:
        name = json.loads(literal)
    except ValueError:
        return None
    return name if isinstance(name, str) else None
