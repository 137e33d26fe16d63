"""What is carried and how far it came: the protocol's argument, memory and result. Values only."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from counterfoil.limits import LEASE_S, PATIENCE_S
from counterfoil.operation.commands import Command, Sent

if TYPE_CHECKING:
    from counterfoil.operation.events import Opened
    from counterfoil.operation.history import History
    from counterfoil.operation.identity import StreamId
    from counterfoil.operation.next_step import Policy
    from counterfoil.operation.promises import Promises
    from counterfoil.operation.replies import Reason, Status


class Ended(NamedTuple):
    """How far the operation came, and what is known. ``live_value`` is what the call returned."""

    status: Status
    reason: Reason
    history: History
    replayed: bool
    live_value: object = None


@dataclass(slots=True)
class Memory:
    """What one process remembers of an operation between two carryings, on its monotonic clock.

    ``ends`` maps an attempt to when this process first read its end: time to settle counts from
    there. ``questions`` and ``last_question_at_s`` are where the asking schedule stands.
    """

    ends: dict[int, float] = field(default_factory=dict)
    questions: int = 0
    last_question_at_s: float | None = None


class Task(NamedTuple):
    """One operation to carry.

    ``opened`` is None where it must exist already; ``suspect`` says why the store may have
    forgotten operations, so that an id that is new to it counts as dispatched once.
    """

    stream: StreamId
    opened: Opened | None
    worker: str
    promises: Promises
    policy: Policy
    new_id: Callable[[], bytes]
    lease_s: float = LEASE_S
    patience_s: float = PATIENCE_S
    wait_if_in_flight: bool = True
    memory: Memory | None = None
    suspect: str | None = None


Carrying = Generator[Command, Sent, Ended]
