"""``Record`` and its parts: what a trail says, as frozen values (uncertain-effect/v1).

The names are the contract's in the house's spelling. ``extra`` holds the JSON members that the
contract does not name; they are kept and read by nothing here.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType

from counterfoil.record.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from counterfoil.record.instants import Instant

CONTRACT_ID = "https://probityai.github.io/agent-evidence-vectors/predicate/v1/uncertain-effect"

NO_EXTRA: Mapping[str, object] = MappingProxyType({})


class Reply(StrEnum):
    """What the caller saw of one dispatch."""

    CONFIRMED = "confirmed"
    NO_EFFECT = "no_effect"
    TIMEOUT = "timeout"
    CONNECTION_LOST = "connection_lost"


class Result(StrEnum):
    """What an owner's answer says of the effect."""

    PRESENT = "present"
    ABSENT = "absent"


class Outcome(StrEnum):
    """What became of the operation."""

    COMMITTED = "committed"
    NOT_RUN = "not_run"
    UNKNOWN = "unknown"


UNKNOWN_REPLIES = frozenset({Reply.TIMEOUT, Reply.CONNECTION_LOST})
"""The replies after which the effect may exist or not."""


class Operation(Value):
    """One intended external change. ``args_digest`` is ``sha256:`` and 64 hex digits."""

    id: str
    action: str
    idempotency_key: str
    args_digest: str
    extra: Mapping[str, object] = NO_EXTRA


class EffectOwner(Value):
    """The service that holds the effect; ``key_retention_s`` is seconds, None for no limit."""

    id: str
    deduplicates_by_key: bool
    key_retention_s: float | None
    extra: Mapping[str, object] = NO_EXTRA


class Attempt(Value):
    """One dispatch of the operation, and what came back."""

    number: int
    idempotency_key: str
    args_digest: str
    dispatched_at: Instant
    reply: Reply
    worker: str | None = None
    fencing_token: int | None = None
    extra: Mapping[str, object] = NO_EXTRA


class Lease(Value):
    """A worker's right to dispatch, between two instants, both of them inside."""

    worker: str
    fencing_token: int
    acquired_at: Instant
    expires_at: Instant
    extra: Mapping[str, object] = NO_EXTRA


class Reconciliation(Value):
    """The owner's answer to a question about one key."""

    at: Instant
    idempotency_key: str
    result: Result
    final: bool
    extra: Mapping[str, object] = NO_EXTRA


class Reservation(Value):
    """Capacity held for the operation: ``units`` of it, until ``expires_at``."""

    units: float
    expires_at: Instant
    charged: bool
    extra: Mapping[str, object] = NO_EXTRA


class Reported(Value):
    """What the runtime reported."""

    outcome: Outcome
    extra: Mapping[str, object] = NO_EXTRA


class Record(Value):
    """A runtime's trail of one operation. ``owner_effects`` and ``notices`` are kept unread."""

    operation: Operation
    effect_owner: EffectOwner
    attempts: tuple[Attempt, ...]
    reconciliations: tuple[Reconciliation, ...]
    owner_effects: tuple[Mapping[str, object], ...]
    reported: Reported
    leases: tuple[Lease, ...] = ()
    reservation: Reservation | None = None
    notices: tuple[Mapping[str, object], ...] = ()
    extra: Mapping[str, object] = NO_EXTRA
    contract_id: str = CONTRACT_ID
