"""Walks a whole log and names what is wrong with it: the chain, the streams, the rows, the witness.

The chain shows what was changed in the log that is there; only something outside shows what the log
has lost at its end (design page, store).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from counterfoil.errors import StoreCorrupt
from counterfoil.operation.history import fold
from counterfoil.store.chain import GENESIS, LogEntry, link_of, payload_digest
from counterfoil.store.stamping import row_of

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

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
