"""What a coordinator needs of an owner's adapter: to call it, to ask it, to fence it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from counterfoil.operation.replies import Answer, NoAnswer, Reply


class Operation(NamedTuple):
    """One intended external change, as an adapter sees it."""

    id: str
    action: str
    tenant: str
    arguments: Mapping[str, Any]
    preconditions: Mapping[str, Any]


class Attempt(NamedTuple):
    """One authorized effort to make an operation's change.

    ``key`` is the idempotency key to send, ``token`` the fencing token, ``deadline_s`` the seconds
    that the call may take (None: not bounded here), ``number`` counts from 1. In a look-up,
    ``token`` is the fence to carry, None where the owner takes none with a question. ``look`` is
    for adapters that can call it right before the first byte: a text says why not to send.
    """

    operation: Operation
    number: int
    key: str
    token: int | None
    deadline_s: float | None
    look: Callable[[], str | None] | None = None

    @property
    def operation_id(self) -> str:
        """The operation's id."""
        return self.operation.id

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The operation's arguments."""
        return self.operation.arguments

    @property
    def preconditions(self) -> Mapping[str, Any]:
        """What the caller said must hold at the owner."""
        return self.operation.preconditions


class Adapter(Protocol):
    """Our side of one owner, for one action.

    ``can_ask``: it has a look-up. ``bounds_calls``: it holds ``deadline_s`` by itself. Nothing here
    raises for what an owner does: what came back is returned, and anything unmapped is unknown.
    """

    @property
    def can_ask(self) -> bool:
        """Whether the owner can be asked what it holds."""
        ...

    @property
    def bounds_calls(self) -> bool:
        """Whether a call ends by itself within its deadline."""
        ...

    @property
    def calls_async(self) -> bool:
        """Whether ``call`` returns an awaitable."""
        ...

    @property
    def asks_async(self) -> bool:
        """Whether ``ask`` returns an awaitable."""
        ...

    def call(self, attempt: Attempt) -> Reply | Awaitable[Reply]:
        """Send the attempt once."""
        ...

    def ask(self, attempt: Attempt) -> Answer | NoAnswer | Awaitable[Answer | NoAnswer]:
        """Ask what the owner holds under the attempt's key."""
        ...

    def read_token(self) -> int | str:
        """Return the token of the lease that the owner grants, or why it cannot be read."""
        ...

    def raise_fence(self, attempt: Attempt) -> bool:
        """Have the owner refuse tokens below the attempt's; False if that is not certain."""
        ...
