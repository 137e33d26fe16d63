"""What is appended to an operation's stream: only what was observed or decided, never changed.

An event is an envelope (place, time, worker, token) and a body; a body's members are what the store
keeps as the payload. Adding a member with a default keeps old events readable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from counterfoil.operation.replies import Code, Refusal, ReplyKind, Result, Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Opened(NamedTuple):
    """The operation: one intended external change. JSON texts are RFC 8785.

    ``under`` says by what authority, where a mission governs it: the mission's id, the run and its
    epoch, the grant, the resource, and where given the node and the operation it compensates.
    """

    action: str
    owner: str
    key: str
    args_digest: str
    arguments: str | None
    preconditions: str | None
    promises: Mapping[str, object]
    reserve: str | None = None
    own_key: bool = False
    under: Mapping[str, str] | None = None


class Leased(NamedTuple):
    """A worker's right to dispatch, taken or renewed without a dispatch."""

    lease_s: float


class Dispatched(NamedTuple):
    """The point of no return of one attempt, and the lease under which it may be sent.

    ``basis`` says what licensed it. A redelivery sends the same key again and reserves nothing.
    """

    attempt: int
    key: str
    lease_s: float
    deadline_s: float | None
    basis: str
    redelivery: bool = False


class Supposed(NamedTuple):
    """A dispatch that nobody remembers: the store may have forgotten it (suspect stores).

    It counts as an unknown attempt of the worker ``FORGOTTEN``, which stands for every worker
    before this one; it ends when all of them are excluded. A copy of a store may end anywhere in
    an operation's stream, so one that is known and not settled gets it too, once for each gap.
    """

    attempt: int
    key: str
    because: str


class Replied(NamedTuple):
    """What the wire showed for an attempt, stored by the worker that made it.

    ``value`` is JSON text; ``value_missing`` says why there is none although something returned.
    ``claimed_by`` names the other operation that the owner's effect already belongs to.
    """

    attempt: int
    kind: ReplyKind
    refusal: Refusal | None = None
    detail: str | None = None
    effect_id: str | None = None
    cost: str | None = None
    value: str | None = None
    value_missing: str | None = None
    claimed_by: str | None = None
    sent_at_us: int | None = None
    ended: bool = True


class Excluded(NamedTuple):
    """A worker can send nothing any more: proven by its lock, or said by a person with evidence."""

    worker: str
    because: str
    by: str | None = None
    evidence: str | None = None


class Answered(NamedTuple):
    """The owner's answer to a question.

    ``asked_after`` is the place in the stream that the asker had read when the question began;
    ``fence`` the token in force at the owner with the answer; ``basis`` what made an absent answer
    believed, None where it was not. ``by`` and ``evidence`` mark an answer that a person relayed.
    """

    key: str
    result: Result
    asked_after: int
    asked_at_us: int
    says_final: bool = False
    partial: bool = False
    fence: int | None = None
    basis: str | None = None
    effect_id: str | None = None
    cost: str | None = None
    value: str | None = None
    value_missing: str | None = None
    claimed_by: str | None = None
    by: str | None = None
    evidence: str | None = None


class Settled(NamedTuple):
    """The outcome that the observations support, decided once."""

    outcome: Status
    code: Code
    text: str
    cost: str | None = None


class Reopened(NamedTuple):
    """A refused operation may be tried again: somebody asked for it after it was settled."""

    by: str | None = None


class Closed(NamedTuple):
    """A person gave up on an answer. A local disposition: the trail stays unknown and charged."""

    says: str
    by: str
    evidence: str


class Corrected(NamedTuple):
    """A settlement that turned out otherwise. The old answers stay in the stream."""

    outcome: Status
    by: str
    evidence: str
    cost: str | None = None


class Verified(NamedTuple):
    """What the target itself showed after a compensation committed: read, not assumed.

    ``answer`` is the JSON text of what the look returned; ``missing`` says why there is none: it
    raised, or JSON cannot carry what it returned.
    """

    answer: str | None = None
    missing: str | None = None


FORGOTTEN = "forgotten"
"""The worker of a supposed attempt: every worker before this one, taken together."""

Body = (
    Opened
    | Leased
    | Dispatched
    | Replied
    | Excluded
    | Answered
    | Settled
    | Reopened
    | Supposed
    | Closed
    | Corrected
    | Verified
)

KINDS: dict[str, type[Body]] = {
    "opened": Opened,
    "leased": Leased,
    "dispatched": Dispatched,
    "replied": Replied,
    "excluded": Excluded,
    "answered": Answered,
    "settled": Settled,
    "reopened": Reopened,
    "supposed": Supposed,
    "closed": Closed,
    "corrected": Corrected,
    "verified": Verified,
}
NAMES: dict[type[Body], str] = {body: name for name, body in KINDS.items()}

_ENUMS: dict[str, Callable[[str], object]] = {
    "kind": ReplyKind,
    "refusal": Refusal,
    "result": Result,
    "outcome": Status,
    "code": Code,
}


class Event(NamedTuple):
    """A stored event: ``n`` is its place in the operation's stream (from 1), ``at_us`` the stamp.

    ``token`` is the fencing token of the lease that the event grants, or under which it was made.
    """

    n: int
    at_us: int
    worker: str
    token: int | None
    body: Body


class NewEvent(NamedTuple):
    """An event that is not stored yet; the store gives place, stamp and, if asked, the token."""

    event_id: bytes
    worker: str
    body: Body
    token: int | None = None
    takes_token: bool = False


def payload(body: Body) -> dict[str, object]:
    """Return a body's members for storing, those without a value left out."""
    return {name: v for name, v in zip(body._fields, body, strict=True) if v is not None}


def from_payload(kind: str, members: Mapping[str, object]) -> Body:
    """Read back what ``payload`` wrote. Raises ``KeyError`` for a kind of a later version."""
    body = KINDS[kind]
    values: dict[str, object] = {}
    for name in body._fields:
        value = members.get(name)
        if value is not None and name in _ENUMS:
            value = _ENUMS[name](str(value))
        if value is not None or name in _REQUIRED_NULLABLE:
            values[name] = value
    return body(**values)  # type: ignore[arg-type]


_REQUIRED_NULLABLE = frozenset({"arguments", "preconditions", "deadline_s"})
