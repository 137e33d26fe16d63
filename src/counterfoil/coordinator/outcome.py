"""What ``perform`` returns: committed, not run, or unknown and why."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Generic, NoReturn, Self, TypeVar, cast

from counterfoil.errors import NotRun, OutcomeUnknown, ValueMissing
from counterfoil.operation.replies import Reason, Status

if TYPE_CHECKING:
    from counterfoil.operation.events import Verified
    from counterfoil.operation.history import History
    from counterfoil.operation.task import Ended

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Outcome(Generic[R]):
    """How an operation stands.

    ``attempts`` counts dispatches, ``why`` holds a stable ``code`` and a sentence, ``replayed``
    says that nothing was sent or asked for this call, ``first_at`` is when the operation was
    recorded. ``cost`` is a decimal string, where the owner or the effect said one. ``verified`` is
    what the target showed after a compensation, where it was looked at.
    """

    status: Status
    operation_id: str
    attempts: int
    why: Reason
    replayed: bool
    first_at_us: int
    cost: str | None = None
    value_missing: str | None = None
    verified: Verified | None = None
    _kept: str | None = field(default=None, repr=False)
    _live: object = field(default=None, repr=False)

    @property
    def first_at(self) -> datetime:
        """When the operation was first recorded, in UTC."""
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=self.first_at_us)

    @property
    def value(self) -> R:
        """What the effect returned, as JSON keeps it.

        Raises ``OutcomeUnknown``, ``NotRun`` or ``ValueMissing``.
        """
        self.raise_for_status()
        if self._kept is not None:
            return cast("R", json.loads(self._kept))
        if self.value_missing is not None and self._live is None:
            raise ValueMissing(
                "value_missing",
                f"operation {self.operation_id!r} committed, its value was not kept "
                f"({self.value_missing})",
            )
        return cast("R", self._live)

    def raise_for_status(self) -> Self:
        """Return self if committed. Raises ``OutcomeUnknown`` or ``NotRun``."""
        if self.status is Status.UNKNOWN:
            raise OutcomeUnknown(
                self.why.code,
                f"operation {self.operation_id!r} is unknown ({self.why}); do not send it again by "
                "hand, perform it under the same id later",
            )
        if self.status is Status.NOT_RUN:
            raise NotRun(self.why.code, f"operation {self.operation_id!r} did not run ({self.why})")
        return self

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "an Outcome is committed, not_run or unknown, not true or false; look at .status"
        )


def outcome_of(operation_id: str, ended: Ended) -> Outcome[object]:
    """Return the outcome of how far an operation came."""
    history = ended.history
    kept, missing, cost = kept_value(history)
    return Outcome(
        status=ended.status,
        operation_id=operation_id,
        attempts=len(history.attempts),
        why=ended.reason,
        replayed=ended.replayed,
        first_at_us=history.opened_at_us,
        cost=cost,
        value_missing=missing,
        verified=history.verified,
        _kept=kept,
        _live=ended.live_value if missing is not None else None,
    )


def kept_value(history: History) -> tuple[str | None, str | None, str | None]:
    """Return (JSON of the value, why it is missing, cost) of what settled the operation."""
    confirmed = history.confirmed
    seen = confirmed.reply if confirmed is not None else history.found
    cost = history.settled.cost if history.settled is not None else None
    if seen is None:
        return None, None, cost
    return seen.value, seen.value_missing, cost
