"""The state of a mission: records that never change, in maps that never change.

``State`` reads like a mapping under the JSON names of the design page. What a record holds
beyond those names is derived, kept so that one command costs the same at ten operations and at
a million; it is not part of the canonical bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from counterfoil.mission import rendering
from counterfoil.mission.amounts import ZERO, Amount
from counterfoil.mission.persistent import PersistentMap
from counterfoil.mission.transitions import BLOCKS, DISPOSITIONS
from counterfoil.mission.vocabulary import (
    AttemptStatus,
    Disposition,
    Effect,
    Finding,
    NodeStatus,
    RunStatus,
)

if TYPE_CHECKING:
    from counterfoil.mission.commands import Action, Approval, GrantTerms, NodeResult
    from counterfoil.mission.contract import Contract
    from counterfoil.mission.graph import Graph
    from counterfoil.mission.parsing import FrozenJson, Json

Names = PersistentMap[None]
"""A set of ids."""


class Stop(NamedTuple):
    """Why, by whom and when (ms) the mission was stopped."""

    reason: FrozenJson
    by: str
    at_ms: int


class ReviewEntry(NamedTuple):
    """A person's answer, as it was given at ``at_ms``."""

    reviewer: str
    decision: Finding
    actual_cost: Amount
    evidence: FrozenJson
    at_ms: int


class Correction(NamedTuple):
    """The answer that a correction replaced, who corrected it and when (ms)."""

    effect: Effect
    actual_cost: Amount
    by: str
    evidence: FrozenJson
    at_ms: int


class Attempt(NamedTuple):
    """One authorized effort. ``epoch`` and ``node_id`` are those of its dispatch."""

    id: str
    amount: Amount
    status: AttemptStatus
    epoch: int | None = None
    node_id: str | None = None
    effect: Effect | None = None
    actual_cost: Amount | None = None
    evidence: FrozenJson | None = None
    reviews: tuple[ReviewEntry, ...] = ()
    corrections: tuple[Correction, ...] = ()


class Admission(NamedTuple):
    """What an operation was admitted as: none of it ever changes."""

    run_id: str
    grant_id: str
    subject: str
    action: Action
    approval_id: str | None
    compensates: str | None


class Links(NamedTuple):
    """How an operation stands to nodes and to other operations; all derived.

    ``nodes`` are those it was dispatched under; ``undoes`` is the operation it compensates, by
    command or by a completed node; ``completed`` says that it completed a TASK or COMPENSATION;
    ``blocking`` and ``undone`` count the operations undoing this one that stand in the way of
    another one, and that were applied.
    """

    nodes: tuple[str, ...] = ()
    undoes: str | None = None
    completed: bool = False
    blocking: int = 0
    undone: int = 0


NO_LINKS = Links()


class Operation(NamedTuple):
    """One intended change: its attempts, of which only the last may be prepared or dispatched.

    ``applied``, ``settled`` and ``released`` count attempts.
    """

    admission: Admission
    attempts: tuple[Attempt, ...]
    links: Links = NO_LINKS
    applied: int = 0
    settled: int = 0
    released: int = 0

    @property
    def prepared(self) -> bool:
        """Whether an attempt waits for its dispatch."""
        return self.attempts[-1].status is AttemptStatus.PREPARED

    @property
    def dispatched(self) -> bool:
        """Whether an attempt waits for its answer."""
        return self.attempts[-1].status is AttemptStatus.DISPATCHED

    @property
    def under_review(self) -> bool:
        """Whether a person has to find out: from the first UNKNOWN until an answer."""
        return self.dispatched and self.attempts[-1].effect is Effect.UNKNOWN

    @property
    def disposition(self) -> Disposition:
        """What is known of the effect, read off the attempts."""
        return DISPOSITIONS[self.dispatched, self.applied > 0, self.settled > 0]

    @property
    def blocks(self) -> bool:
        """Whether, as a compensation, it stands in the way of another one."""
        return BLOCKS[self.disposition, self.prepared]

    def place(self, attempt_id: str) -> int:
        """Return where an attempt stands; the last is looked at first."""
        at = len(self.attempts) - 1
        while self.attempts[at].id != attempt_id:
            at -= 1
        return at

    def moved(
        self, at: int, attempt: Attempt, *, applied: int = 0, settled: int = 0, released: int = 0
    ) -> Operation:
        """Return the operation with another attempt at a place, and this much more counted."""
        before = self.attempts
        return Operation(
            self.admission,
            (attempt,) if len(before) == 1 else (*before[:at], attempt, *before[at + 1 :]),
            self.links,
            self.applied + applied,
            self.settled + settled,
            self.released + released,
        )


class Criterion(NamedTuple):
    """Whether a criterion is met in a run, and by what evidence."""

    met: bool = False
    evidence: FrozenJson | None = None


class NodeState(NamedTuple):
    """A node in one run. ``busy`` counts the operations dispatched under it that are not known
    to have left no effect.
    """

    status: NodeStatus = NodeStatus.PENDING
    operation_id: str | None = None
    result: NodeResult | None = None
    busy: int = 0


class Run(NamedTuple):
    """One run. ``unknown`` counts its UNKNOWN operations, ``prepared`` are its open attempts."""

    criteria: PersistentMap[Criterion]
    status: RunStatus = RunStatus.OPEN
    epoch: int = 1
    owner: str | None = None
    graph_id: str | None = None
    nodes: PersistentMap[NodeState] = PersistentMap()
    unknown: int = 0
    prepared: Names = PersistentMap()

    def counting(self, unknown: int, prepared: Names) -> Run:
        """Return the run with other counts."""
        return Run(*self[:6], unknown, prepared)


class Grant(NamedTuple):
    """A grant with what it and everything below it spent and reserved."""

    terms: GrantTerms
    parent_id: str | None = None
    revoked: bool = False
    reason: FrozenJson | None = None
    spent: Amount = ZERO
    reserved: Amount = ZERO
    children: Names = PersistentMap()

    def charged(self, spent: int, reserved: int) -> Grant:
        """Return the grant with this much more spent and reserved."""
        return Grant(
            *self[:4], Amount(self.spent + spent), Amount(self.reserved + reserved), self.children
        )


class LastWord(NamedTuple):
    """The last approval record, and the last one by anybody else than its approver.

    These two give the last word of those who are not the subject, whoever the subject is.
    """

    last: Approval
    other: Approval | None

    def then(self, approval: Approval) -> LastWord:
        """Return the last word after one more."""
        if approval.approver == self.last.approver:
            return LastWord(approval, self.other)
        return LastWord(approval, self.last)

    def not_by(self, subject: str) -> Approval | None:
        """Return the last one that counts: a subject does not approve itself."""
        return self.other if self.last.approver == subject else self.last


class Words(NamedTuple):
    """What was said of one operation id: the last word, the last per digest, and all ids."""

    last: LastWord
    by_digest: PersistentMap[LastWord]
    approval_ids: Names


class Trigger(NamedTuple):
    """A trigger's firings, each with the run that it started."""

    firings: PersistentMap[str] = PersistentMap()


class Parts(NamedTuple):
    """Everything that a state holds, typed. ``attempts`` leads from an id to its operation's."""

    contract: Contract
    now_ms: int = 0
    spent: Amount = ZERO
    reserved: Amount = ZERO
    events: int = 0
    stopped: Stop | None = None
    runs: PersistentMap[Run] = PersistentMap()
    grants: PersistentMap[Grant] = PersistentMap()
    approvals: PersistentMap[Approval] = PersistentMap()
    words: PersistentMap[Words] = PersistentMap()
    operations: PersistentMap[Operation] = PersistentMap()
    attempts: PersistentMap[str] = PersistentMap()
    graphs: PersistentMap[Graph] = PersistentMap()
    triggers: PersistentMap[Trigger] = PersistentMap()


@dataclass(frozen=True, slots=True, eq=False)
class State(Mapping[str, object]):
    """A mission after some commands: ``state["spent"]``, ``state["operations"]["o"]``.

    Reading gives fresh plain values under the JSON names; amounts, times and counts are decimal
    strings. No state is ever changed: ``reduce`` gives the next one and this one stays valid.
    ``parts`` holds the same as typed values.
    """

    parts: Parts

    def __getitem__(self, name: str) -> object:
        """Return one member; KeyError for a name that is none."""
        return rendering.MEMBERS[name](self.parts)

    def __iter__(self) -> Iterator[str]:
        """Yield the members' names."""
        return iter(rendering.MEMBERS)

    def __len__(self) -> int:
        """Return the number of members."""
        return len(rendering.MEMBERS)

    def plain(self) -> dict[str, Json]:
        """Return the whole state as plain JSON values."""
        return rendering.plain(self.parts)


def create_mission(contract: Contract) -> State:
    """Return the state before the first command, at time 0."""
    return State(Parts(contract))


def canonical_state_bytes(state: State) -> bytes:
    """Return the state as one line of RFC 8785 JSON and a newline: equal states, equal bytes."""
    return rendering.canonical(state.parts)
