"""exactly-once: ``check_then_decide`` with a prober, and a lease with its heartbeat.

An error of the effect leaves the key in flight; only when the lease has run out is the prober asked
and the key taken over. A refusal is a result, which is stored and replayed.
"""

from __future__ import annotations

from typing import Any

from exactly_once import (
    ProbeResult,
    QuarantinedError,
    Store,
    Verdict,
    check_then_decide,
    once,
)
from owner_client import ABANDONED_S, LeaseLost, NoReply, Task, come_back, outcome_of

VERDICTS = {True: Verdict.COMMITTED, False: Verdict.NOT_COMMITTED, None: Verdict.UNKNOWN}


def main() -> None:
    """Carry the operation out and report it."""
    task = Task()

    def prober(_key: str) -> ProbeResult:
        return ProbeResult(VERDICTS[task.happened()], {"found": True})

    @once(
        Store.sqlite(str(task.folder / "effects.db")),
        key=lambda: task.key,
        policy=check_then_decide(prober),
        lease_ttl=ABANDONED_S,
    )
    def effect() -> dict[str, Any]:
        return task.send()

    def step() -> str | None:
        try:
            return outcome_of(effect())
        except (NoReply, LeaseLost, QuarantinedError):
            return None

    come_back(step)


main()
