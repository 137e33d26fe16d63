"""The closed sets of words that a mission speaks. Source: the design page of the mission."""

from __future__ import annotations

from enum import StrEnum


class Feature(StrEnum):
    """What a contract may switch on."""

    TRIGGERS = "triggers"
    GRAPHS = "graphs"


class Policy(StrEnum):
    """What the caller's policy said of this very command."""

    ALLOW = "ALLOW"
    DENY = "DENY"


class Decision(StrEnum):
    """What an approver said of one operation."""

    APPROVED = "APPROVED"
    REJECTED = "REJECTED"


class Finding(StrEnum):
    """What a person found out about a dispatched attempt."""

    APPLIED = "APPLIED"
    NOT_APPLIED = "NOT_APPLIED"
    STILL_UNKNOWN = "STILL_UNKNOWN"


class Effect(StrEnum):
    """What is known of one attempt's effect."""

    UNKNOWN = "UNKNOWN"
    CONFIRMED_NOT_APPLIED = "CONFIRMED_NOT_APPLIED"
    CONFIRMED_APPLIED = "CONFIRMED_APPLIED"


class Disposition(StrEnum):
    """What is known of one operation's effect: derived from its attempts, never assigned."""

    NOT_DISPATCHED = "NOT_DISPATCHED"
    UNKNOWN = "UNKNOWN"
    CONFIRMED_NOT_APPLIED = "CONFIRMED_NOT_APPLIED"
    CONFIRMED_APPLIED = "CONFIRMED_APPLIED"


class AttemptStatus(StrEnum):
    """Where one attempt stands."""

    PREPARED = "PREPARED"
    DISPATCHED = "DISPATCHED"
    SETTLED = "SETTLED"
    RELEASED = "RELEASED"


class RunStatus(StrEnum):
    """Where one run stands."""

    OPEN = "OPEN"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class NodeStatus(StrEnum):
    """Where one node of a run's graph stands."""

    PENDING = "PENDING"
    DONE = "DONE"


class NodeKind(StrEnum):
    """What completes a node."""

    TASK = "TASK"
    RECONCILIATION = "RECONCILIATION"
    COMPENSATION = "COMPENSATION"
    APPROVAL = "APPROVAL"
    END = "END"
