"""effect-ledger: one claim, and a recovery policy that the owner's answer decides.

It has no lease and takes nobody for dead: ``recover`` asks its caller to confirm that earlier
workers have stopped. Here the system confirms it, by a file lock that each worker wants and that a
process loses with its life. A frozen worker keeps it, and nothing is recovered.
"""

from __future__ import annotations

import fcntl
from typing import TYPE_CHECKING, Any

from effect_ledger import EffectExecutor, OperationConflict, RecoveryDecision
from owner_client import Task, come_back, outcome_of

if TYPE_CHECKING:
    from effect_ledger import Operation


def main() -> None:
    """Carry the operation out and report it."""
    task = Task()
    lock = (task.folder / "workers.lock").open("w")

    def others_have_stopped() -> bool:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def policy(operation: Operation) -> RecoveryDecision | None:
        decision_id = f"{task.key}:{operation.version}"
        match task.happened():
            case True:
                found = {"found": True}
                return RecoveryDecision("complete", decision_id, "the owner holds it", found)
            case False:
                return RecoveryDecision("retry", decision_id, "the owner says it is absent")
            case _:
                return None

    executor = EffectExecutor(task.folder / "effects.sqlite", scope="field", recovery=policy)

    def handler(_operation: Operation) -> dict[str, Any]:
        return task.send()

    def step() -> str | None:
        # Before the claim, so that a worker which has claimed is known to hold the lock.
        alone = others_have_stopped()
        try:
            record = executor.execute(task.key, task.action, task.args, handler)
            if record.state in ("in_flight", "indeterminate") and alone:
                record = executor.recover(task.key, workers_stopped=True)
        except OperationConflict:
            return None
        return outcome_of(record.result) if record.state == "completed" else None

    come_back(step)


main()
