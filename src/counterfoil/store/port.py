"""What a coordinator needs of a store. One port; memory, SQLite and PostgreSQL behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from counterfoil.store.mission_log import MissionStore

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from counterfoil.operation.commands import Appended, Claimed, Moved
    from counterfoil.operation.events import Event, NewEvent
    from counterfoil.operation.history import History
    from counterfoil.operation.identity import StreamId
    from counterfoil.store.chain import LogEntry
    from counterfoil.store.mission_log import Beside

EVENT_VERSION = 1
"""The version written with every event's payload."""


class WorkerRecord(NamedTuple):
    """One worker: a process that may send.

    ``host`` and ``boot`` say where its lock means something.
    ``lock`` is the name of its lock file, None where a lock proves nothing.
    """

    worker: str
    host: str
    boot: str
    lock: str | None
    pid: int


class Row(NamedTuple):
    """One operation as it stands, for lists: what an inbox reads without folding a stream."""

    stream: StreamId
    owner: str
    action: str
    status: str
    reason: str
    held: str | None
    opened_at_us: int
    changed_at_us: int
    version: int


class Store(MissionStore, Protocol):
    """A durable log. Every method raises ``errors.StoreError`` if the engine fails.

    An append is durable when it returns. After a failed write or sync the store refuses all that
    follows (`StoreFailed`): it must be opened anew.
    """

    def load(self, stream: StreamId) -> History | None:
        """Return an operation's history, or None."""
        ...

    def events(self, stream: StreamId) -> Sequence[Event]:
        """Return an operation's stream, in order; empty if there is none."""
        ...

    def append(
        self,
        stream: StreamId,
        before: History | None,
        events: Sequence[NewEvent],
        *,
        claim: str | None,
        by: WorkerRecord,
        beside: Beside | None = None,
    ) -> Appended | Moved | Claimed:
        """Append all of ``events`` in one durable transaction, if the stream is still ``before``.

        Appending the same event ids twice is one append. ``claim`` is the owner's effect id that
        becomes this operation's own. ``beside`` are lines of a mission that are stored in the same
        transaction, if that mission too is where they expect it; else the answer is ``Moved``.
        """
        ...

    def streams(self, namespace: str) -> Iterator[StreamId]:
        """Yield every operation of a namespace in the order in which they were opened."""
        ...

    def unsettled(self, namespace: str, limit: int) -> Sequence[Row]:
        """Return operations that are not settled, those changed longest ago first."""
        ...

    def rows(self) -> Iterator[Row]:
        """Yield the row of every operation of every namespace."""
        ...

    def worker(self, worker: str) -> WorkerRecord | None:
        """Return what is known of a worker."""
        ...

    def log(self, after_seq: int = 0) -> Iterator[LogEntry]:
        """Yield the whole log in the store's order."""
        ...

    @property
    def suspect(self) -> str | None:
        """Why the store may have forgotten operations; None where it may not."""
        ...

    def accept_gap(self, by: str, evidence: str) -> None:
        """End the suspicion, on a person's word."""
        ...

    def close(self) -> None:
        """Let go of the engine; appended events stay durable."""
        ...
