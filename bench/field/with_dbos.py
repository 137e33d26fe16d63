"""DBOS: a workflow named by the key, whose one step may be retried.

The system database is a file that every worker shares, and all are the executor "local": one that
starts recovers what another left pending, as its documentation has it for one host.
"""

from __future__ import annotations

from typing import Any

from dbos import DBOS, SetWorkflowID
from dbos._error import DBOSException
from owner_client import LeaseLost, NoReply, Task, outcome_of, report

TASK = Task()


def may_be_retried(error: BaseException) -> bool:
    """Whether the step is worth another attempt."""
    return isinstance(error, NoReply)


@DBOS.step(
    retries_allowed=True,
    max_attempts=3,
    interval_seconds=0.1,
    should_retry=may_be_retried,
)
def send() -> dict[str, Any]:
    """Send the call."""
    return TASK.send()


@DBOS.workflow()
def operation() -> dict[str, Any]:
    """Carry the operation out."""
    return send()


def main() -> None:
    """Carry the operation out and report it."""
    DBOS(
        config={
            "name": "field-adapter",
            "system_database_url": f"sqlite:///{TASK.folder}/dbos.sqlite",
            "executor_id": "local",
            "log_level": "CRITICAL",
        }
    )
    DBOS.launch()
    try:
        with SetWorkflowID(TASK.key):
            outcome = outcome_of(operation())
    except (DBOSException, NoReply, LeaseLost):
        outcome = "unknown"
    DBOS.destroy()
    report(outcome)


main()
