"""The one decision: what may be done next with an operation. Pure, and the only place that decides.

The shell does I/O and appends what it saw. The reader's checks are written apart from this and
share no code with it beyond the record's types (coordinator, "The one decision").
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from counterfoil.operation import belief
from counterfoil.operation.identity import key_after_refusal
from counterfoil.operation.replies import Code, Reason, Status
from counterfoil.operation.takeover import Standing, last_lease, standing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from counterfoil.operation.history import Attempt, History
    from counterfoil.operation.promises import Promises


class Policy(NamedTuple):
    """How far to go for one operation. ``attempts_max`` counts the first attempt too.

    ``deadline_s`` is how long a call is waited for, ``ends_within_s`` how long it can last at all:
    None where nothing ends it.
    """

    attempts_max: int = 3
    can_ask: bool = True
    can_send: bool = True
    deadline_s: float | None = None
    ends_within_s: float | None = None
    ask_delays_s: tuple[float, ...] = (0.0, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 15.0, 60.0, 300.0)
    resend_delay_s: float = 0.1


class Moment(NamedTuple):
    """Who decides, and when. ``monotonic_s`` counts sleep and never goes back.

    ``end_known_at_s`` maps an attempt to the monotonic time at which this process first read its
    end in the store; ``questions`` and ``last_question_at_s`` say how often and when it asked.
    """

    worker: str
    now_us: int
    monotonic_s: float
    end_known_at_s: Mapping[int, float] = MappingProxyType({})
    questions: int = 0
    last_question_at_s: float | None = None


class Dispatch(NamedTuple):
    """Send: one more attempt, under this key; ``basis`` says what licenses it."""

    attempt: int
    key: str
    basis: str
    redelivery: bool = False


class Ask(NamedTuple):
    """Ask the owner about this key; ``fence`` says that a new token must be in force first."""

    key: str
    fence: bool


class Wait(NamedTuple):
    """Nothing may be done before ``until_s`` (monotonic); ``reason`` is why it is not known yet."""

    until_s: float
    reason: Reason


class Settle(NamedTuple):
    """The observations support this outcome."""

    outcome: Status
    reason: Reason
    cost: str | None = None


class HandOver(NamedTuple):
    """Nothing that this worker may do can settle it: a person, or another worker, has to."""

    reason: Reason


class Done(NamedTuple):
    """It is settled already, or stands still on purpose."""

    outcome: Status
    reason: Reason


Step = Dispatch | Ask | Wait | Settle | HandOver | Done

FIRST = "first_attempt"
NOT_SENT_BEFORE = "nothing_was_sent"
DEDUPLICATED = "deduplicated"
REFUSED_BEFORE = "refused_and_reopened"
FORGOTTEN_BEFORE = "nothing_was_forgotten"


def next_step(history: History, promises: Promises, policy: Policy, now: Moment) -> Step:
    """Return the one thing that may be done next.

    ``promises`` are the weaker of those stored and those of today. The order of the questions is
    the rule: what is known settles before anything is sent.
    """
    if history.disputed is not None:
        return Done(Status.UNKNOWN, history.disputed)
    if history.closed is not None:
        text = f"{history.closed.by} closed it without the owner's answer"
        return Done(Status.UNKNOWN, Reason(Code.CLOSED_BY_PERSON, text))
    if history.settled is not None:
        settled = history.settled
        return Done(settled.outcome, Reason(settled.code, settled.text))
    known = known_effect(history)
    if known is not None:
        return known
    if history.uncovered:
        return resolve(history, promises, policy, now)
    return proceed(history, promises, policy, now)


def known_effect(history: History) -> Settle | None:
    """An effect that the owner confirmed, or was found to hold, settles at once."""
    confirmed = history.confirmed
    if confirmed is not None and confirmed.reply is not None:
        reason = Reason(Code.CONFIRMED, f"the owner confirmed attempt {confirmed.number}")
        return Settle(Status.COMMITTED, reason, confirmed.reply.cost)
    found = history.found
    if found is not None:
        text = "the owner was asked and holds the effect"
        return Settle(Status.COMMITTED, Reason(Code.FOUND_AT_OWNER, text), found.cost)
    return None


# --- nothing is in doubt -------------------------------------------------------------------------


def proceed(history: History, promises: Promises, policy: Policy, now: Moment) -> Step:
    """No attempt can have an effect any more, or there is none: send, or settle as not run."""
    since = attempts_since_reopened(history)
    refused = next((a for a in since if a.refused), None)
    if refused is not None and refused.reply is not None:
        said = f": {refused.reply.detail}" if refused.reply.detail else ""
        reason = Reason(Code.REFUSED, f"the owner refused attempt {refused.number}{said}")
        return Settle(Status.NOT_RUN, reason, refused.reply.cost)
    if len(since) >= policy.attempts_max:
        return Settle(Status.NOT_RUN, why_not_run(since[-1], len(since)))
    if not policy.can_send:
        text = "its arguments were not kept here, so it cannot be sent again; perform it anew"
        return HandOver(Reason(Code.ARGUMENTS_NOT_KEPT, text))
    blocked = may_not_act(history, now)
    if blocked is not None:
        return blocked
    if not history.attempts and not promises.knows_keys and policy.can_ask:
        baseline = ask_for_baseline(history, policy, now)
        if baseline is not None:
            return baseline
    if since and since[-1].covered_n is None:  # nothing was sent: do not hammer a closed door
        due = now.end_known_at_s.get(since[-1].number, now.monotonic_s)
        due += policy.resend_delay_s * 2 ** (len(since) - 1)
        if now.monotonic_s < due:
            return Wait(due, why_not_run(since[-1], len(since)))
    return Dispatch(len(history.attempts) + 1, key_to_send(history, promises), basis(history))


def ask_for_baseline(history: History, policy: Policy, now: Moment) -> Ask | Wait | None:
    """Before a first send to an owner that knows no keys: what is there already is no answer."""
    if history.answers:
        return None
    if now.last_question_at_s is None:
        return Ask(history.opened.key, fence=False)
    delays = policy.ask_delays_s
    due = now.last_question_at_s + delays[min(now.questions, len(delays) - 1)]
    if now.monotonic_s < due:
        text = "the owner must be asked what it holds before the first send"
        return Wait(due, Reason(Code.AWAITING_ANSWER, text))
    return Ask(history.opened.key, fence=False)


def basis(history: History) -> str:
    """Say what licenses sending when nothing is in doubt."""
    if not history.attempts:
        return FIRST
    if not history.sent:
        return FORGOTTEN_BEFORE
    since = attempts_since_reopened(history)
    if not since:
        return REFUSED_BEFORE
    return belief.NOTHING_IN_DOUBT if since[-1].covered_n is not None else NOT_SENT_BEFORE


def attempts_since_reopened(history: History) -> tuple[Attempt, ...]:
    """The attempts sent from here that count now: all, or those after a retry was asked for."""
    if history.reopened_n is None:
        return history.sent
    return tuple(a for a in history.sent if a.dispatched_n > history.reopened_n)


def key_to_send(history: History, promises: Promises) -> str:
    """The operation's key; a later one only where a recorded refusal has spent it."""
    refusals = sum(attempt.refused for attempt in history.attempts)
    if not promises.replays_refusals or history.reopened == 0 or refusals == 0:
        return history.opened.key
    return key_after_refusal(history.opened.key, refusals + 1)


def why_not_run(last: Attempt, attempts: int) -> Reason:
    """Say why it is known that no attempt had an effect."""
    if last.covered_n is not None:
        text = f"the owner was asked after {attempts} attempts and holds no effect"
        return Reason(Code.ABSENT_AT_OWNER, text)
    detail = last.reply.detail if last.reply is not None and last.reply.detail else "not sent"
    return Reason(Code.NOT_SENT, f"nothing was sent in {attempts} attempts: {detail}")


# --- something is in doubt -----------------------------------------------------------------------


def resolve(history: History, promises: Promises, policy: Policy, now: Moment) -> Step:
    """At least one attempt may still have an effect: ask, send again if that is safe, or wait."""
    blocked = may_not_act(history, now)
    if blocked is not None:
        return blocked
    in_doubt = history.uncovered
    asks_first = policy.can_ask and now.questions == 0
    if not asks_first:
        again = send_again(history, promises, policy, now)
        if again is not None:
            return again
    if not policy.can_ask:
        return HandOver(why_in_doubt(history, policy, now))
    due = next_question_at_s(history, promises, policy, now)
    if now.monotonic_s < due:
        return Wait(due, why_in_doubt(history, policy, now))
    return Ask(in_doubt[0].key, promises.fences.stop_older_sends)


def send_again(
    history: History, promises: Promises, policy: Policy, now: Moment
) -> Dispatch | Wait | None:
    """The same key again, where the owner deduplicates it and this process is not still sending."""
    in_doubt = history.uncovered
    if (
        not policy.can_send
        or running_here(history, now)
        or len(history.sent) >= policy.attempts_max
    ):
        return None
    if not belief.may_send_again(history, promises, now.now_us, policy.ends_within_s):
        return None
    known = [now.end_known_at_s.get(a.number, -math.inf) for a in in_doubt]  # inf: no end yet
    due = max(known) + policy.resend_delay_s * 2 ** (len(history.sent) - 1)
    if now.monotonic_s < due:
        return Wait(due, why_in_doubt(history, policy, now))
    return Dispatch(len(history.attempts) + 1, in_doubt[0].key, DEDUPLICATED, redelivery=True)


def next_question_at_s(history: History, promises: Promises, policy: Policy, now: Moment) -> float:
    """When to ask next: on a schedule that widens, and as soon as an answer could be final."""
    if now.last_question_at_s is None:
        return now.monotonic_s
    delays = policy.ask_delays_s
    due = now.last_question_at_s + delays[min(now.questions, len(delays) - 1)]
    if promises.settles_within_s is not None:
        for attempt in history.uncovered:
            known = now.end_known_at_s.get(attempt.number)
            if known is None:
                continue
            final_at = known + promises.settles_within_s + SETTLED_MARGIN_S
            if now.last_question_at_s < final_at:
                due = min(due, final_at)
    return due


SETTLED_MARGIN_S = 0.01
"""Seconds past `settles_within` before asking: belief wants strictly more than the promise."""


def may_not_act(history: History, now: Moment) -> Wait | HandOver | None:
    """A worker acts under the operation's lease, or not at all."""
    stand = standing(history, now.worker, now.now_us)
    if stand is Standing.EXCLUDED:
        text = "this worker was declared dead; start a new one"
        return HandOver(Reason(Code.WORKER_EXCLUDED, text))
    if stand is Standing.HELD:
        lease = last_lease(history)
        left_s = (lease.until_us - now.now_us) / 1_000_000 if lease is not None else 0.0
        text = "another worker holds its lease"
        return Wait(now.monotonic_s + left_s, Reason(Code.IN_FLIGHT, text))
    return None


def running_here(history: History, now: Moment) -> bool:
    """A call of this very worker has not returned: nothing is sent again before it does."""
    return any(a.worker == now.worker and a.ended_n is None for a in history.uncovered)


def why_in_doubt(history: History, policy: Policy, now: Moment) -> Reason:
    """Say why it is not known yet, and who can make it known."""
    if running_here(history, now):
        text = "its call has run past its deadline and has not returned; end it or wait for it"
        return Reason(Code.CALL_STILL_RUNNING, text)
    unended = [a for a in history.uncovered if a.ended_n is None and a.worker != now.worker]
    if unended:
        text = (
            f"worker {unended[0].worker} may still send attempt {unended[0].number}; "
            "end its process, or declare it dead with evidence"
        )
        return Reason(Code.SENDER_MAY_STILL_SEND, text)
    if not policy.can_ask:
        text = "the effect has no look-up, so only a person with evidence can settle it"
        return Reason(Code.OWNER_CANNOT_BE_ASKED, text)
    if history.answers and history.answers[-1].n > history.attempts[-1].dispatched_n:
        text = "the owner holds no effect yet, and its answer is not final"
        return Reason(Code.ABSENT_NOT_FINAL, text)
    return Reason(Code.AWAITING_ANSWER, "the owner was asked and has not answered")
