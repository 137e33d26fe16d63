"""From JSON text to checked values, strictly: one place for every rule about shape.

Refused everywhere, with a JSON Pointer: names that appear twice, more than 64 containers in
each other, integers past 2**53 - 1 (also those written as 1e16), numbers that are not finite,
lone surrogates, and anything that is no JSON. ``Members`` then reads one object: unknown and
missing members are refused, a missing one at its own path.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, NoReturn, TypeAlias, TypeVar

import rfc8785

from counterfoil.limits import INTEGER_MAX
from counterfoil.mission.amounts import AMOUNT_CHARACTERS_MAX, Amount, parse_amount
from counterfoil.mission.errors import MissionInput, shown

DEPTH_MAX = 64
"""Containers; the document is 1. Canonicalising recurses."""

NAME_CHARACTERS_MAX = 256
"""Characters of an id or name."""

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
Failure: TypeAlias = type[MissionInput]

_SURROGATE = re.compile("[\ud800-\udfff]")
_COUNT = re.compile(r"0|[1-9][0-9]*")
_EXPONENT_FORM = 1e21
"""From here on RFC 8785 writes an exponent; below it a whole number is written as an integer."""

E = TypeVar("E", bound=StrEnum)


class FrozenJson(NamedTuple):
    """A JSON value as its RFC 8785 bytes: it cannot be changed and compares as a value."""

    canonical: bytes

    def thaw(self) -> Json:
        """Return a fresh copy as plain values."""
        value: Json = json.loads(self.canonical)
        return value


def freeze(value: Json) -> FrozenJson:
    """Keep a checked value as its RFC 8785 bytes."""
    return FrozenJson(rfc8785.dumps(value))


class _Wrong:
    """Stands in a decoded document for what has no place there, until the walk points at it."""

    def __init__(self, detail: str, member: str | None = None) -> None:
        self.detail = detail
        self.member = member


def pointer(path: str, member: str | int) -> str:
    """Return the JSON Pointer of a member below ``path`` (RFC 6901)."""
    if isinstance(member, int):
        return f"{path}/{member}"
    return f"{path}/{member.replace('~', '~0').replace('/', '~1')}"


def load_object(source: str | bytes | Mapping[str, object], failure: Failure) -> dict[str, Json]:
    """Read a JSON object from text, UTF-8 bytes or an already decoded mapping, strictly.

    Raises ``failure`` with the pointer of what cannot be used.
    """
    value = load_any(source, failure)
    return checked_object(value, "", failure)


def load_any(source: str | bytes | Mapping[str, object], failure: Failure) -> object:
    """Decode text or bytes; nothing is checked but the syntax. A mapping is returned as a dict."""
    if isinstance(source, Mapping):
        return dict(source)
    try:
        text = source.decode("utf-8") if isinstance(source, bytes) else source
    except UnicodeDecodeError as error:
        raise failure("", f"is not UTF-8 at byte {error.start}; write it as UTF-8") from None
    if not isinstance(text, str):
        raise failure("", "is no JSON text; hand in text, bytes or a mapping")
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        raise failure("", f"is not JSON at character {error.pos + 1}: {error.msg}") from None
    except RecursionError:
        raise failure("", f"is more than {DEPTH_MAX} deep; flatten it") from None


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json] | _Wrong:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return _Wrong("appears twice; keep one", name)
        seen.add(name)
    raise AssertionError("a shorter dict has a name twice")


def _integer(text: str) -> int | _Wrong:
    # Longer ones are past the limit anyway, and converting them costs.
    return int(text) if len(text) <= len(str(INTEGER_MAX)) + 1 else _past()


def _constant(text: str) -> _Wrong:
    return _Wrong(f"{text} is no JSON number; leave it out or write it as text")


def _past() -> _Wrong:
    return _Wrong(f"is a whole number past {INTEGER_MAX}; write it as text")


def checked_object(value: object, path: str, failure: Failure, depth: int = 1) -> dict[str, Json]:
    """Check a decoded value as a whole (names, numbers, text, depth) and that it is an object.

    ``depth`` is what its outermost container counts as.
    """
    checked = _checked(value, path, failure, depth)
    if not isinstance(checked, dict):
        raise failure(path, "must be an object")
    return checked


def _checked(value: object, path: str, failure: Failure, depth: int) -> Json:
    if isinstance(value, str):
        if not value.isascii() and _SURROGATE.search(value):
            raise failure(path, "holds a lone surrogate; write whole characters")
        return value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict | list):
        if depth > DEPTH_MAX:
            raise failure(path, f"is more than {DEPTH_MAX} deep; flatten it")
        if isinstance(value, list):
            return [
                _checked(item, f"{path}/{index}", failure, depth + 1)
                for index, item in enumerate(value)
            ]
        return {
            _checked_name(name, path, failure): _checked(
                item, pointer(path, name), failure, depth + 1
            )
            for name, item in value.items()
        }
    return _checked_number(value, path, failure)


def _checked_name(name: object, path: str, failure: Failure) -> str:
    if not isinstance(name, str):
        raise failure(path, "has a name that is not text")
    if not name.isascii() and _SURROGATE.search(name):
        raise failure(path, "has a name with a lone surrogate; write whole characters")
    return name


def _checked_number(value: object, path: str, failure: Failure) -> Json:
    if isinstance(value, int):
        wrong = None if abs(value) <= INTEGER_MAX else _past()
    elif isinstance(value, float):
        if not math.isfinite(value):
            wrong = _Wrong("is too large for a number; write it as text")
        else:
            # What would be written as an integer must be one that every reader keeps.
            whole = value.is_integer() and INTEGER_MAX < abs(value) < _EXPONENT_FORM
            wrong = _past() if whole else None
    elif isinstance(value, _Wrong):
        wrong = value
    else:
        wrong = _Wrong("is no JSON value")
    if wrong is not None:
        at = path if wrong.member is None else pointer(path, wrong.member)
        raise failure(at, wrong.detail)
    assert isinstance(value, int | float)
    return value


def parse_count(text: str) -> int:
    """Read an integer decimal string; ValueError with a phrase for anything else."""
    if len(text) > AMOUNT_CHARACTERS_MAX:
        raise ValueError(f"longer than {AMOUNT_CHARACTERS_MAX} characters")
    if _COUNT.fullmatch(text) is None:
        raise ValueError('no plain whole number: write digits like "10"')
    return int(text)


class Members:
    """One object, read member by member; ``close`` refuses what nobody asked for."""

    def __init__(self, value: dict[str, Json], path: str, failure: Failure) -> None:
        self._value = value
        self._failure = failure
        self._read: set[str] = set()
        self.path = path

    def fail(self, member: str | int, detail: str) -> NoReturn:
        """Raise the error of this document at ``member``."""
        raise self._failure(pointer(self.path, member), detail)

    def fail_below(self, place: str, detail: str) -> NoReturn:
        """Raise the error of this document at a pointer below this object."""
        raise self._failure(f"{self.path}/{place}", detail)

    def has(self, member: str) -> bool:
        """Say whether an optional member is there."""
        return member in self._value

    def raw(self, member: str) -> Json:
        """Return a member that must be there, whatever it is."""
        if member not in self._value:
            self.fail(member, "is missing; add it")
        self._read.add(member)
        return self._value[member]

    def close(self) -> None:
        """Refuse members that were not read."""
        if len(self._read) != len(self._value):
            unknown = next(name for name in self._value if name not in self._read)
            self.fail(unknown, "is no member here; remove it")

    def _text(self, member: str) -> str:
        value = self.raw(member)
        if not isinstance(value, str):
            self.fail(member, "must be a string")
        return value

    def name(self, member: str) -> str:
        """Return an id or name: 1 to 256 characters."""
        value = self._text(member)
        self._check_name(value, member)
        return value

    def _check_name(self, value: str, member: str) -> None:
        if not value:
            self.fail(member, "is empty; give it a name")
        if len(value) > NAME_CHARACTERS_MAX:
            self.fail(member, f"has more than {NAME_CHARACTERS_MAX} characters; shorten it")

    def names(self, member: str) -> tuple[str, ...]:
        """Return a list of names, no two alike; it may be empty."""
        items = self.items(member)
        found: dict[str, None] = {}
        for index, item in enumerate(items):
            at = f"{member}/{index}"
            if not isinstance(item, str):
                self.fail_below(at, "must be a string")
            if not 0 < len(item) <= NAME_CHARACTERS_MAX:
                self.fail_below(at, f"must have 1 to {NAME_CHARACTERS_MAX} characters")
            if item in found:
                self.fail_below(at, "appears twice; keep one")
            found[item] = None
        return tuple(found)

    def items(self, member: str) -> list[Json]:
        """Return a list."""
        value = self.raw(member)
        if not isinstance(value, list):
            self.fail(member, "must be a list")
        return value

    def inner(self, member: str) -> Members:
        """Return the members of an object within this one."""
        return Members(self.plain_object(member), pointer(self.path, member), self._failure)

    def item(self, member: str, index: int, value: Json) -> Members:
        """Return the members of an object that is an item of the list ``member``."""
        if not isinstance(value, dict):
            self.fail_below(f"{member}/{index}", "must be an object")
        return Members(value, f"{self.path}/{member}/{index}", self._failure)

    def plain_object(self, member: str) -> dict[str, Json]:
        """Return an object whose members are the caller's own."""
        value = self.raw(member)
        if not isinstance(value, dict):
            self.fail(member, "must be an object")
        return value

    def amount(self, member: str) -> Amount:
        """Return an amount, given as a decimal string."""
        try:
            return parse_amount(self._text(member))
        except ValueError as error:
            self.fail(member, str(error))

    def count(self, member: str, least: int = 0) -> int:
        """Return a time or count, given as an integer decimal string."""
        try:
            value = parse_count(self._text(member))
        except ValueError as error:
            self.fail(member, str(error))
        if value < least:
            self.fail(member, f"must be at least {least}")
        return value

    def flag(self, member: str) -> bool:
        """Return true or false."""
        value = self.raw(member)
        if not isinstance(value, bool):
            self.fail(member, "must be true or false")
        return value

    def word(self, member: str, words: type[E]) -> E:
        """Return one of a closed set of words."""
        value = self._text(member)
        try:
            return words(value)
        except ValueError:
            self.fail(member, f"must be one of {', '.join(words)}")

    def constant(self, member: str, expected: str) -> str:
        """Return a member that can only have one value."""
        value = self._text(member)
        if value != expected:
            self.fail(member, f"is {shown(repr(value))}; this version knows {expected!r} only")
        return value

    def evidence(self, member: str) -> FrozenJson:
        """Return evidence or a reason: a string or an object, and not an empty one."""
        value = self.raw(member)
        if not isinstance(value, str | dict) or not value:
            self.fail(member, "must be a string or an object, and not empty")
        return freeze(value)
