"""The rules taken out, one at a time: what they are for is shown by what happens without them.

Each deletion replaces one function of the protocol by what it would say if its rule had never been
written. A search under it must find a wrong moment; if it finds none, the rule is not needed, or
the search does not look far enough.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from counterfoil.operation import belief, next_step, protocol, takeover
from counterfoil.operation.identity import key_after_refusal
from counterfoil.operation.promises import Promises
from counterfoil.operation.replies import Code, Reason, Status
from counterfoil.operation.takeover import Standing
from counterfoil.simulate import around

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from counterfoil.operation.belief import Question
    from counterfoil.operation.commands import Command, Sent
    from counterfoil.operation.history import Attempt, History, Lease
    from counterfoil.operation.replies import Answer
    from counterfoil.simulate.space import Space
    from counterfoil.simulate.world import Page, Request, World


class Deletion(NamedTuple):
    """A rule taken out: the functions replaced, as (where, name, by what)."""

    name: str
    replaced: tuple[tuple[object, str, Callable[..., object]], ...]


@contextmanager
def without(*deletions: Deletion) -> Iterator[None]:
    """Take rules out for as long as the block runs."""
    before = [
        (place, name, getattr(place, name))
        for deletion in deletions
        for place, name, _ in deletion.replaced
    ]
    try:
        for deletion in deletions:
            for place, name, by in deletion.replaced:
                setattr(place, name, by)
        yield
    finally:
        for place, name, original in before:
            setattr(place, name, original)


# --- belief --------------------------------------------------------------------------------------


def _in_doubt_when_asked(history: History, question: Question) -> tuple[Attempt, ...]:
    return tuple(a for a in history.uncovered if a.dispatched_n <= question.asked_after)


def _fence_is_equal(attempt: Attempt, question: Question, promises: Promises) -> bool:
    fence = question.fence
    return promises.fences.stop_older_sends and fence is not None and fence >= attempt.token


def _says_final(answer: Answer, promises: Promises) -> bool:  # noqa: ARG001
    return answer.says_final


def _settles_some_time(*given: object) -> bool:
    promises = given[-1]
    assert isinstance(promises, Promises)
    return promises.settles_within_s is not None


def _settled_by_the_wall(attempt: Attempt, question: Question, promises: Promises) -> bool:
    ended_us, within_s = attempt.ended_at_us, promises.settles_within_s
    if ended_us is None or within_s is None:
        return False
    return (question.asked_at_us - ended_us) / 1_000_000 > within_s


def _any_in_doubt(history: History, *_: object) -> bool:
    return bool(history.uncovered)


def _yes(*_: object) -> bool:
    return True


def _no(*_: object) -> bool:
    return False


EVERY_ATTEMPT_NOW = Deletion(
    "attempts_in_doubt", ((belief, "attempts_in_doubt", _in_doubt_when_asked),)
)
VIEW_IS_PARTIAL = Deletion("view_is_partial", ((belief, "view_is_partial", _no),))
UNDER_ITS_KEY = Deletion("asked_under_its_key", ((belief, "asked_under_its_key", _yes),))
FENCE_STRICTLY = Deletion(
    "fence_is_above: or equal", ((belief, "fence_is_above", _fence_is_equal),)
)
FENCE_AT_ALL = Deletion("fence_is_above", ((belief, "fence_is_above", _yes),))
END_FIRST = Deletion("end_was_stored_first", ((belief, "end_was_stored_first", _yes),))
PROMISED_FINAL = Deletion("owner_says_final", ((belief, "owner_says_final", _says_final),))
FINAL_AT_ALL = Deletion("owner_says_final: at all", ((belief, "owner_says_final", _yes),))
TIME_TO_SETTLE = Deletion(
    "time_to_settle_has_passed", ((belief, "time_to_settle_has_passed", _settles_some_time),)
)
MONOTONIC_CLOCK = Deletion(
    "time_to_settle_has_passed: by the wall clock",
    ((belief, "time_to_settle_has_passed", _settled_by_the_wall),),
)
INSIDE_RETENTION = Deletion("inside_retention", ((belief, "inside_retention", _yes),))
MAY_SEND_AGAIN = Deletion("may_send_again", ((belief, "may_send_again", _any_in_doubt),))

# --- take-over -----------------------------------------------------------------------------------


def _nobody(history: History) -> Lease | None:  # noqa: ARG001
    return None


def _mine(history: History, worker: str, now_us: int) -> Standing:  # noqa: ARG001
    return Standing.MINE


LAST_LEASE = Deletion("last_lease", ((takeover, "last_lease", _nobody),))
HOLDER_IS_EXCLUDED = Deletion("holder_is_excluded", ((takeover, "holder_is_excluded", _yes),))
LEASE_IS_RUNNING = Deletion("lease_is_running", ((takeover, "lease_is_running", _no),))
STANDING = Deletion("standing", ((next_step, "standing", _mine), (protocol, "standing", _mine)))

# --- the one decision and the protocol -----------------------------------------------------------

_known_effect = next_step.known_effect


def _refused_is_known(history: History) -> next_step.Settle | None:
    if any(attempt.refused for attempt in history.attempts):
        return next_step.Settle(Status.NOT_RUN, Reason(Code.REFUSED, "the owner refused"))
    return _known_effect(history)


def _keeps_its_lease(*_: object) -> Generator[Command, Sent, bool]:
    yield from ()
    return True


def _excluded_is_final(
    attempt: Attempt, question: Question, answer: Answer, promises: Promises
) -> str | None:
    found = _basis_for(attempt, question, answer, promises)
    return found or ("its sender is excluded" if attempt.ended_n is not None else None)


_basis_for = belief.basis_for


def _when_relayed(space: Space, world: World, page: Page) -> Question:
    now = page._replace(
        asked_after=len(space.streams[world.stream].events),
        asked_t=world.t,
        known_s=around.ends_known(space, world),
    )
    return _question_of(space, world, now)


_question_of = around.question_of


def _adopted(world: World, request: Request) -> int:  # noqa: ARG001
    return world.ledger.lease


def _next_key(history: History, promises: Promises) -> str:  # noqa: ARG001
    return key_after_refusal(history.opened.key, history.reopened + 1)


def _without_the_pause(
    in_doubt: tuple[Attempt, ...], promises: Promises, now_us: int, ends_within_s: float | None
) -> bool:
    return _inside_retention(
        in_doubt, replace(promises, sender_pause_max_s=0.0), now_us, ends_within_s
    )


_inside_retention = belief.inside_retention

REFUSAL_ALONE = Deletion(
    "a refusal settles only alone", ((next_step, "known_effect", _refused_is_known),)
)
UNKNOWN_COMES_FIRST = Deletion(
    "an unknown attempt comes before a refusal", ((next_step, "resolve", next_step.proceed),)
)
NEW_TOKEN = Deletion(
    "a new token before asking",
    ((protocol._Carrier, "hold_lease", _keeps_its_lease),),  # noqa: SLF001
)
EXCLUSION_IS_NO_FINALITY = Deletion(
    "an exclusion is no finality", ((belief, "basis_for", _excluded_is_final),)
)
RELAY_BEGINS_AT_OPENING = Deletion(
    "a relay begins when the page was opened", ((around, "question_of", _when_relayed),)
)
TOKEN_IS_NOT_ADOPTED = Deletion(
    "a token is compared and never adopted", ((around, "token_written", _adopted),)
)
KEY_UNTIL_REFUSED = Deletion(
    "another key only after a recorded refusal", ((next_step, "key_to_send", _next_key),)
)
PAUSE_OF_THE_RESENDER = Deletion(
    "inside_retention: without the pause", ((belief, "inside_retention", _without_the_pause),)
)
LOOK_AT_THE_WINDOW = Deletion(
    "a retention window is looked at again before the first byte",
    ((protocol._Carrier, "may_send_again", lambda *_: True),),  # noqa: SLF001
)

DELETIONS = (
    EVERY_ATTEMPT_NOW,
    VIEW_IS_PARTIAL,
    UNDER_ITS_KEY,
    FENCE_STRICTLY,
    FENCE_AT_ALL,
    END_FIRST,
    PROMISED_FINAL,
    FINAL_AT_ALL,
    TIME_TO_SETTLE,
    MONOTONIC_CLOCK,
    INSIDE_RETENTION,
    MAY_SEND_AGAIN,
    LAST_LEASE,
    HOLDER_IS_EXCLUDED,
    LEASE_IS_RUNNING,
    STANDING,
    REFUSAL_ALONE,
    UNKNOWN_COMES_FIRST,
    NEW_TOKEN,
    EXCLUSION_IS_NO_FINALITY,
    RELAY_BEGINS_AT_OPENING,
    TOKEN_IS_NOT_ADOPTED,
    KEY_UNTIL_REFUSED,
    PAUSE_OF_THE_RESENDER,
    LOOK_AT_THE_WINDOW,
)
"""Every rule that can be taken out by name."""
