"""What a case of a corpus is, and the single edits by which one is made from another. Pure."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from counterfoil.conformance.scenario import Json

Members: TypeAlias = dict[str, Json]
"""A record as JSON values."""

Edit: TypeAlias = Callable[[Members], bytes]
"""Makes a case's bytes from a copy of its parent's values."""

MALFORMED = "malformed"
MALFORMED_REASON = "malformed_record"
HELD = "effect_held"
_PLACEHOLDER = "raw text stands here"


@dataclass(frozen=True, slots=True)
class Case:
    """One case: a record's bytes, the answer it is due, and what was done to which control.

    ``edit`` is a sentence; ``scenario`` names the scenario of the set ``core`` that puts a runtime
    in the same situation; ``parent`` is None for a control.
    """

    id: str
    data: bytes
    decision: str
    reason: str
    edit: str
    scenario: str
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus before it is written: its folder's name, its README's text, its cases in order."""

    name: str
    readme: str
    cases: tuple[Case, ...]


def json_bytes(value: Json) -> bytes:
    """Return the bytes of a manifest or a record in the style of the sister corpora."""
    return (json.dumps(value, indent=2, sort_keys=True, ensure_ascii=True) + "\n").encode()


class Controls:
    """The controls of a corpus, and how the other cases are made from them."""

    def __init__(self) -> None:
        self._values: dict[str, Members] = {}
        self._cases: dict[str, Case] = {}

    def add(self, case_id: str, scenario: str, about: str, values: Members) -> Case:
        """Add a control: it is allowed."""
        case = Case(case_id, json_bytes(values), "allow", HELD, f"control: {about}", scenario)
        self._values[case_id] = values
        self._cases[case_id] = case
        return case

    @property
    def cases(self) -> tuple[Case, ...]:
        """The controls, in the order in which they were added."""
        return tuple(self._cases.values())

    def allow(self, case_id: str, parent: str, edit: str, make: Edit) -> Case:
        """Make a case that is allowed as its parent is."""
        return self._case(case_id, parent, "allow", HELD, edit, make)

    def deny(self, case_id: str, parent: str, reason: str, edit: str, make: Edit) -> Case:
        """Make a case that the check named ``reason`` is the first to deny."""
        return self._case(case_id, parent, "deny", reason, edit, make)

    def malformed(self, case_id: str, parent: str, edit: str, make: Edit) -> Case:
        """Make a case that must be answered with exit 2 and no decision."""
        return self._case(case_id, parent, MALFORMED, MALFORMED_REASON, edit, make)

    def _case(
        self,
        case_id: str,
        parent: str,
        decision: str,
        reason: str,
        edit: str,
        make: Edit,
    ) -> Case:
        data = make(copy.deepcopy(self._values[parent]))
        case = replace(self._cases[parent], id=case_id, data=data, parent=parent, edit=edit)
        return replace(case, decision=decision, reason=reason)


# --- edits of values: one member or one entry ----------------------------------------------------


def put(pointer: str, value: Json) -> Edit:
    """Replace the value at a JSON Pointer, or add a member there."""

    def make(values: Members) -> bytes:
        _put(values, pointer, value)
        return json_bytes(values)

    return make


def drop(pointer: str) -> Edit:
    """Take out a member, or an entry of a list."""

    def make(values: Members) -> bytes:
        place, last = _place(values, pointer)
        if isinstance(place, list):
            del place[int(last)]
        else:
            del place[last]
        return json_bytes(values)

    return make


def append(pointer: str, entry: Json) -> Edit:
    """Add an entry to the end of the list at a JSON Pointer."""

    def make(values: Members) -> bytes:
        place, last = _place(values, pointer)
        listed = place[int(last)] if isinstance(place, list) else place[last]
        assert isinstance(listed, list)
        listed.append(entry)
        return json_bytes(values)

    return make


# --- edits of bytes ------------------------------------------------------------------------------


def put_raw(pointer: str, raw: str | bytes) -> Edit:
    """Replace the value at a JSON Pointer, or add a member there, by text as it stands."""

    def make(values: Members) -> bytes:
        _put(values, pointer, _PLACEHOLDER)
        return _swapped(json_bytes(values), json.dumps(_PLACEHOLDER).encode(), _encoded(raw))

    return make


def swap(old: str, new: str | bytes) -> Edit:
    """Replace a piece of the text that stands there exactly once."""
    return lambda values: _swapped(json_bytes(values), old.encode(), _encoded(new))


def whole(change: Callable[[bytes], bytes]) -> Edit:
    """Change the text of the document."""
    return lambda values: change(json_bytes(values))


def each(*edits: tuple[str, Json]) -> Edit:
    """Put several values at once; for the second corpus, where an edit is a sentence."""

    def make(values: Members) -> bytes:
        for pointer, value in edits:
            _put(values, pointer, value)
        return json_bytes(values)

    return make


def _encoded(raw: str | bytes) -> bytes:
    return raw.encode() if isinstance(raw, str) else raw


def _swapped(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) == 1, f"{old!r} stands there {data.count(old)} times"
    return data.replace(old, new)


def _put(values: Members, pointer: str, value: Json) -> None:
    place, last = _place(values, pointer)
    if isinstance(place, list):
        place[int(last)] = value
    else:
        place[last] = value


def _place(values: Members, pointer: str) -> tuple[Members | list[Json], str]:
    """Return what holds the value at the pointer, and the pointer's last token."""
    *path, last = pointer.split("/")[1:]
    place: Json = values
    for token in path:
        place = place[int(token)] if isinstance(place, list) else _member(place, token)
    assert isinstance(place, dict | list)
    return place, last


def _member(place: Json, token: str) -> Json:
    assert isinstance(place, dict)
    return place[token]
