"""The chain over the log: each entry carries the hash of the one before. Pure.

It runs over the *digest* of a payload, so that a payload can be erased and the chain still verifies
(design page, store).
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

GENESIS = bytes(32)
"""What the first entry is chained to."""


class LogEntry(NamedTuple):
    """One event as it lies in the log. ``seq`` is the store's sequence, ``n`` the stream's.

    ``payload`` is JSON text, None once it was erased; ``digest`` its SHA-256; ``chained`` the hash
    of this entry over the one before.
    """

    seq: int
    namespace: str
    tenant: str
    operation_id: str
    n: int
    event_id: bytes
    kind: str
    version: int
    at_us: int
    worker: str
    token: int | None
    digest: bytes
    payload: str | None
    chained: bytes


def payload_digest(payload: str) -> bytes:
    """Return the SHA-256 of a payload's UTF-8 bytes."""
    return hashlib.sha256(payload.encode()).digest()


def link(
    before: bytes,
    seq: int,
    stream: tuple[str, str, str],
    n: int,
    event_id: bytes,
    kind: str,
    version: int,
    at_us: int,
    worker: str,
    token: int | None,
    digest: bytes,
) -> bytes:
    """Return the hash of an entry: SHA-256 over the hash before it and all that it says.

    The bytes are the earlier hash and then one line a member, in the order of the parameters: names
    as UTF-8, numbers in decimal, bytes in lower-case hex, nothing for a token that is not there.
    No name holds a line end.
    """
    namespace, tenant, operation_id = stream
    shown = "" if token is None else token
    said = (
        f"{before.hex()}\n{seq}\n{namespace}\n{tenant}\n{operation_id}\n{n}\n{event_id.hex()}\n"
        f"{kind}\n{version}\n{at_us}\n"
        f"{worker}\n{shown}\n{digest.hex()}\n"
    )
    return hashlib.sha256(said.encode()).digest()


def link_of(before: bytes, entry: LogEntry) -> bytes:
    """Return what an entry's hash must be, given the hash before it."""
    stream = (entry.namespace, entry.tenant, entry.operation_id)
    return link(
        before,
        entry.seq,
        stream,
        entry.n,
        entry.event_id,
        entry.kind,
        entry.version,
        entry.at_us,
        entry.worker,
        entry.token,
        entry.digest,
    )
