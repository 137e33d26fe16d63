"""Where two requests under one operation id differ: then the second is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counterfoil.operation.events import Opened

_ABSENT = object()


def differing(stored: Opened, wanted: Opened) -> tuple[str, ...]:
    """Name the members in which two requests for one operation differ, never their values."""
    named = [n for n in ("action", "owner") if getattr(stored, n) != getattr(wanted, n)]
    if wanted.own_key and stored.key != wanted.key:
        named.append("key")
    if stored.args_digest != wanted.args_digest:
        named += _members("arguments", stored.arguments, wanted.arguments)
        named += _members("preconditions", stored.preconditions, wanted.preconditions)
    if authority(stored) != authority(wanted):
        named.append("under")
    return tuple(named)


def authority(opened: Opened) -> dict[str, str] | None:
    """What an operation was admitted under, the epoch left out: a run may change hands."""
    if opened.under is None:
        return None
    return {name: value for name, value in opened.under.items() if name != "epoch"}


def _members(what: str, stored: str | None, wanted: str | None) -> list[str]:
    """Name the members of two JSON objects that differ; the whole where one was not kept."""
    if stored == wanted:
        return []
    if stored is None or wanted is None:
        return [what]
    a, b = json.loads(stored), json.loads(wanted)
    return [
        f"{what}.{name}"
        for name in sorted({*a, *b})
        if a.get(name, _ABSENT) != b.get(name, _ABSENT)
    ]
