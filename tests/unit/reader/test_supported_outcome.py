"""The outcome that the owner's answers support, at the edges of its reading."""

from __future__ import annotations

import pytest
from building import KEY, OTHER_KEY, Values, absent, answer, attempt, judged, present, trail

from counterfoil.reader.supported_outcome import supported_outcome
from counterfoil.record.codec import decode
from counterfoil.record.model import Outcome


def outcome(*attempts: Values, answers: list[Values] | None = None) -> str:
    values = trail("unknown", *attempts, answers=answers)
    found = supported_outcome(decode(values))
    assert judged(values).outcome is found
    return found.value


@pytest.mark.parametrize("reply", ["timeout", "connection_lost"])
def test_a_lost_reply_without_an_answer_is_unknown(reply: str) -> None:
    assert outcome(attempt(1, 0, reply)) == "unknown"


def test_a_confirmed_attempt_commits_whatever_else_is_said() -> None:
    answers = [absent(50), absent(90)]
    attempts = attempt(1, 0, "timeout"), attempt(2, 60, "confirmed")
    assert outcome(*attempts, answers=answers) == "committed"


@pytest.mark.parametrize("final", [True, False])
def test_a_present_answer_commits_final_or_not(final: bool) -> None:
    assert outcome(attempt(1, 0, "timeout"), answers=[answer(9, "present", final=final)]) == (
        "committed"
    )


@pytest.mark.parametrize("key", [KEY, OTHER_KEY])
def test_a_present_answer_counts_under_the_operations_and_each_attempts_key(key: str) -> None:
    attempts = attempt(1, 0, "timeout", key=OTHER_KEY)
    assert outcome(attempts, answers=[present(9, key)]) == "committed"


def test_answers_under_a_key_that_nobody_used_are_ignored() -> None:
    answers = [present(9, "key-9"), absent(9, "key-9")]
    assert outcome(attempt(1, 0, "timeout"), answers=answers) == "unknown"


@pytest.mark.parametrize(("seconds", "expected"), [(0, "unknown"), (0.000001, "not_run")])
def test_a_final_absent_answer_must_be_later_than_the_dispatch(
    seconds: float, expected: str
) -> None:
    assert outcome(attempt(1, 0, "timeout"), answers=[absent(seconds)]) == expected


def test_an_absent_answer_that_is_not_final_settles_nothing() -> None:
    answers = [answer(9, "absent", final=False)]
    assert outcome(attempt(1, 0, "timeout"), answers=answers) == "unknown"


def test_an_absent_answer_before_the_last_unknown_attempt_of_its_key_settles_nothing() -> None:
    attempts = attempt(1, 0, "timeout"), attempt(2, 60, "timeout")
    assert outcome(*attempts, answers=[absent(30)]) == "unknown"
    assert outcome(*attempts, answers=[absent(30), absent(90)]) == "not_run"


def test_each_unknown_key_needs_its_own_absent_answer() -> None:
    attempts = attempt(1, 0, "timeout"), attempt(2, 60, "timeout", key=OTHER_KEY)
    assert outcome(*attempts, answers=[absent(90)]) == "unknown"
    assert outcome(*attempts, answers=[absent(90), absent(90, OTHER_KEY)]) == "not_run"


def test_without_an_unknown_attempt_nothing_ran() -> None:
    assert outcome() == "not_run"
    assert outcome(attempt(1, 0, "no_effect")) == Outcome.NOT_RUN.value
