"""The order of the answers, the forms of a verdict, and what stays bounded."""

from __future__ import annotations

import json

import pytest
from building import (
    OTHER_KEY,
    Values,
    absent,
    answered,
    attempt,
    held,
    judged,
    lease,
    present,
    reason,
    trail,
)

from counterfoil.errors import BadInput
from counterfoil.reader.verdict import (
    Decision,
    Malformed,
    Verdict,
    judge_briefly,
    judge_bytes,
    judge_record,
)
from counterfoil.record.codec import decode

HELD = trail("committed", attempt(1, 0, "timeout"), answers=[present(9)])


def text(values: Values) -> bytes:
    return json.dumps(values).encode()


def test_malformed_bytes_come_before_the_contract() -> None:
    assert isinstance(judge_bytes(b'{"contractId": "x", "a": 1, "a": 2}'), Malformed)


def test_the_contract_comes_before_any_shape() -> None:
    assert reason({"contractId": "x", "operation": 7}) == "contract_id_unknown"


@pytest.mark.parametrize(
    ("member", "path"),
    [
        ({"operation": 7}, "/operation"),
        ({"operation": None}, "/operation"),
        ({"attempts": {}}, "/attempts"),
        ({"attempts": [1]}, "/attempts/0"),
    ],
)
def test_check_3_needs_an_operation_and_a_list_of_attempts(member: Values, path: str) -> None:
    answer = answered({**HELD, **member})
    assert isinstance(answer, Malformed)
    assert answer.path == path


def test_the_whole_shape_comes_before_checks_4_to_10() -> None:
    answer = answered({**HELD, "ownerEffects": [{}, {}], "reported": {"outcome": "perhaps"}})
    assert isinstance(answer, Malformed)
    assert answer.path == "/reported/outcome"


def test_a_verdict_as_json_has_its_members_in_a_fixed_form() -> None:
    assert judged(HELD).as_json() == {
        "decision": "allow",
        "reason": "effect_held",
        "explanation": "consistent with at most one effect; the outcome is committed",
        "members": [],
        "outcome": "committed",
        "advisories": [],
    }


def test_a_malformed_answer_as_json_has_no_decision() -> None:
    assert judge_bytes(b"").as_json() == {
        "error": "malformed_record",
        "path": "",
        "detail": "empty: there is no JSON value",
    }


def test_a_denial_before_the_shape_has_no_outcome() -> None:
    verdict = judged({})
    assert (verdict.outcome, verdict.record) == (None, None)


def test_a_record_made_here_is_judged_as_its_json_is() -> None:
    assert judge_record(decode(HELD)).as_json() == judged(HELD).as_json()


def test_a_record_made_here_out_of_shape_is_malformed() -> None:
    record = decode(HELD)
    bad = record._replace(operation=record.operation._replace(action=""))
    assert judge_record(bad) == Malformed("/operation/action", "must be a non-empty string")


def test_a_record_whose_extra_hides_a_member_is_refused() -> None:
    record = decode(HELD)._replace(extra={"reported": {"outcome": "unknown"}})
    with pytest.raises(BadInput, match="reported"):
        judge_record(record)


def test_hostile_text_is_escaped_and_cut_in_an_explanation() -> None:
    worker = "\x1b[2J\u202e\r\n" + "x" * 5000
    values = trail("committed", held(1, 9, "confirmed", worker, 1), leases=[lease("w", 2, 0, 5)])
    explanation = judged(values).explanation
    assert explanation.isprintable()
    assert len(explanation) < 300


def test_the_brief_verdict_of_a_plain_record_leaves_only_the_record_out() -> None:
    brief, full = judge_briefly(text(HELD)), judge_bytes(text(HELD))
    assert isinstance(brief, Verdict)
    assert isinstance(full, Verdict)
    assert brief == full._replace(record=None)


# Plain trails but for one thing. Each is decided by the checks, which the quick way must leave it
# to: `judged` compares the two.
PLAIN = trail(
    "committed",
    held(1, 1, "timeout", "w1", 1),
    held(2, 61, "confirmed", "w2", 2),
    answers=[absent(30)],
    leases=[lease("w1", 1, 0, 50), lease("w2", 2, 60, 110)],
    reservation={"units": 1, "expiresAt": "2026-03-01T11:00:00Z", "charged": True},
)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("/leases/0/expiresAt", "2026-03-01T10:00:00Z", "dispatch_beyond_lease"),
        ("/leases/1/fencingToken", 1, "dispatch_beyond_lease"),
        ("/leases/0/fencingToken", 3, "dispatch_beyond_lease"),
        ("/attempts/1/worker", "w1", "dispatch_beyond_lease"),
        ("/attempts/0/dispatchedAt", "2026-03-01T10:00:30Z", "retry_after_unknown"),
        ("/attempts/1/idempotencyKey", OTHER_KEY, "effect_held"),
        ("/attempts/1/attempt", 3, "effect_held"),
        ("/attempts/1/reply", "no_effect", "outcome_disagrees_with_authority"),
        ("/reconciliations/0/final", False, "retry_after_unknown"),
        ("/reconciliations/0/result", "present", "retry_after_unknown"),
        ("/reconciliations/0/idempotencyKey", OTHER_KEY, "retry_after_unknown"),
        ("/reported/outcome", "unknown", "outcome_disagrees_with_authority"),
        ("/ownerEffects", [], "effect_held"),
        ("/ownerEffects", [{}, {}], "duplicate_effect"),
        ("/effectOwner/keyRetentionSeconds", 5, "effect_held"),
        ("/reservation/charged", False, "effect_held"),
        ("/reservation/units", 0, "effect_held"),
        ("/reservation/units", -1, None),
        ("/reservation/expiresAt", "2026-03-01T11:00:00", None),
        ("/reservation", False, None),
        ("/leases", False, None),
        ("/leases/0/fencingToken", True, None),
        ("/leases/0/worker", "", None),
        ("/notices", 0, None),
        ("/notices", [{}], "effect_held"),
        ("/attempts/0/fencingToken", 1.0, None),
        ("/attempts/0/reply", [], None),
        ("/attempts/1/attempt", 1, None),
        ("/operation/id", "", None),
        ("/operation/argsDigest", "sha256:" + "A1" * 32, None),
        ("/effectOwner/deduplicatesByKey", 0, None),
        ("/effectOwner", [], None),
        ("/reported", "committed", None),
    ],
)
def test_a_plain_trail_with_one_change_gets_the_checks_answer(
    path: str, value: object, expected: str | None
) -> None:
    assert reason(PLAIN) == "effect_held"
    values = json.loads(text(PLAIN))
    *way, last = path.split("/")[1:]
    part = values
    for token in way:
        part = part[int(token)] if isinstance(part, list) else part[token]
    part[last] = value
    answer = answered(values)
    found = None if isinstance(answer, Malformed) else answer.reason
    assert found == expected


def test_a_decision_is_one_of_two_words() -> None:
    assert [decision.value for decision in Decision] == ["allow", "deny"]
