"""Bytes to values, strictly (uncertain-effect, "What comes in"). Total: values, or MalformedRecord.

Refused anywhere in the document, read later or not: invalid UTF-8, a byte order mark, a name twice
in one object, a lone surrogate, NaN and the infinities, a number that overflows a double, more than
``RECORD_DEPTH_MAX`` containers in one another. The standard library's scanner does the parsing;
what it lets pass is caught by its hooks and by scans that cost next to nothing on an honest record.
Only a document with a fault is read again, to say where the fault is.
"""

from __future__ import annotations

from itertools import accumulate
from json import JSONDecodeError, JSONDecoder, dumps

from counterfoil import limits
from counterfoil.errors import MalformedRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

BYTE_ORDER_MARK = "\ufeff"
WHITE_SPACE = " \t\n\r"
DOUBLE_DIGITS_SAFE = 308  # an integer of so many digits is below the largest double
POINTER_TOKEN_MAX = 128  # characters of a name that still makes a pointer somebody can read

_DEPTH_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_DEPTH_IGNORED = bytes(code for code in range(256) if code not in b'[]{}"')


class Real(float):
    """A JSON number with a fraction or an exponent: the nearest double, and the exact ``text``."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


class _FaultError(Exception):
    """A fault that a hook of the parser met; where it is, the second reading tells."""


def parse_object(data: bytes) -> dict[str, object]:
    """Return the members of a document that is one JSON object.

    Raises MalformedRecord, as ``parse`` does, and for a document that is anything else.
    """
    values = parse(data)
    if type(values) is not dict:
        raise MalformedRecord("", "a record is one JSON object")
    return values


def parse(data: bytes) -> object:
    """Return the value that a JSON document holds.

    Objects become dict, arrays list, integers int, other numbers ``Real``. Raises MalformedRecord.
    """
    if len(data) > limits.RECORD_BYTES_MAX:
        raise MalformedRecord("", f"longer than {limits.RECORD_BYTES_MAX} bytes")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedRecord("", f"not UTF-8 at byte {error.start}") from None
    if data.count(b"[") + data.count(b"{") > limits.RECORD_DEPTH_MAX:
        _refuse_depth(data)
    start = 0 if text[:1] == "{" else _start(text)
    try:
        value, end = _STRICT.raw_decode(text, start)
    except JSONDecodeError as error:
        raise MalformedRecord("", _syntax(error)) from None
    except _FaultError:
        _refuse_fault(text, start)
    if end != len(text) and text[end:].strip(WHITE_SPACE):
        raise MalformedRecord("", f"more than one JSON value, at character {end}")
    if "\\" in text and ("\\ud" in text or "\\uD" in text) and _has_lone_surrogate(value):
        _refuse_fault(text, start)
    return value


def pointer_token(name: str) -> str:
    """Return a member's name as a token of a JSON Pointer, in text that UTF-8 can carry."""
    name = name.encode("utf-8", "backslashreplace").decode("utf-8")
    return name.replace("~", "~0").replace("/", "~1")


def _start(text: str) -> int:
    if text.startswith(BYTE_ORDER_MARK):
        raise MalformedRecord("", "begins with a byte order mark")
    start = len(text) - len(text.lstrip(WHITE_SPACE))
    if start == len(text):
        raise MalformedRecord("", "empty: there is no JSON value")
    return start


def _syntax(error: JSONDecodeError) -> str:
    problem = error.msg[:1].lower() + error.msg[1:]
    return f"not JSON: {problem} (line {error.lineno}, column {error.colno})"


def _refuse_depth(data: bytes) -> None:
    """Measure the depth before the parser recurses.

    Strings are cut out at their quotes, so escapes go first. A backslash outside a string ends the
    parse where it stands, so what it hides here is never reached.
    """
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    steps = b"".join(data.translate(_DEPTH_STEPS, _DEPTH_IGNORED).split(b'"')[::2])
    if max(accumulate(memoryview(steps).cast("b")), default=0) > limits.RECORD_DEPTH_MAX:
        raise MalformedRecord("", f"nested more than {limits.RECORD_DEPTH_MAX} deep")


# --- the first reading: hooks that refuse --------------------------------------------------------


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    if len(members := dict(pairs)) == len(pairs):
        return members
    raise _FaultError


def _integer(text: str) -> int:
    if len(text) > DOUBLE_DIGITS_SAFE and _overflows(float(text)):
        raise _FaultError
    return int(text)


def _real(text: str) -> Real:
    number = Real(text)
    if _overflows(number):
        raise _FaultError
    return number


def _constant(_name: str) -> NoReturn:
    raise _FaultError


def _overflows(number: float) -> bool:
    return number in (_INFINITY, -_INFINITY)


def _has_lone_surrogate(value: object) -> bool:
    try:
        dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


_INFINITY = float("inf")
_STRICT = JSONDecoder(
    object_pairs_hook=_members,
    parse_int=_integer,
    parse_float=_real,
    parse_constant=_constant,
)


# --- the second reading: says where the fault is -------------------------------------------------


class _Pairs(list[tuple[str, object]]):
    """An object's members as they stand, a name twice included."""


class _Bad(str):
    """A number that is none, as a sentence."""

    __slots__ = ()


def _note_number(text: str) -> object:
    return _Bad("a number too large for a double") if _overflows(float(text)) else None


def _note_constant(name: str) -> _Bad:
    return _Bad(f"{name} is not a JSON number")


_LENIENT = JSONDecoder(
    object_pairs_hook=_Pairs,
    parse_int=_note_number,
    parse_float=_note_number,
    parse_constant=_note_constant,
)

_Place = tuple["_Place | None", str]


def _refuse_fault(text: str, start: int) -> NoReturn:
    """Raise MalformedRecord for the first fault in the document's order."""
    try:
        value, _ = _LENIENT.raw_decode(text, start)
    except JSONDecodeError as error:
        raise MalformedRecord("", _syntax(error)) from None
    stack: list[tuple[_Place | None, object]] = [(None, value)]
    while stack:
        place, value = stack.pop()
        children: list[tuple[_Place | None, object]] = []
        if isinstance(value, _Pairs):
            names: set[str] = set()
            for name, member in value:
                here = (place, pointer_token(name))
                if name in names:
                    raise MalformedRecord(_pointer(here), "the name stands twice in its object")
                if not _encodable(name):
                    raise MalformedRecord(_pointer(here), "a lone surrogate in the name")
                names.add(name)
                children.append((here, member))
        elif isinstance(value, list):
            children = [((place, str(index)), item) for index, item in enumerate(value)]
        elif isinstance(value, _Bad):
            raise MalformedRecord(_pointer(place), str(value))
        elif isinstance(value, str) and not _encodable(value):
            raise MalformedRecord(_pointer(place), "a lone surrogate in the string")
        stack.extend(reversed(children))
    raise MalformedRecord("", "a fault that the first reading met and the second did not")


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _pointer(place: _Place | None) -> str:
    """Return the JSON Pointer; it stops above a name that is too long to be read."""
    tokens: list[str] = []
    while place is not None:
        place, token = place
        if len(token) > POINTER_TOKEN_MAX:
            tokens.clear()
        else:
            tokens.append(token)
    return "".join("/" + token for token in reversed(tokens))
