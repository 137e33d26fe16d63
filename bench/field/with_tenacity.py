"""tenacity: three attempts with growing pauses, again only where the reply was lost.

It keeps nothing between processes and asks nobody: a second worker starts from the beginning.
"""

from __future__ import annotations

from typing import Any

from owner_client import LeaseLost, NoReply, Task, outcome_of, report
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_exponential


def main() -> None:
    """Carry the operation out and report it."""
    task = Task()

    @retry(
        retry=retry_if_exception_type(NoReply),
        stop=stop_after_attempt(3),
        wait=wait_exponential(multiplier=0.1, max=1),
        reraise=True,
    )
    def send() -> dict[str, Any]:
        return task.send()

    try:
        report(outcome_of(send()))
    except (NoReply, LeaseLost):
        report("unknown")


main()
