"""Turns a user's functions into an adapter: what they return or raise becomes a reply or an answer.

Anything that is not said in so many words is unknown (coordinator, "Replies").
"""

from __future__ import annotations

import inspect
import logging
from typing import TYPE_CHECKING, Any, cast

from counterfoil.operation.replies import Answer, NoAnswer, Refusal, Reply, ReplyKind
from counterfoil.owners.results import NoEffect, Unknown, as_no_answer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from counterfoil.owners.port import Attempt

OUT_OF_TRANSPORT = "NoEffect was raised out of "
"""How the detail of a reply begins whose refusal proves nothing."""

_log = logging.getLogger("counterfoil.owners")


class CallableAdapter:
    """An adapter over functions that take an ``Attempt``.

    ``execute`` and ``reconcile`` may each be a plain or an async function.
    """

    def __init__(
        self,
        execute: Callable[[Attempt], object],
        reconcile: Callable[[Attempt], object] | None,
        read_token: Callable[[], object] | None = None,
        raise_fence: Callable[[Attempt], object] | None = None,
        *,
        bounds_calls: bool = False,
    ) -> None:
        self._execute = execute
        self._reconcile = reconcile
        self._read_token = read_token
        self._raise_fence = raise_fence
        self.bounds_calls = bounds_calls
        self.calls_async = inspect.iscoroutinefunction(execute)
        self.asks_async = inspect.iscoroutinefunction(reconcile)

    @property
    def can_ask(self) -> bool:
        """Whether there is a look-up."""
        return self._reconcile is not None

    def call(self, attempt: Attempt) -> Reply | Awaitable[Reply]:
        """Send the attempt once; an exception is unknown unless it is a ``NoEffect``."""
        if self.calls_async:
            return self._call_async(attempt)
        try:
            return reply_from(self._execute(attempt))
        except Exception as error:  # noqa: BLE001 - whatever a user's function raises is a reply
            return reply_from_exception(error)

    async def _call_async(self, attempt: Attempt) -> Reply:
        try:
            return reply_from(await cast("Awaitable[object]", self._execute(attempt)))
        except Exception as error:  # noqa: BLE001
            return reply_from_exception(error)

    def ask(self, attempt: Attempt) -> Answer | NoAnswer | Awaitable[Answer | NoAnswer]:
        """Ask what the owner holds; an exception is no answer."""
        assert self._reconcile is not None
        if self.asks_async:
            return self._ask_async(attempt)
        try:
            return answer_from(self._reconcile(attempt))
        except Exception as error:  # noqa: BLE001
            return NoAnswer(f"the look-up raised {type(error).__name__}")

    async def _ask_async(self, attempt: Attempt) -> Answer | NoAnswer:
        assert self._reconcile is not None
        try:
            return answer_from(await cast("Awaitable[object]", self._reconcile(attempt)))
        except Exception as error:  # noqa: BLE001
            return NoAnswer(f"the look-up raised {type(error).__name__}")

    def read_token(self) -> int | str:
        """Return the owner's lease token, or why it cannot be read."""
        if self._read_token is None:
            return "the effect has no read_token"
        try:
            token = self._read_token()
        except Exception as error:  # noqa: BLE001
            return f"read_token raised {type(error).__name__}"
        if isinstance(token, int) and not isinstance(token, bool):
            return token
        return "read_token returned no integer"

    def raise_fence(self, attempt: Attempt) -> bool:
        """Raise the owner's fence; only ``True`` in so many words is success."""
        if self._raise_fence is None:
            return False
        try:
            return self._raise_fence(attempt) is True
        except Exception:  # noqa: BLE001
            return False


def reply_from(returned: object) -> Reply:
    """Return the reply that a returned value means: what is returned was confirmed."""
    if isinstance(returned, Reply):
        return returned
    if isinstance(returned, Unknown):
        return lost(returned.detail)
    if isinstance(returned, Answer | NoAnswer):
        return lost("the effect returned an answer; return its value, or cf.applied(value)")
    if inspect.isawaitable(returned):
        if inspect.iscoroutine(returned):
            returned.close()
        return lost("the effect returned an awaitable; declare it with async def")
    if is_http_response(returned):
        return lost(
            "the effect returned an HTTP response; read its status, then return the value "
            "or raise cf.NoEffect"
        )
    return Reply(ReplyKind.CONFIRMED, value=returned)


def reply_from_exception(error: Exception) -> Reply:
    """Return the reply that an exception means: unknown, unless the owner's refusal is said."""
    if isinstance(error, NoEffect):
        behind = transport_error_behind(error)
        if behind is None:
            return Reply(ReplyKind.NO_EFFECT, Refusal.DEFINITE, error.code, cost=error.cost)
        _log.warning("a NoEffect raised out of %s proves nothing; taken as unknown", behind)
        return lost(f"{OUT_OF_TRANSPORT}{behind}, which proves nothing")
    if isinstance(error, TimeoutError) or "Timeout" in type(error).__name__:
        return Reply(ReplyKind.TIMEOUT, detail=f"the effect raised {type(error).__name__}")
    return lost(f"the effect raised {type(error).__name__}")


def answer_from(returned: object) -> Answer | NoAnswer:
    """Return the answer that a look-up's value means."""
    if isinstance(returned, Answer | NoAnswer):
        return returned
    if isinstance(returned, Unknown):
        return as_no_answer(returned)
    if inspect.iscoroutine(returned):
        returned.close()
    return NoAnswer(
        f"the look-up returned {type(returned).__name__}; return cf.present(...), cf.absent() "
        "or cf.unknown(...)"
    )


def lost(detail: str) -> Reply:
    """A reply that shows nothing."""
    return Reply(ReplyKind.CONNECTION_LOST, detail=detail)


def is_http_response(returned: object) -> bool:
    """Whether a value looks like an HTTP client's response, of whichever library."""
    status: Any = getattr(returned, "status_code", getattr(returned, "status", None))
    return isinstance(status, int) and hasattr(returned, "headers")


def carries_a_status(error: BaseException) -> bool:
    """Whether an exception is an HTTP answer of the owner, of whichever library."""
    response: Any = getattr(error, "response", None)
    status: Any = getattr(response, "status_code", getattr(response, "status", None))
    return isinstance(status, int) or (
        isinstance(getattr(error, "code", None), int) and hasattr(error, "headers")
    )


def transport_error_behind(error: BaseException) -> str | None:
    """Name the time-out or connection error among an exception's causes and contexts."""
    seen: set[int] = set()
    waiting = [error.__cause__, error.__context__]
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        name = type(found).__name__
        if carries_a_status(found):
            continue  # the owner answered: that is what a refusal is read from
        if isinstance(found, OSError) or "Timeout" in name or "Connect" in name:
            return name
        waiting += [found.__cause__, found.__context__]
    return None
