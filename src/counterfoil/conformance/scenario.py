"""A scenario: an operation, an owner that behaves in a scripted way, and what may be left there.

The words of the files are in ``scenarios/README.md``; each is an enumeration here. A scenario is a
mapping as well, so that a runtime's own tests can read ``scenario["operation"]``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from counterfoil.errors import BadInput

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
"""What ``json.loads`` gives."""

SETS = ("core", "field", "crash", "zombie")
"""The shipped sets, in the order in which they are run."""


class ScenarioError(BadInput):
    """A scenario file that cannot be used; ``pointer`` is a JSON Pointer into it."""

    def __init__(self, file: str, pointer: str, detail: str) -> None:
        super().__init__(f"{file}: {pointer or 'the document'}: {detail}")
        self.file = file
        self.pointer = pointer
        self.detail = detail


class Outcome(StrEnum):
    """What a runtime may report of an operation (seed, "The runtime contract")."""

    COMMITTED = "committed"
    NOT_RUN = "not_run"
    UNKNOWN = "unknown"


class Fences(StrEnum):
    """How the owner learns of fencing tokens (coordinator, "Fencing")."""

    NO = "no"
    ON_SEND = "on_send"
    ON_ASK = "on_ask"
    BY_CALL = "by_call"
    BY_LEASE = "by_lease"


class LandsWhen(StrEnum):
    """When a call takes effect at the owner."""

    NOW = "now"
    NEVER = "never"
    LOOKUPS = "lookups"  # once so many more look-ups were answered
    CALLS = "calls"  # once so many more calls were acted on
    SECONDS = "seconds"
    RELEASE = "release"  # the network holds it until a fault delivers it
    WAKE = "wake"  # its sender froze before its first byte, and writes it on waking


class Reply(StrEnum):
    """What the caller sees of its call."""

    CONFIRMED = "confirmed"
    REFUSED = "refused"
    IN_PROGRESS = "in_progress"
    STATUS = "status"
    LOST = "lost"
    RESET = "reset"
    CUT = "cut"
    GARBAGE = "garbage"
    HANG = "hang"


class Says(StrEnum):
    """What the owner says when it is asked about a key."""

    TRUTH = "truth"
    ABSENT = "absent"
    PARTIAL = "partial"
    UNAVAILABLE = "unavailable"
    CUT = "cut"
    GARBAGE = "garbage"
    HANG = "hang"


class Moment(StrEnum):
    """A point at which a fault may strike; the owner stands still until the fault is done."""

    LEASE_READ = "lease_read"
    CALL_ARRIVED = "call_arrived"
    CALL_LANDED = "call_landed"
    CALL_ANSWERED = "call_answered"
    LOOKUP_ARRIVED = "lookup_arrived"
    LOOKUP_ANSWERED = "lookup_answered"
    WORKER_ENDED = "worker_ended"


class Deed(StrEnum):
    """What a fault does."""

    KILL = "kill"
    FREEZE = "freeze"
    WAKE = "wake"
    START_AGAIN = "start_again"
    START_SECOND = "start_second"
    DELIVER = "deliver"
    MOVE_LEASE = "move_lease"


@dataclass(frozen=True, slots=True)
class Promises:
    """What the owner promises; the runtime is shown it."""

    deduplicates: bool
    key_retention_s: float | None
    lookup: bool
    final_by_answer: bool
    settles_within_s: float | None
    fences: Fences


@dataclass(frozen=True, slots=True)
class Landing:
    """When a call takes effect; ``count`` is a number of look-ups or calls, or seconds."""

    when: LandsWhen
    count: float = 0


@dataclass(frozen=True, slots=True)
class CallStep:
    """What the owner does with one call."""

    landing: Landing = Landing(LandsWhen.NOW)
    reply: Reply = Reply.CONFIRMED
    status: int = 0
    delay_s: float = 0.0
    moves_lease: bool = False


@dataclass(frozen=True, slots=True)
class LookupStep:
    """What the owner does with one look-up."""

    says: Says = Says.TRUTH
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Fault:
    """One step of the fault script; without ``at`` it follows the step before at once."""

    do: Deed
    at: Moment | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class Accepted:
    """One pair that a runtime may leave: effects at the owner, and the outcome it reported."""

    effects: int
    outcome: Outcome

    def __str__(self) -> str:
        """Say the pair in words."""
        return f"{effects_in_words(self.effects)} and {self.outcome}"


@dataclass(frozen=True, slots=True, eq=False)
class Scenario(Mapping[str, Json]):
    """One scenario, read and checked. As a mapping it is the file's own members."""

    members: dict[str, Json]
    id: str
    set_name: str
    summary: str
    promises: Promises
    worker: str | None
    calls: tuple[CallStep, ...]
    lookups: tuple[LookupStep, ...]
    faults: tuple[Fault, ...]
    accepted: tuple[Accepted, ...]

    def __getitem__(self, name: str) -> Json:
        """Return a member as the file has it."""
        return self.members[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the members' names."""
        return iter(self.members)

    def __len__(self) -> int:
        """Count the members."""
        return len(self.members)

    def shown(self, neutral_id: str, worker: str | None = None) -> dict[str, Json]:
        """Return what a runtime may see of it: never how the owner will behave."""
        seen: dict[str, Json] = {"id": neutral_id}
        seen |= {name: self.members[name] for name in ("operation", "owner")}
        if self.worker is not None:
            seen["lease"] = {"worker": worker or self.worker}
        return seen

    @property
    def needs_a_process(self) -> bool:
        """Whether a fault ends, stops or starts a worker: only a process can be so driven."""
        return any(fault.do not in (Deed.DELIVER, Deed.MOVE_LEASE) for fault in self.faults)

    @property
    def expected(self) -> str:
        """The accepted pairs in words."""
        return ", or ".join(map(str, self.accepted))


def effects_in_words(count: int) -> str:
    """Say a number of effects."""
    return "no effect" if count == 0 else "1 effect" if count == 1 else f"{count} effects"
