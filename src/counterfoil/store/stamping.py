"""Turns new events into log entries: place, stamp, token and hash. Pure, one for all engines.

Stamps are max(clock, last + 1 us) of the store, so that order and time agree. A token that an event
takes is the store's sequence number of that event: it only grows, in every scope.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from counterfoil.operation.events import NAMES, Event, NewEvent, payload
from counterfoil.operation.history import History, advance, begin
from counterfoil.operation.plain_json import encode
from counterfoil.operation.replies import Status
from counterfoil.store.chain import GENESIS, LogEntry, link, payload_digest
from counterfoil.store.port import EVENT_VERSION, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from counterfoil.operation.identity import StreamId
    from counterfoil.store.mission_log import Line


class Head(NamedTuple):
    """Where the log stands: its last sequence, stamp and hash."""

    seq: int
    at_us: int
    chained: bytes


NOTHING_YET = Head(0, 0, GENESIS)
"""Where an empty log stands."""


def head_after(entries: Sequence[LogEntry]) -> Head:
    """Return where the log stands after these entries."""
    return Head(entries[-1].seq, entries[-1].at_us, entries[-1].chained)


def stamp(
    stream: StreamId,
    before: History | None,
    events: Sequence[NewEvent],
    head: Head,
    now_us: int,
    token_base: int,
) -> tuple[list[LogEntry], History]:
    """Return the entries to write and the history after them."""
    names = (stream.namespace, stream.tenant, stream.operation_id)
    seq, at_us, chained = head.seq, max(now_us - 1, head.at_us), head.chained
    n = before.n if before is not None else 0
    history = before
    entries = []
    for new in events:
        seq, at_us, n = seq + 1, at_us + 1, n + 1
        token = token_base + seq if new.takes_token else new.token
        text = encode(payload(new.body))
        kind, digest = NAMES[type(new.body)], payload_digest(text)
        chained = link(
            chained,
            seq,
            names,
            n,
            new.event_id,
            kind,
            EVENT_VERSION,
            at_us,
            new.worker,
            token,
            digest,
        )
        entries.append(
            LogEntry(
                seq,
                *names,
                n,
                new.event_id,
                kind,
                EVENT_VERSION,
                at_us,
                new.worker,
                token,
                digest,
                text,
                chained,
            )
        )
        event = Event(n, at_us, new.worker, token, new.body)
        history = begin(event) if history is None else advance(history, event)
    assert history is not None
    return entries, history


def stamp_lines(
    stream: StreamId, version: int, lines: Sequence[Line], head: Head, worker: str
) -> list[LogEntry]:
    """Return the entries of a mission's lines that follow line ``version`` and the log's head.

    The first is stamped ``head.at_us + 1``, as ``Beside.lines`` was told.
    """
    names = (stream.namespace, stream.tenant, stream.operation_id)
    seq, at_us, chained = head
    n, entries = version, []
    for line in lines:
        seq, at_us, n = seq + 1, at_us + 1, n + 1
        digest = payload_digest(line.payload)
        event_id, kind, text = line
        chained = link(
            chained, seq, names, n, event_id, kind, EVENT_VERSION, at_us, worker, None, digest
        )
        entries.append(
            LogEntry(
                seq, *names, n, event_id, kind, EVENT_VERSION, at_us, worker, None, digest, text,
                chained,
            )
        )  # fmt: skip
    return entries


def row_of(stream: StreamId, history: History) -> Row:
    """Return the row that lists read, derived from a history."""
    settled = history.settled
    if history.disputed is not None:
        status, reason = "disputed", str(history.disputed.code)
    elif settled is not None:
        status, reason = str(settled.outcome), str(settled.code)
    else:
        status, reason = str(Status.UNKNOWN), ""
    held = history.opened.reserve if status in ("unknown", "disputed") else None
    opened = history.opened
    return Row(
        stream,
        opened.owner,
        opened.action,
        status,
        reason,
        held,
        history.opened_at_us,
        history.last_at_us,
        history.n,
    )
