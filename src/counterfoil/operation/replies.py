"""What came back to a call (a reply) and to a question (an answer), in closed sets.

Anything that is not the owner's documented confirmation or refusal is unknown
(coordinator, "Replies").
"""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ReplyKind(StrEnum):
    """The four words of uncertain-effect/v1."""

    CONFIRMED = "confirmed"
    NO_EFFECT = "no_effect"
    TIMEOUT = "timeout"
    CONNECTION_LOST = "connection_lost"


class Refusal(StrEnum):
    """Why a ``no_effect`` reply was one; only ``DEFINITE`` says something of the operation."""

    DEFINITE = "definite"  # the owner's documented refusal
    NOT_SENT = "not_sent"  # not one byte of the request was written
    TOKEN = "token"  # the owner refused the fencing token, not the operation


class Reply(NamedTuple):
    """What the wire showed for one call.

    ``value`` is what the effect returned (any object; stored only if JSON can carry it),
    ``effect_id`` the owner's own name of the effect, ``cost`` a decimal string. ``ended`` is False
    only for a call that ran past its deadline and has not returned.
    """

    kind: ReplyKind
    refusal: Refusal | None = None
    detail: str | None = None
    value: object = None
    effect_id: str | None = None
    cost: str | None = None
    ended: bool = True


class Result(StrEnum):
    """What an owner's answer says."""

    PRESENT = "present"
    ABSENT = "absent"


class Answer(NamedTuple):
    """What the owner said when it was asked.

    ``says_final``: the owner's own words, believed only where it promised to mean them.
    ``partial``: the view that was asked cannot show every effect, so absent there proves nothing.
    """

    result: Result
    says_final: bool = False
    partial: bool = False
    value: object = None
    effect_id: str | None = None
    cost: str | None = None


class NoAnswer(NamedTuple):
    """A question that brought nothing: 503, a time-out, an unreadable answer."""

    detail: str


class Status(StrEnum):
    """The outcome of an operation."""

    COMMITTED = "committed"
    NOT_RUN = "not_run"
    UNKNOWN = "unknown"


class Code(StrEnum):
    """Why an outcome is what it is. Stable; the text beside it is for people."""

    CONFIRMED = "confirmed"
    FOUND_AT_OWNER = "found_at_owner"
    REFUSED = "refused"
    NOT_SENT = "not_sent"
    ABSENT_AT_OWNER = "absent_at_owner"
    SETTLED_BY_PERSON = "settled_by_person"

    AWAITING_ANSWER = "awaiting_answer"
    ABSENT_NOT_FINAL = "absent_not_final"
    OWNER_CANNOT_BE_ASKED = "owner_cannot_be_asked"
    SENDER_MAY_STILL_SEND = "sender_may_still_send"
    CALL_STILL_RUNNING = "call_still_running"
    IN_FLIGHT = "in_flight"
    LEASE_UNREADABLE = "lease_unreadable"
    ARGUMENTS_NOT_KEPT = "arguments_not_kept"
    EFFECT_NOT_REGISTERED = "effect_not_registered"
    STORE_FAILED = "store_failed"
    STORE_SUSPECT = "store_suspect"
    EFFECT_CLAIMED = "effect_claimed"
    DISPUTED = "disputed"
    WORKER_EXCLUDED = "worker_excluded"
    CLOSED_BY_PERSON = "closed_by_person"


class Reason(NamedTuple):
    """A code that programs read and a sentence that people read."""

    code: Code
    text: str

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"
