"""A mission's stream, as a store sees it: lines in the same log, and what is derived from them.

A store knows nothing of missions but their names, their lines and two derived things that it keeps
beside the log, as bytes: the last snapshot, and the operations that have left the live state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from counterfoil.operation.identity import StreamId

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from counterfoil.store.port import WorkerRecord


def mission_stream(namespace: str, mission_id: str) -> StreamId:
    """Return the stream of a mission. An operation's tenant is never empty, so none is like it."""
    return StreamId(namespace, "", mission_id)


class Line(NamedTuple):
    """One line that is not stored yet; the store gives place and stamp. ``payload`` is JSON."""

    event_id: bytes
    kind: str
    payload: str


class StoredLine(NamedTuple):
    """One line: its place in the mission's stream (from 1), its stamp, and what it says."""

    n: int
    at_us: int
    kind: str
    payload: str


class Left(NamedTuple):
    """An operation that left the live state, under the ids that may be asked for.

    ``n`` is the mission's version when it left; ``digest`` the SHA-256 of ``body``.
    """

    operation_id: str
    approval_ids: tuple[str, ...]
    n: int
    body: bytes
    digest: bytes


class Snapshot(NamedTuple):
    """The state after ``n`` lines as bytes, with the SHA-256 that line ``n`` says too."""

    n: int
    body: bytes
    digest: bytes


class Beside(Protocol):
    """Lines for a mission that go with an append, or alone; made inside the transaction."""

    @property
    def stream(self) -> StreamId:
        """Return whose lines these are."""

    def lines(self, version: int, at_us: int) -> Sequence[Line] | None:
        """Return the lines to follow line ``version``; the first is stamped ``at_us``, each later
        one 1 us after it. None: they were made for another version, nothing is to be stored.

        Whatever it raises undoes the whole transaction.
        """

    @property
    def snapshot(self) -> Snapshot | None:
        """Return what to keep with the lines just made, if anything."""

    @property
    def left(self) -> Sequence[Left]:
        """Return the operations that left the live state with that snapshot."""

    def stored(self) -> None:
        """Take note that the lines are durable."""


class MissionStore(Protocol):
    """The part of a store that keeps missions."""

    def command(self, beside: Beside, *, by: WorkerRecord) -> bool:
        """Append a mission's lines alone, durably. False: it had moved, nothing was stored."""
        ...

    def missions(self) -> Iterator[StreamId]:
        """Yield the streams of all missions."""
        ...

    def version(self, stream: StreamId) -> int:
        """Return how many lines a mission has; 0 if there is none."""
        ...

    def mission_lines(self, stream: StreamId, after_n: int) -> Iterator[StoredLine]:
        """Yield a mission's lines after a place, in order."""
        ...

    def snapshot(self, stream: StreamId) -> Snapshot | None:
        """Return the last snapshot that was kept. It is derived: the log has the last word."""
        ...

    def left(self, stream: StreamId, operation_id: str) -> Left | None:
        """Return an operation that has left the live state."""
        ...

    def left_with_approval(self, stream: StreamId, approval_id: str) -> Left | None:
        """Return the operation that left the live state with this approval."""
        ...
