"""What a mission says no with: malformed contracts and commands, and refusals with a code.

Source: the design page of the mission, "Checks and codes".
"""

from __future__ import annotations

from enum import StrEnum

from counterfoil.errors import BadInput, Refused


class Code(StrEnum):
    """Every reason for which a well-formed command may not happen. The words are stable."""

    FEATURE_DISABLED = "feature_disabled"
    TIME_WENT_BACK = "time_went_back"
    MISSION_STOPPED = "mission_stopped"

    ATTEMPT_UNKNOWN = "attempt_unknown"
    OPERATION_UNKNOWN = "operation_unknown"
    OPERATION_EXISTS = "operation_exists"
    ATTEMPT_EXISTS = "attempt_exists"

    RUN_UNKNOWN = "run_unknown"
    RUN_EXISTS = "run_exists"
    RUN_CLOSED = "run_closed"
    EPOCH_REQUIRED = "epoch_required"
    STALE_EPOCH = "stale_epoch"
    DEADLINE_PASSED = "deadline_passed"

    POLICY_DENIED = "policy_denied"
    MANDATORY_CHECKS_FAILED = "mandatory_checks_failed"
    AUTHORIZATION_STALE = "authorization_stale"
    AUTHORIZATION_IN_FUTURE = "authorization_in_future"

    GRANT_UNKNOWN = "grant_unknown"
    GRANT_EXISTS = "grant_exists"
    GRANT_REVOKED = "grant_revoked"
    GRANT_NOT_YET_VALID = "grant_not_yet_valid"
    GRANT_EXPIRED = "grant_expired"
    SUBJECT_MISMATCH = "subject_mismatch"
    ACTION_NOT_ALLOWED = "action_not_allowed"
    RESOURCE_NOT_ALLOWED = "resource_not_allowed"
    DELEGATION_NOT_ALLOWED = "delegation_not_allowed"
    DELEGATION_TOO_WIDE = "delegation_too_wide"

    APPROVAL_EXISTS = "approval_exists"
    APPROVAL_MISSING = "approval_missing"
    APPROVAL_SELF = "approval_self"
    APPROVAL_REJECTED = "approval_rejected"
    APPROVAL_EXPIRED = "approval_expired"
    APPROVAL_AMOUNT_EXCEEDED = "approval_amount_exceeded"

    GRANT_LIMIT_EXCEEDED = "grant_limit_exceeded"
    BUDGET_EXCEEDED = "budget_exceeded"

    ORIGINAL_NOT_APPLIED = "original_not_applied"
    ALREADY_COMPENSATED = "already_compensated"
    ORIGINAL_UNSETTLED = "original_unsettled"

    EFFECT_UNKNOWN = "effect_unknown"
    ALREADY_APPLIED = "already_applied"
    ATTEMPT_OPEN = "attempt_open"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    ATTEMPT_NOT_PREPARED = "attempt_not_prepared"
    ATTEMPT_NOT_DISPATCHED = "attempt_not_dispatched"
    ATTEMPT_NOT_SETTLED = "attempt_not_settled"
    INCONSISTENT_SETTLEMENT = "inconsistent_settlement"
    UNDER_REVIEW = "under_review"

    GRAPH_EXISTS = "graph_exists"
    GRAPH_UNKNOWN = "graph_unknown"
    GRAPH_ATTACHED = "graph_attached"
    GRAPH_NOT_DONE = "graph_not_done"
    NODE_REQUIRED = "node_required"
    NODE_UNKNOWN = "node_unknown"
    NODE_KIND = "node_kind"
    NODE_DONE = "node_done"
    NODE_NOT_READY = "node_not_ready"
    NODE_BUSY = "node_busy"
    RESULT_MISMATCH = "result_mismatch"

    CRITERION_UNKNOWN = "criterion_unknown"
    CRITERIA_NOT_MET = "criteria_not_met"
    TRIGGER_EXISTS = "trigger_exists"
    TRIGGER_UNKNOWN = "trigger_unknown"
    FIRING_EXISTS = "firing_exists"


def shown(text: str) -> str:
    """Return ``text`` with everything that is not printable escaped: it goes to a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class MissionInput(BadInput):
    """JSON that is no contract, command or action. Nothing was changed.

    ``path`` is a JSON Pointer (empty for the document), ``detail`` a short phrase.
    """

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(f"{shown(path) or 'the document'}: {detail}")
        self.path = path
        self.detail = detail


class ContractError(MissionInput):
    """The contract cannot be used; ``path`` points at what to mend."""


class CommandError(MissionInput):
    """The command or action cannot be used; ``path`` points at what to mend."""


class CommandRejected(Refused):
    """A well-formed command that may not happen now. The state is as it was.

    ``code`` is one of the words of ``Code`` and stable; ``detail`` is free text.
    """

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(str(code), detail)

    def __str__(self) -> str:
        """Return the code and the text in one line."""
        return f"{self.code}: {self.detail}"
