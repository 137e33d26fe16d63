"""When an absent answer may be believed.

An absent answer permits a resend, a settlement as not run, the release of money, or a person's "not
applied", only if no request under that key sent before the question can still commit. Each rule
below stands alone, so that a search can take one out and show the two effects that follow
(coordinator, "When an absent answer may be believed").
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from counterfoil.operation.events import FORGOTTEN
from counterfoil.operation.promises import Fences
from counterfoil.operation.replies import Answer, Result

if TYPE_CHECKING:
    from collections.abc import Mapping

    from counterfoil.operation.history import Attempt, History
    from counterfoil.operation.promises import Promises

FENCE = "fence"
FINAL_ANSWER = "final_answer"
SETTLED_WITHIN = "settled_within"
NOTHING_IN_DOUBT = "nothing_in_doubt"


class Question(NamedTuple):
    """One question to the owner, as it stood when it began.

    ``asked_after`` is the place in the stream that the asker had read; ``fence`` the token that is
    in force at the owner before or with the answer, None where the owner takes none;
    ``end_known_s`` maps an attempt's number to how long, on the asker's monotonic clock, its end
    had been known to it.
    """

    key: str
    asked_after: int
    asked_at_us: int
    fence: int | None = None
    end_known_s: Mapping[int, float] = MappingProxyType({})


def basis_of_belief(
    history: History, question: Question, answer: Answer, promises: Promises
) -> str | None:
    """Return what makes this absent answer believed, or None.

    It is judged against every attempt in the store when the answer is recorded, not when it was
    asked (T6). The weakest basis that was needed is named.
    """
    if answer.result is not Result.ABSENT or view_is_partial(answer):
        return None
    if history.settled_n is not None and question.asked_after < history.settled_n:
        return None  # it is older than what is known
    in_doubt = attempts_in_doubt(history, question)
    found = [basis_for(attempt, question, answer, promises) for attempt in in_doubt]
    if None in found:
        return None
    for basis in (SETTLED_WITHIN, FINAL_ANSWER, FENCE):
        if basis in found:
            return basis
    return NOTHING_IN_DOUBT


def basis_for(
    attempt: Attempt, question: Question, answer: Answer, promises: Promises
) -> str | None:
    """Return what covers one attempt: a fence, or finality and order; None if nothing does."""
    if not asked_under_its_key(attempt, question):
        return None
    if fence_is_above(attempt, question, promises):
        return FENCE
    if not end_was_stored_first(attempt, question):
        return None
    if owner_says_final(answer, promises):
        return FINAL_ANSWER
    if time_to_settle_has_passed(attempt, question, promises):
        return SETTLED_WITHIN
    return None


# --- the rules -----------------------------------------------------------------------------------


def attempts_in_doubt(history: History, question: Question) -> tuple[Attempt, ...]:  # noqa: ARG001
    """Every attempt now in the store that is neither refused nor already covered (T6)."""
    return history.uncovered


def view_is_partial(answer: Answer) -> bool:
    """A view that cannot show every effect proves nothing by not showing one (F11)."""
    return answer.partial


def asked_under_its_key(attempt: Attempt, question: Question) -> bool:
    """An answer speaks of the key that was asked about, and of no other."""
    return attempt.key == question.key


def fence_is_above(attempt: Attempt, question: Question, promises: Promises) -> bool:
    """A token strictly greater than the attempt's stops it; its own token stops nothing (T1).

    Of the owner's own lease it is not known which token a forgotten dispatch carries.
    """
    if attempt.worker == FORGOTTEN and promises.fences is Fences.BY_LEASE:
        return False
    return (
        promises.fences.stop_older_sends
        and question.fence is not None
        and question.fence > attempt.token
    )


def end_was_stored_first(attempt: Attempt, question: Question) -> bool:
    """The attempt's end was stored before the question began, by the store's order (T13)."""
    return attempt.ended_n is not None and attempt.ended_n <= question.asked_after


def owner_says_final(answer: Answer, promises: Promises) -> bool:
    """The owner said so itself, and promised to mean it; a user's look-up alone cannot."""
    return answer.says_final and promises.final_by_answer


def time_to_settle_has_passed(attempt: Attempt, question: Question, promises: Promises) -> bool:
    """The question began more than T after the end, on the asker's monotonic clock (T8, T10)."""
    known_s = question.end_known_s.get(attempt.number)
    return (
        promises.settles_within_s is not None
        and known_s is not None
        and known_s > promises.settles_within_s
    )


# --- deduplication -------------------------------------------------------------------------------

CLOCK_MARGIN_S = 1.0
"""Seconds by which two readings of a clock may disagree when a retention window is counted."""


def may_send_again(
    history: History, promises: Promises, now_us: int, ends_within_s: float | None
) -> bool:
    """Whether the same key may be sent again without an answer, because the owner deduplicates.

    With no limit of retention, always. With one, only if everything that can still delay the new
    request lies inside the window, counted from the first unknown dispatch; both bounds must be
    named and cover the resender too, who may freeze (T3). When a forgotten dispatch was made is not
    known, so it is inside no window.
    """
    in_doubt = history.uncovered
    if not promises.deduplicates or not in_doubt:
        return False
    if len({attempt.key for attempt in in_doubt}) != 1:
        return False
    if promises.key_retention_s is None:
        return True
    if any(attempt.worker == FORGOTTEN for attempt in in_doubt):
        return False
    # A clock that was set back makes nothing younger than the last stamp in the store.
    latest_us = max(now_us, history.last_at_us)
    return inside_retention(in_doubt, promises, latest_us, ends_within_s)


def inside_retention(
    in_doubt: tuple[Attempt, ...], promises: Promises, now_us: int, ends_within_s: float | None
) -> bool:
    """Whether the owner cannot have forgotten the key before the new request lands (T3).

    A call that nothing ends at its deadline can land at any time, so it has no place in a window.
    """
    if (
        promises.key_retention_s is None
        or promises.sender_pause_max_s is None
        or promises.settles_within_s is None
        or ends_within_s is None
    ):
        return False
    first_us = min(attempt.dispatched_at_us for attempt in in_doubt)
    latest_s = (
        (now_us - first_us) / 1_000_000
        + promises.sender_pause_max_s
        + ends_within_s
        + CLOCK_MARGIN_S
        + promises.settles_within_s
    )
    return latest_s < promises.key_retention_s
