"""Walks a whole log and names what is wrong with it: chain, streams, rows, missions, witness.

The chain shows what was changed in the log that is there; only something outside shows what the log
has lost at its end (design page, store).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from counterfoil.coordinator.mission_head import (
    COMMANDED,
    Distrusted,
    believed,
    followed,
    rebuilt,
)
from counterfoil.errors import StoreCorrupt
from counterfoil.mission import retired_bytes
from counterfoil.operation.history import fold
from counterfoil.store.chain import GENESIS, LogEntry, link_of, payload_digest
from counterfoil.store.stamping import row_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from counterfoil.coordinator.mission_head import At
    from counterfoil.operation.identity import StreamId
    from counterfoil.store.mission_log import Snapshot
    from counterfoil.store.port import Store


class Fault(NamedTuple):
    """One thing that is wrong. ``seq`` is the place in the log, None where it has none."""

    code: str
    text: str
    seq: int | None = None
    operation_id: str | None = None


def audit(store: Store) -> Iterator[Fault]:
    """Yield every fault of a log, in its order; nothing where all is well."""
    if store.suspect is not None:
        yield Fault("forgotten", f"the store may have forgotten operations: {store.suspect}")
    named = set()
    for fault in audit_chain(store.log()):
        named.add(fault.operation_id)
        yield fault
    yield from audit_rows(store, named)
    for stream in store.missions():
        yield from audit_mission(store, stream)


def audit_chain(log: Iterator[LogEntry]) -> Iterator[Fault]:
    """Yield the faults of the chain itself. Pure: entries in, faults out.

    After a fault the walk goes on from what the log says there, so that one fault is named once.
    """
    before, seq, last_at_us = GENESIS, 0, 0
    places: dict[tuple[str, str, str], int] = {}
    for entry in log:
        stream = (entry.namespace, entry.tenant, entry.operation_id)
        fault = fault_of(entry, before, seq, places.get(stream, 0))
        if fault is not None:
            yield Fault(*fault, entry.seq, entry.operation_id)
        elif entry.at_us <= last_at_us:
            text = "its stamp is not after the one before"
            yield Fault("time_went_back", text, entry.seq, entry.operation_id)
        before, seq, last_at_us = entry.chained, entry.seq, entry.at_us
        places[stream] = entry.n


def fault_of(entry: LogEntry, before: bytes, seq: int, place: int) -> tuple[str, str] | None:
    """Return (code, text) of what is wrong with one entry after ``seq``, or None."""
    if entry.seq != seq + 1:
        return "entry_dropped", f"events {seq + 1} to {entry.seq - 1} are gone"
    if entry.payload is not None and payload_digest(entry.payload) != entry.digest:
        return "payload_changed", "its payload is not the one that was digested"
    if link_of(before, entry) != entry.chained:
        if link_of(before, entry._replace(n=place + 1)) == entry.chained:
            return "entry_reordered", "its place in the operation was changed"
        return "entry_changed", "it, or the event before it, is not the one that was chained"
    if entry.n != place + 1:
        return "entry_grafted", f"it says event {entry.n} of an operation that has {place}"
    return None


def audit_rows(store: Store, named: Container[str | None] = ()) -> Iterator[Fault]:
    """Yield the rows that say something else than the events they are derived from.

    ``named`` are operations whose events are known to be wrong already.
    """
    for row in store.rows():
        if row.stream.operation_id in named:
            continue
        try:
            derived = row_of(row.stream, fold(store.events(row.stream)))
        except (StoreCorrupt, ValueError, KeyError, IndexError, TypeError) as error:
            yield Fault("stream_unreadable", f"it cannot be folded: {error}", None,
                        row.stream.operation_id)  # fmt: skip
            continue
        if derived != row:
            names = [n for n in row._fields if getattr(row, n) != getattr(derived, n)]
            text = f"its row disagrees with its events in {', '.join(names)}"
            yield Fault("row_disagrees", text, None, row.stream.operation_id)


def audit_mission(store: Store, stream: StreamId) -> Iterator[Fault]:
    """Yield what is wrong with a mission: its lines, their times, and what is derived from them."""
    mission_id = stream.operation_id
    try:
        for line in store.mission_lines(stream, 0):
            if line.kind == COMMANDED and json.loads(line.payload)["now"] != str(
                line.at_us // 1000
            ):
                text = f"line {line.n} says another time than its stamp"
                yield Fault("mission_time", text, None, mission_id)
        whole = rebuilt(store, stream)
    except (StoreCorrupt, ValueError, KeyError) as error:
        yield Fault("mission_unreadable", f"it cannot be folded: {error}", None, mission_id)
        return
    snapshot = store.snapshot(stream)
    if snapshot is not None and not _leads_to(store, stream, snapshot, whole):
        text = "its snapshot leads to another state than its lines"
        yield Fault("snapshot_disagrees", text, None, mission_id)
    gone = {} if whole.archive is None else whole.archive.operations
    for operation_id, retired in gone.items():
        left = store.left(stream, operation_id)
        body = retired_bytes(retired)
        if left is None or left.body != body or left.n > whole.version:
            text = f"what is kept of {operation_id!r} is not what its lines say"
            yield Fault("left_disagrees", text, None, mission_id)


def _leads_to(store: Store, stream: StreamId, snapshot: Snapshot, whole: At) -> bool:
    start = believed(store, stream, snapshot)
    if start is None:
        return False
    try:
        return followed(store, stream, start).state.parts == whole.state.parts
    except Distrusted:
        return True  # an operation that left is damaged, and named by itself
