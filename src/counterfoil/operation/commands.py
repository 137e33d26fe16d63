"""What the protocol asks a driver for, and what a driver sends back. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from counterfoil.operation.history import Attempt, History
from counterfoil.operation.replies import Answer, NoAnswer, Reply

if TYPE_CHECKING:
    from counterfoil.operation.events import NewEvent


@dataclass(frozen=True, slots=True)
class Load:
    """Read the operation's history; None if there is none."""


class Append(NamedTuple):
    """Append durably if the stream still has ``expected_n`` events.

    ``claim`` is an effect id of the owner that becomes this operation's own.
    """

    expected_n: int
    events: tuple[NewEvent, ...]
    claim: str | None = None


class Appended(NamedTuple):
    """Stored durably; the history as it stands now."""

    history: History


@dataclass(frozen=True, slots=True)
class Moved:
    """Somebody appended first: nothing was stored, read again."""


class Claimed(NamedTuple):
    """The effect id belongs to another operation already: nothing was stored."""

    operation_id: str


class Denied(NamedTuple):
    """The mission does not allow this dispatch: nothing was stored. ``code`` is the fold's."""

    code: str
    detail: str


class Call(NamedTuple):
    """Send the attempt, once."""

    attempt: Attempt


class Question(NamedTuple):
    """Ask the owner what it holds under a key; ``fence`` goes with the question if it takes one."""

    key: str
    attempt: Attempt | None
    fence: int | None


@dataclass(frozen=True, slots=True)
class ReadToken:
    """Read the token of the lease that the owner grants; a text says why it cannot be read."""


class RaiseFence(NamedTuple):
    """Have the owner refuse tokens below this one, in a call of its own; False: not done."""

    token: int
    attempt: Attempt


class Prove(NamedTuple):
    """Find which of these workers are proven dead, and why."""

    workers: tuple[str, ...]


class Pause(NamedTuple):
    """Do nothing until this monotonic time."""

    until_s: float


Command = Load | Append | Call | Question | ReadToken | RaiseFence | Prove | Pause
Happened = (
    History
    | Appended
    | Moved
    | Claimed
    | Denied
    | Reply
    | Answer
    | NoAnswer
    | int
    | str
    | bool
    | Mapping[str, str]
    | None
)


class Sent(NamedTuple):
    """What happened, and when: ``now_us`` by the wall clock, ``monotonic_s`` by the other.

    ``stop``: record what was seen and go no further (the caller was interrupted).
    """

    happened: Happened
    now_us: int
    monotonic_s: float
    stop: bool = False
