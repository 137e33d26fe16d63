"""What `check_effect` needs of the place where a user's effect is tried."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from counterfoil.owners.port import Attempt


class Fault(StrEnum):
    """What a transport can do to a call. A call writes; a look-up reads."""

    NO_REPLY = "no_reply"  # the owner gets the request; the caller hears nothing and times out
    CUT_REPLY = "cut_reply"  # the owner gets the request; the caller's connection breaks
    LATE_COMMIT = "late_commit"  # the connection breaks; the owner gets the request at `release`
    STALE_READ = "stale_read"  # as CUT_REPLY, and until `release` reads show what was before it
    SENT_TWICE = "sent_twice"  # the owner gets the request twice; the second reply comes back


class Request(NamedTuple):
    """One request that passed through a sandbox.

    ``writes``: it belongs to a call, not to a look-up. ``line`` names it for people
    ("POST /refunds"); ``text`` is all of it, in which a key can be searched.
    """

    writes: bool
    line: str
    text: str

    def mentions(self, key: str) -> bool:
        """Whether the request carries this key anywhere."""
        return key in self.text


class Sandbox(Protocol):
    """A place with an owner of its own, where nothing real is at stake.

    One operation at a time is tried in it. `HttpSandbox` is one for effects over HTTP,
    `ScriptedOwner.sandbox()` one without a network.
    """

    def arguments(self) -> Mapping[str, Any]:
        """Return named arguments for one new operation, which the owner accepts."""
        ...

    def effects(self, attempt: Attempt) -> int:
        """Return how many effects the owner holds: the truth, not by way of the look-up.

        For this attempt's operation, or in all: only what changes between two looks is used.
        """
        ...

    def set_fault(self, fault: Fault | None) -> bool:
        """From now on let calls meet this fault; None: let them pass. False: it cannot be done.

        What is held stays held, and reads stay stale, until ``release``.
        """
        ...

    def release(self) -> None:
        """Deliver what is held, return when the owner has answered it, and serve reads afresh."""
        ...

    def requests(self) -> Sequence[Request] | None:
        """Return every request so far, in order; None where the transport cannot tell."""
        ...
