"""Stands before a user's own call and look-up, lets one fault meet the first call, and notes what
was said beside what was true.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from counterfoil.errors import BadInput
from counterfoil.operation.replies import NoAnswer, Reply, ReplyKind
from counterfoil.testing.sandbox import Fault

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from counterfoil.operation.replies import Answer
    from counterfoil.owners.port import Adapter, Attempt
    from counterfoil.testing.sandbox import Request, Sandbox

T = TypeVar("T")


class Called(NamedTuple):
    """One call: what came back, and what the transport heard (None: it cannot tell)."""

    attempt: Attempt
    reply: Reply
    began_s: float
    ended_s: float
    requests: tuple[Request, ...] | None

    @property
    def writes(self) -> int:
        """How many requests of this call changed something; 0 where it cannot be told."""
        return sum(request.writes for request in self.requests or ())


class Asked(NamedTuple):
    """One question: the answer, and how many effects there were before and after it.

    ``calls`` is how many calls went before; ``stale``: the transport served an old view.
    """

    attempt: Attempt
    answer: Answer | NoAnswer
    before: int
    after: int
    calls: int
    stale: bool
    requests: tuple[Request, ...] | None


@dataclass
class Recorder:
    """An adapter over another. Async functions run to their end here, on a loop of their own."""

    adapter: Adapter
    sandbox: Sandbox
    fault: Fault | None = None
    baseline: int = 0
    calls: list[Called] = field(default_factory=list)
    asks: list[Asked] = field(default_factory=list)
    stale: bool = False
    injected: bool = True
    _runner: asyncio.Runner | None = None

    bounds_calls = True
    calls_async = False
    asks_async = False

    @property
    def can_ask(self) -> bool:
        """Whether the effect has a look-up."""
        return self.adapter.can_ask

    def begin(self, fault: Fault | None) -> None:
        """Forget what was seen; the next operation's first call meets this fault."""
        self.fault, self.injected, self.stale = fault, True, False
        self.calls, self.asks = [], []

    def close(self) -> None:
        """End the loop, if async functions ran."""
        if self._runner is not None:
            self._runner.close()

    # --- as an adapter ---------------------------------------------------------------------------

    def call(self, attempt: Attempt) -> Reply:
        """Call; the fault meets the operation's first call and no later one."""
        if self.calls:
            return self._call(attempt)
        self.baseline = self.sandbox.effects(attempt)
        if self.fault is Fault.STALE_READ and self.can_ask:
            self.adapter_ask(attempt)  # so that there is an old view to serve
        if self.fault is None:
            return self._call(attempt)
        self.injected = self.sandbox.set_fault(self.fault)
        self.stale = self.fault is Fault.STALE_READ and self.injected
        try:
            return self._call(attempt)
        finally:
            self.sandbox.set_fault(None)

    def _call(self, attempt: Attempt) -> Reply:
        heard = self._heard()
        began_s = time.monotonic()
        reply = self.adapter_call(attempt)
        ended_s = time.monotonic()
        requests = self._since(heard)
        self.calls.append(Called(attempt, reply, began_s, ended_s, requests))
        return reply

    def ask(self, attempt: Attempt) -> Answer | NoAnswer:
        """Ask, and look at the truth before and after."""
        stale, heard = self.stale, self._heard()
        before = self.count(attempt)
        answer = self.adapter_ask(attempt)
        after = self.count(attempt)
        requests = self._since(heard)
        asked = Asked(attempt, answer, before, after, len(self.calls), stale, requests)
        self.asks.append(asked)
        return answer

    def read_token(self) -> int | str:
        """Return the token of the lease that the owner grants, or why it cannot be read."""
        return self.adapter.read_token()

    def raise_fence(self, attempt: Attempt) -> bool:
        """Have the owner refuse tokens below the attempt's."""
        return self.adapter.raise_fence(attempt)

    # --- parts -----------------------------------------------------------------------------------

    def count(self, attempt: Attempt) -> int:
        """Return how many effects came about since the operation's first call began."""
        return self.sandbox.effects(attempt) - self.baseline

    def adapter_call(self, attempt: Attempt) -> Reply:
        """Call without a note of it."""
        if not self.adapter.calls_async:
            return cast("Reply", self.adapter.call(attempt))

        async def bounded() -> Reply:
            async with asyncio.timeout(attempt.deadline_s):
                return await cast("Awaitable[Reply]", self.adapter.call(attempt))

        try:
            return self._loop().run(bounded())
        except TimeoutError:
            return Reply(ReplyKind.TIMEOUT, detail="the call was cancelled at its deadline")

    def adapter_ask(self, attempt: Attempt) -> Answer | NoAnswer:
        """Ask without a note of it."""
        if not self.adapter.asks_async:
            return cast("Answer | NoAnswer", self.adapter.ask(attempt))

        async def asked() -> Answer | NoAnswer:
            return await cast("Awaitable[Answer | NoAnswer]", self.adapter.ask(attempt))

        return self._loop().run(asked())

    def _loop(self) -> asyncio.Runner:
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner

    def _heard(self) -> int:
        return len(self.sandbox.requests() or ())

    def _since(self, heard: int) -> tuple[Request, ...] | None:
        requests = self.sandbox.requests()
        return None if requests is None else tuple(requests[heard:])


def check_no_loop_runs(adapter: Adapter) -> None:
    """Raise ``BadInput`` where an async effect would need a second loop in this thread."""
    if not (adapter.calls_async or adapter.asks_async):
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise BadInput(
        "check_effect runs async effects on a loop of its own; call it from plain code, or with "
        "await asyncio.to_thread(check_effect, effect, sandbox)"
    )
