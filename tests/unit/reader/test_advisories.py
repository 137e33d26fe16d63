"""The nine advisories: a trail that is lawful and has it, and the nearest trail that has not."""

from __future__ import annotations

import pytest
from building import (
    OTHER_DIGEST,
    OTHER_KEY,
    Values,
    absent,
    answer,
    attempt,
    codes,
    held,
    judged,
    lease,
    present,
    trail,
)

from counterfoil.reader.advisories import CODES, MEMBERS_MAX
from counterfoil.reader.verdict import Decision

confirmed = attempt(1, 0, "confirmed")
lost = attempt(1, 0, "timeout")

DANGEROUS: dict[str, list[Values]] = {
    "resend_after_committed": [
        trail("committed", confirmed, attempt(2, 60, "no_effect")),
        trail("committed", confirmed, attempt(2, 61, "confirmed"), deduplicates=True, retention=60),
        trail("committed", confirmed, attempt(2, -9, "no_effect")),
        trail("committed", lost, attempt(2, 60, "no_effect"), answers=[absent(5), present(60)]),
        trail(
            "committed",
            lost,
            attempt(2, 61, "no_effect"),
            attempt(3, 62, "no_effect", key=OTHER_KEY),
            answers=[absent(5), present(50)],
            deduplicates=True,
        ),
        trail(
            "committed",
            lost,
            attempt(2, 61, "no_effect"),
            answers=[absent(5), present(50)],
            deduplicates=True,
            retention=60,
        ),
    ],
    "absent_after_retention": [
        trail("not_run", lost, answers=[absent(60.000001)], deduplicates=True, retention=60),
    ],
    "unknown_beside_confirmed": [
        trail("committed", confirmed, attempt(2, 60, "timeout")),
        trail("committed", confirmed, attempt(2, 61, "timeout"), deduplicates=True, retention=60),
        trail("committed", confirmed, attempt(2, 60, "timeout", key=OTHER_KEY), deduplicates=True),
        trail("committed", attempt(1, 60, "timeout"), answers=[present(5)]),
        trail(
            "committed",
            lost,
            attempt(2, 61, "timeout"),
            answers=[absent(5), present(99, OTHER_KEY), present(50)],
        ),
    ],
    "ledger_disagrees": [
        trail("committed", confirmed, effects=0),
        trail("not_run", attempt(1, 0, "no_effect"), effects=1),
    ],
    "present_before_dispatch": [
        trail("committed", confirmed, answers=[present(-0.000001)]),
        trail("committed", attempt(1, 0, "confirmed", key=OTHER_KEY), answers=[present(9)]),
        trail("committed", answers=[present(9)]),
    ],
    "answers_contradict": [
        trail("committed", lost, answers=[present(5), absent(9)]),
        trail("committed", lost, answers=[present(5), absent(5)]),
        trail("committed", lost, answers=[absent(9), present(5)]),
    ],
    "foreign_arguments": [
        trail("committed", attempt(1, 0, "confirmed", key=OTHER_KEY, argsDigest=OTHER_DIGEST)),
    ],
    "token_shared": [
        trail(
            "committed",
            held(1, 5, "confirmed", "w1", 1),
            leases=[lease("w1", 1, 0, 60), lease("w2", 1, 70, 90)],
        ),
    ],
    "order_disagrees": [
        trail("committed", attempt(2, 0, "no_effect"), attempt(1, 60, "confirmed")),
    ],
}

HARMLESS: dict[str, list[Values]] = {
    "resend_after_committed": [
        trail("committed", attempt(1, 0, "no_effect"), attempt(2, 60, "confirmed")),
        trail("committed", confirmed, attempt(2, 60, "confirmed"), deduplicates=True, retention=60),
        trail("committed", lost, attempt(2, 60, "no_effect"), answers=[absent(5), present(61)]),
        trail(
            "committed",
            lost,
            attempt(2, 60, "no_effect"),
            answers=[present(50)],
            deduplicates=True,
            retention=60,
        ),
    ],
    "absent_after_retention": [
        trail("not_run", lost, answers=[absent(60)], deduplicates=True, retention=60),
        trail("not_run", lost, answers=[absent(61)], deduplicates=True, retention=None),
        trail("not_run", lost, answers=[absent(61)], retention=60),
        trail(
            "not_run",
            attempt(1, 0, "no_effect"),
            answers=[absent(61)],
            deduplicates=True,
            retention=60,
        ),
        trail(
            "unknown",
            lost,
            answers=[answer(61, "absent", final=False)],
            deduplicates=True,
            retention=60,
        ),
    ],
    "unknown_beside_confirmed": [
        trail("committed", confirmed, attempt(2, 60, "timeout"), answers=[absent(61)]),
        trail("committed", confirmed, attempt(2, 60, "timeout"), deduplicates=True, retention=60),
        trail("committed", lost, answers=[present(9)]),
        trail("committed", lost, answers=[present(0)]),
        trail("committed", lost, attempt(2, 60, "timeout"), answers=[absent(5), present(99)]),
        trail(
            "committed", lost, attempt(2, 60, "timeout"), answers=[present(99)], deduplicates=True
        ),
        trail("unknown", lost, attempt(2, 60, "timeout"), deduplicates=True),
    ],
    "ledger_disagrees": [
        trail("committed", confirmed, effects=1),
        trail("not_run", attempt(1, 0, "no_effect"), effects=0),
        trail("unknown", lost, effects=1),
    ],
    "present_before_dispatch": [
        trail("committed", confirmed, answers=[present(0)]),
        trail("committed", confirmed, answers=[present(-9, OTHER_KEY)]),
    ],
    "answers_contradict": [
        trail("committed", lost, answers=[absent(4.999999), present(5)]),
        trail("committed", lost, answers=[present(5), answer(9, "absent", final=False)]),
        trail(
            "committed",
            lost,
            attempt(2, 1, "no_effect", key=OTHER_KEY),
            answers=[absent(0.5), present(5), absent(9, OTHER_KEY)],
        ),
    ],
    "foreign_arguments": [trail("committed", attempt(1, 0, "confirmed", key=OTHER_KEY))],
    "token_shared": [
        trail(
            "committed",
            held(1, 5, "confirmed", "w1", 1),
            leases=[lease("w1", 1, 0, 60), lease("w1", 1, 60, 120), lease("w2", 2, 70, 90)],
        ),
    ],
    "order_disagrees": [
        trail("committed", attempt(1, 0, "no_effect"), attempt(2, 0, "confirmed")),
        trail("committed", attempt(2, 60, "confirmed"), attempt(1, 0, "no_effect")),
    ],
}


def cases(table: dict[str, list[Values]]) -> list[tuple[str, Values]]:
    return [(code, values) for code in CODES for values in table[code]]


@pytest.mark.parametrize(("code", "values"), cases(DANGEROUS))
def test_what_is_lawful_and_dangerous_is_allowed_with_its_advisory(
    code: str, values: Values
) -> None:
    verdict = judged(values)
    assert verdict.decision is Decision.ALLOW, verdict
    found = [advisory for advisory in verdict.advisories if advisory.code == code]
    assert len(found) == 1, verdict.advisories
    assert found[0].members
    assert found[0].detail


@pytest.mark.parametrize(("code", "values"), cases(HARMLESS))
def test_the_nearest_harmless_trail_has_no_such_advisory(code: str, values: Values) -> None:
    verdict = judged(values)
    assert verdict.decision is Decision.ALLOW, verdict
    assert code not in [advisory.code for advisory in verdict.advisories]


def test_a_denied_record_has_its_advisories_too() -> None:
    values = trail("not_run", confirmed, attempt(2, 60, "no_effect"), effects=1)
    assert judged(values).decision is Decision.DENY
    assert codes(values) == ["resend_after_committed"]


def test_an_advisory_names_the_members_it_is_about() -> None:
    values = trail("committed", confirmed, attempt(2, 60, "timeout"))
    assert {a.code: a.members for a in judged(values).advisories} == {
        "resend_after_committed": ("/attempts/1", "/attempts/0"),
        "unknown_beside_confirmed": ("/attempts/1",),
    }


def test_an_advisory_about_very_many_members_names_some_and_says_how_many() -> None:
    attempts = [
        attempt(n, n, "no_effect", key=OTHER_KEY, argsDigest=OTHER_DIGEST) for n in range(1, 101)
    ]
    (advisory,) = judged(trail("not_run", *attempts)).advisories
    assert len(advisory.members) == MEMBERS_MAX
    assert "100 members" in advisory.detail
