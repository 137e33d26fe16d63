"""What an owner promises, said once and stored with each operation.

A promise only ever licenses something. Where nothing is promised nothing is licensed, and of a
stored and a current promise the weaker one decides (coordinator, "Deduplication").
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from counterfoil.errors import InvalidPromise

if TYPE_CHECKING:
    from collections.abc import Mapping

Duration = str | int | float | timedelta
"""A length of time: seconds, a timedelta, or text such as "500ms", "2m", "24h", "7d"."""

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)", re.ASCII)
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class Fences(StrEnum):
    """How the owner learns of fencing tokens, and so what a token can stop."""

    NO = "no"
    ON_SEND = "on_send"  # from sends only: licenses nothing, an old token can land in between
    ON_ASK = "on_ask"  # a question carries the token and raises the bar
    BY_CALL = "by_call"  # a call of its own raises the bar
    BY_LEASE = "by_lease"  # the owner, or what it consults, grants the leases

    @property
    def stop_older_sends(self) -> bool:
        """Whether a token can be put in force before or with a question."""
        return self in (Fences.ON_ASK, Fences.BY_CALL, Fences.BY_LEASE)


@dataclass(frozen=True, slots=True)
class Promises:
    """An owner's promises. Durations are seconds; None means "not promised" save where noted."""

    deduplicates: bool = False
    key_retention_s: float | None = None
    """Read only where ``deduplicates``: how long a key is remembered; None: without limit."""
    settles_within_s: float | None = None
    """After this long past the end of a call, that call can commit no more."""
    final_by_answer: bool = False
    """The owner's own answer says when no earlier request can still commit."""
    fences: Fences = Fences.NO
    replays_refusals: bool = False
    """A refused key is spent: the refusal comes back whatever is sent under it."""
    sender_pause_max_s: float | None = None
    """The longest a sender of ours may freeze between its dispatch and its last byte."""
    knows_keys: bool = True
    """The owner can be asked by key; else an effect older than the first dispatch is no answer."""

    def to_json(self) -> dict[str, object]:
        """Return the members that are stored with an operation, those at their default left out."""
        plain = Promises()
        return {
            name: str(value) if isinstance(value, Fences) else value
            for name in self.__slots__
            if (value := getattr(self, name)) != getattr(plain, name)
        }

    @classmethod
    def from_json(cls, members: Mapping[str, object]) -> Promises:
        """Read back what ``to_json`` wrote; members of a later version are ignored."""
        known = {name: members[name] for name in cls.__slots__ if name in members}
        if "fences" in known:
            known["fences"] = Fences(str(known["fences"]))
        return cls(**known)  # type: ignore[arg-type]


def weaker(stored: Promises, current: Promises) -> Promises:
    """Return what both promise: the weaker of each pair decides."""
    if stored == current:
        return stored
    return Promises(
        deduplicates=stored.deduplicates and current.deduplicates,
        key_retention_s=_shorter(stored.key_retention_s, current.key_retention_s),
        settles_within_s=_longer_if_both(stored.settles_within_s, current.settles_within_s),
        final_by_answer=stored.final_by_answer and current.final_by_answer,
        fences=stored.fences if stored.fences is current.fences else Fences.NO,
        replays_refusals=stored.replays_refusals or current.replays_refusals,
        sender_pause_max_s=_longer_if_both(stored.sender_pause_max_s, current.sender_pause_max_s),
        knows_keys=stored.knows_keys and current.knows_keys,
    )


def _shorter(a: float | None, b: float | None) -> float | None:
    """Return the shorter of two retentions, where None is without limit."""
    return b if a is None else a if b is None else min(a, b)


def _longer_if_both(a: float | None, b: float | None) -> float | None:
    """Return the longer of two bounds; a bound that only one side promises is no promise."""
    return None if a is None or b is None else max(a, b)


def seconds(duration: object, *, of: str) -> float:
    """Return a duration in seconds.

    ``of`` names what is measured, for the message. Raises ``InvalidPromise`` for anything that is
    not a positive, finite length of time.
    """
    if isinstance(duration, timedelta):
        found = duration.total_seconds()
    elif isinstance(duration, bool):
        found = math.nan
    elif isinstance(duration, int | float):
        found = float(duration)
    else:
        match = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
        found = float(match[1]) * _UNIT_S[match[2]] if match else math.nan
    if not math.isfinite(found) or found <= 0:
        raise InvalidPromise(
            f'{of}: {duration!r} is no length of time; write seconds, or text such as "24h"'
        )
    return found
