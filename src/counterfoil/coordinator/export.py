"""Trails out of a store, as uncertain-effect/v1 records, one JSON line each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from counterfoil.errors import OperationNotFound
from counterfoil.operation.identity import StreamId, check_name
from counterfoil.operation.trail import record_of
from counterfoil.record.codec import encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from counterfoil.store.port import Store


def lines(
    store: Store, namespace: str, tenant: str | None, operation_ids: Sequence[str]
) -> Iterator[str]:
    """Yield a JSON line an operation: those named, else all of the namespace, oldest first.

    One stream is held at a time. Raises ``OperationNotFound`` for a named id that is not there,
    before anything is yielded.
    """
    if operation_ids:
        named = [
            StreamId(namespace, tenant or "default", check_name(each, "operation id"))
            for each in operation_ids
        ]
        missing = [stream for stream in named if store.load(stream) is None]
        if missing:
            raise OperationNotFound(missing[0].operation_id)
        yield from (line(store, stream) for stream in named)
        return
    for stream in store.streams(namespace):
        if tenant is None or stream.tenant == tenant:
            yield line(store, stream)


def line(store: Store, stream: StreamId) -> str:
    """Return one operation's record as JSON text, without a line end."""
    history = store.load(stream)
    if history is None:
        raise OperationNotFound(stream.operation_id)
    return json.dumps(encode(record_of(stream, history)), separators=(",", ":"))
