"""The store of a search: streams of events that only grow, each kept once and named by a number.

Places, stamps and tokens are given as a store gives them: a stamp is later than every one before
it, a token is greater than every one before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from counterfoil.operation.events import Event, NewEvent, Reopened, Settled
from counterfoil.operation.history import History, advance, begin

if TYPE_CHECKING:
    from collections.abc import Callable

    from counterfoil.operation.replies import Status

EMPTY = 0
"""The number of the stream without events."""


class Kept(dict[str, object]):
    """A mapping that nobody changes, and so can be told apart by its content."""

    def __hash__(self) -> int:  # type: ignore[override]
        return len(self)  # one search meets one mapping: equal length is told apart well enough


class Stream(NamedTuple):
    """A stream, what the protocol reads of it, and the outcome that stands settled in it.

    ``wrong`` says what is wrong with it, if anything.
    """

    events: tuple[Event, ...]
    history: History | None
    outcome: Status | None = None
    wrong: str | None = None


def outcome_of(events: tuple[Event, ...]) -> Status | None:
    """Return the outcome that stands settled in a stream, if one does."""
    for event in reversed(events):
        if isinstance(event.body, Settled):
            return event.body.outcome
        if isinstance(event.body, Reopened):
            return None
    return None


class Streams:
    """Every stream that was reached. ``check`` looks at each once, when it is new."""

    def __init__(self, check: Callable[[tuple[Event, ...], History], str | None]) -> None:
        self._check = check
        self._streams = [Stream((), None)]
        self._numbers: dict[tuple[Event, ...], int] = {(): EMPTY}

    def __len__(self) -> int:
        return len(self._streams)

    def __getitem__(self, number: int) -> Stream:
        return self._streams[number]

    def history(self, number: int) -> History:
        """Return the history of a stream that is not empty."""
        history = self._streams[number].history
        assert history is not None
        return history

    def append(self, number: int, new: tuple[NewEvent, ...], now_us: int) -> int:
        """Return the stream with these events at its end, stamped at ``now_us`` or later."""
        before = self._streams[number]
        events, history = list(before.events), before.history
        at_us = max(now_us - 1, history.last_at_us if history is not None else 0)
        for item in new:
            at_us += 1
            n = len(events) + 1
            token = n if item.takes_token else item.token
            event = Event(n, at_us, item.worker, token, item.body)
            events.append(event)
            history = begin(event) if history is None else advance(history, event)
        assert history is not None
        found = tuple(events)
        known = self._numbers.get(found)
        if known is None:
            wrong = self._check(found, history)
            known = self._numbers[found] = len(self._streams)
            self._streams.append(Stream(found, history, outcome_of(found), wrong))
        return known
