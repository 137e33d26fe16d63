"""The verdict on a record: a decision, the reason, and what a person needs to see why.

Bytes get exactly one of two answers: a ``Verdict``, or ``Malformed``, where nothing was judged.
"""

from __future__ import annotations

from enum import StrEnum

from counterfoil.errors import MalformedRecord
from counterfoil.reader.advisories import advise
from counterfoil.reader.checks import HELD, RECORD_CHECKS, VALUES_CHECKS
from counterfoil.reader.plain import plainly_held
from counterfoil.reader.supported_outcome import find
from counterfoil.record.codec import decode, encode
from counterfoil.record.model import Outcome
from counterfoil.record.strict_json import parse_object
from counterfoil.record.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from counterfoil.reader.advisories import Advisory
    from counterfoil.record.model import Record


class Decision(StrEnum):
    """Whether the trail is consistent with at most one effect."""

    ALLOW = "allow"
    DENY = "deny"


EXPLANATION_HELD = "consistent with at most one effect; the outcome is "
ALLOW, DENY = Decision.ALLOW, Decision.DENY


class Verdict(Value):
    """The judgement on a record. ``reason`` is the first check that fails, or ``effect_held``.

    ``members`` are JSON Pointers into the record. ``outcome`` is what the owner's answers support;
    it and ``record`` are None where checks 1 to 3 denied before the record's shape was looked at.
    """

    decision: Decision
    reason: str
    explanation: str
    members: tuple[str, ...] = ()
    advisories: tuple[Advisory, ...] = ()
    outcome: Outcome | None = None
    record: Record | None = None

    def as_json(self) -> dict[str, object]:
        """Return the verdict as JSON values, the record itself left out."""
        return {
            "decision": self.decision.value,
            "reason": self.reason,
            "explanation": self.explanation,
            "members": list(self.members),
            "outcome": self.outcome and self.outcome.value,
            "advisories": [
                {"code": code, "detail": detail, "members": list(members)}
                for code, detail, members in self.advisories
            ],
        }


class Malformed(Value):
    """No record of the contract: ``path`` is a JSON Pointer, empty for the document."""

    path: str
    detail: str

    def as_json(self) -> dict[str, object]:
        """Return the answer as JSON values. It has no decision: nothing was judged."""
        return {"error": "malformed_record", "path": self.path, "detail": self.detail}


def judge_bytes(data: bytes, without: Collection[str] = ()) -> Verdict | Malformed:
    """Judge a record as it came in. Total: any bytes get an answer, and none an exception.

    ``without`` names reasons whose checks are left out: a corpus shows with it that its cases
    need them. A verdict given to anybody leaves out none.
    """
    try:
        return _judge(parse_object(data), without)
    except MalformedRecord as error:
        return Malformed(error.path, error.detail)


def judge_briefly(data: bytes) -> Verdict | Malformed:
    """Judge as ``judge_bytes`` does, quicker: the verdict has no ``record`` where it is plain."""
    try:
        values = parse_object(data)
        outcome = plainly_held(values)
        return _judge(values, ()) if outcome is None else PLAIN[outcome]
    except MalformedRecord as error:
        return Malformed(error.path, error.detail)


def judge_record(record: Record, without: Collection[str] = ()) -> Verdict | Malformed:
    """Judge a record made in this program, as if it came in: its shape is tested too.

    Raises BadInput where its ``extra`` holds a name of the contract's own.
    """
    values = encode(record)
    try:
        return _judge(values, without)
    except MalformedRecord as error:
        return Malformed(error.path, error.detail)


def _judge(values: dict[str, object], without: Collection[str]) -> Verdict:
    for reason, run_on_values in VALUES_CHECKS:
        failure = None if reason in without else run_on_values(values)
        if failure is not None:
            return Verdict(DENY, reason, failure.explanation, failure.members)
    record = decode(values)
    found = find(record)
    advisories = advise(found)
    for reason, run in RECORD_CHECKS:
        failure = None if reason in without else run(found)
        if failure is not None:
            return Verdict(DENY, reason, *failure, advisories, found.outcome, record)
    return Verdict(
        ALLOW, HELD, EXPLANATION_HELD + found.outcome, (), advisories, found.outcome, record
    )


PLAIN: dict[str, Verdict] = {
    outcome.value: Verdict(ALLOW, HELD, EXPLANATION_HELD + outcome, (), (), outcome)
    for outcome in Outcome
}
