"""JSON text of small values, written often: one encoder, made once.

`json.dumps` and `JSONEncoder.encode` build a new C encoder at each call, which costs more than the
encoding of an event.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from json.encoder import encode_basestring_ascii
from typing import NoReturn

Encode = Callable[[object], str]


def _refuse(value: object) -> NoReturn:
    raise TypeError(f"{type(value).__name__} is not JSON")


def _make_encoder() -> Encode:
    try:
        from json.encoder import c_make_encoder  # type: ignore[attr-defined]
    except ImportError:  # an interpreter without the C speed-ups
        c_make_encoder = None
    if c_make_encoder is None:
        return json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
    # markers, default, encoder, indent, key separator, item separator, sort, skip keys, allow NaN
    make: Callable[..., Callable[[object, int], Iterable[str]]] = c_make_encoder
    once = make(None, _refuse, encode_basestring_ascii, None, ":", ",", False, False, False)
    return lambda value: "".join(once(value, 0))


encode = _make_encoder()
"""Return the JSON text of a value, ASCII only, without spaces.

Raises ``TypeError``, ``ValueError`` (NaN, an infinity) or ``RecursionError`` (a cycle).
"""
