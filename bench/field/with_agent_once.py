"""agent-once: its own HTTP verifier, asked for unknown records and for pending ones that are stale.

A lost reply and a lost lease leave the record unknown; a refusal is a result, stored and replayed.
"""

from __future__ import annotations

from typing import Any

from once import NOT_HAPPENED, EffectError, Once
from once.verifiers import http_verifier
from owner_client import (
    ABANDONED_S,
    CALL_S,
    LeaseLost,
    NoReply,
    Task,
    come_back,
    outcome_of,
)


class CannotSay(Exception):
    """The owner's answer settles nothing; raised, it leaves the record as it was."""


def main() -> None:
    """Carry the operation out and report it."""
    task = Task()
    once = Once(task.folder / "once.db", unknown_on=(NoReply, LeaseLost), stale_after=ABANDONED_S)

    def read(body: Any) -> Any:
        match task.read(body):
            case True:
                return {"found": True}
            case False:
                return NOT_HAPPENED
            case _:
                raise CannotSay("the answer settles nothing")

    verify = http_verifier(f"{task.url}/effects/{{key}}", result=read, timeout=CALL_S)

    @once.tool(name=task.action, verify=verify)
    def effect(args: dict[str, Any], idempotency_key: str | None = None) -> dict[str, Any]:
        assert (args, idempotency_key) == (task.args, task.key)
        return task.send()

    def step() -> str | None:
        try:
            return outcome_of(effect(task.args, idempotency_key=task.key))
        except (NoReply, LeaseLost, EffectError, CannotSay, OSError, RuntimeError):
            # RuntimeError is how its verifier reports a status that it was not told about.
            return None

    come_back(step)


main()
