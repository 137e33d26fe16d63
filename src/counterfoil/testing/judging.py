"""From what was said beside what was true, to findings. It calls nothing and asks nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from counterfoil.operation import belief
from counterfoil.operation.replies import Answer, Code, Reply, ReplyKind, Result, Status
from counterfoil.owners.callables import OUT_OF_TRANSPORT
from counterfoil.testing.report import Finding, Subject
from counterfoil.testing.sandbox import Fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from counterfoil.coordinator.outcome import Outcome
    from counterfoil.operation.promises import Promises
    from counterfoil.operation.replies import NoAnswer
    from counterfoil.testing.recorder import Asked, Called
    from counterfoil.testing.sandbox import Request

TIMING_MARGIN_S = 0.02
"""Seconds past `settles_within` before a landing counts as late: polling is not exact."""

DEDUPLICATED = "deduplicated"

"""How a reply's detail begins where a NoEffect came out of a transport error (owners.callables)."""

DONE = {
    Fault.NO_REPLY: "The owner got the call, and the caller heard nothing.",
    Fault.CUT_REPLY: "The owner got the call, and the connection broke before the reply.",
    Fault.LATE_COMMIT: "The connection broke at once, and the call reached the owner after it.",
    Fault.STALE_READ: (
        "The owner got the call, the reply was lost, and look-ups were shown what was there before."
    ),
    Fault.SENT_TWICE: "The same request reached the owner twice.",
}

BY_BASIS = {
    DEDUPLICATED: Subject.DEDUPLICATES,
    belief.SETTLED_WITHIN: Subject.SETTLES_WITHIN,
    belief.FINAL_ANSWER: Subject.FINAL_BY,
    belief.FENCE: Subject.FENCES,
}

SEND_KEY = "Send attempt.key as it is, under the owner's name for an idempotency key."
TAKE_BACK = {
    Subject.DEDUPLICATES: "Take deduplicates=True back, or make the owner keep keys.",
    Subject.SETTLES_WITHIN: "Promise a longer settles_within, or none.",
    Subject.FINAL_BY: (
        "Say final=True only where the owner's own answer says that nothing sent before can still "
        "commit; otherwise return cf.absent()."
    ),
    Subject.FENCES: (
        "Send attempt.token with every call and every question, and let the owner refuse each "
        'token below the newest; or say fences="no".'
    ),
}


@dataclass(frozen=True)
class Seen:
    """One operation under one fault: what was said, and how many effects there are at last.

    ``bases`` are what licensed a resend or a settlement, ``landed_after_s`` how long after the call
    ended (or reached the owner) its effect was there; ``lag_s`` and ``plain_writes`` were measured
    without a fault.
    """

    fault: Fault
    calls: Sequence[Called]
    asks: Sequence[Asked]
    outcome: Outcome[object]
    bases: frozenset[str]
    count: int
    landed_after_s: float | None
    lag_s: float
    plain_writes: int
    promises: Promises

    @property
    def done(self) -> str:
        """What was done, as a sentence."""
        return DONE[self.fault]


def judge(seen: Seen) -> list[Finding]:
    """Return what does not hold. A count that is wrong is reported where nothing explains it."""
    found = [*about_reply(seen), *about_answers(seen), *about_landing(seen)]
    return found or [*about_count(seen), *about_outcome(seen)]


# --- under a fault -------------------------------------------------------------------------------


def about_reply(seen: Seen) -> Iterator[Finding]:
    """What the call made of a lost reply."""
    call = seen.calls[0]
    reply = call.reply
    if seen.fault is Fault.SENT_TWICE:
        yield from about_second_reply(seen.done, reply)
        return
    if reply.kind is ReplyKind.CONFIRMED:
        yield Finding(
            Subject.CALL,
            seen.done,
            "The effect returned a value all the same, which says that the owner confirmed it.",
            "Let time-outs and connection errors out of the effect; return only what a reply said.",
        )
    elif reply.kind is ReplyKind.NO_EFFECT or (reply.detail or "").startswith(OUT_OF_TRANSPORT):
        truth = f"while the owner holds {effects(seen.count)}"
        yield Finding(
            Subject.CALL,
            seen.done,
            f"The effect raised cf.NoEffect ({reply.detail}) {truth}.",
            "Raise cf.NoEffect only for a refusal that the owner documents; let time-outs and "
            "connection errors out of the effect as they are.",
        )
    if call.writes > seen.plain_writes:
        yield Finding(
            Subject.CALL,
            seen.done,
            f"The effect sent {call.writes} requests in one call, and {seen.plain_writes} where "
            "the reply came.",
            "Turn off retries in the client: sending again is decided outside the effect, "
            "after the owner was asked.",
        )


def about_answers(seen: Seen) -> Iterator[Finding]:
    """What the look-up said beside what the owner held."""
    for ask in seen.asks:
        answer = ask.answer
        if not isinstance(answer, Answer):
            continue
        if answer.result is Result.PRESENT:
            if ask.after == 0:
                yield said_present(seen.done)
            continue
        later = len(seen.calls) - ask.calls
        was_wrong = (ask.stale and ask.before > 0) or seen.count > ask.after + later
        if answer.says_final and not answer.partial and was_wrong:
            yield said_final(seen)
        if ask.before > 0 and not (ask.stale or answer.partial or seen.lag_s):
            yield said_absent(seen.done, seen.calls[0], ask)


def said_final(seen: Seen) -> Finding:
    """A final absent answer, and then an effect of a call from before it."""
    promised = "" if seen.promises.final_by_answer else ', though no final_by="answer" is promised'
    return Finding(
        Subject.FINAL_BY,
        seen.done,
        f"The look-up said cf.absent(final=True){promised}, and the call still took effect.",
        TAKE_BACK[Subject.FINAL_BY],
    )


def about_landing(seen: Seen) -> Iterator[Finding]:
    """Whether the effect was there within the time that the owner promises."""
    promised_s, landed_s = seen.promises.settles_within_s, seen.landed_after_s
    if promised_s is None or landed_s is None or landed_s <= promised_s + TIMING_MARGIN_S:
        return
    yield Finding(
        Subject.SETTLES_WITHIN,
        seen.done,
        f"Its effect was there {milliseconds(landed_s)} after that, and the owner promises "
        f"settles_within {milliseconds(promised_s)}.",
        TAKE_BACK[Subject.SETTLES_WITHIN],
    )


def about_count(seen: Seen) -> Iterator[Finding]:
    """More effects than one: the promise that licensed the second is the wrong one."""
    if seen.count <= 1:
        return
    licensed = [subject for basis, subject in BY_BASIS.items() if basis in seen.bases]
    if seen.fault is Fault.SENT_TWICE:
        licensed = [Subject.DEDUPLICATES]
    if not licensed:
        yield Finding(
            Subject.CALL,
            seen.done,
            f"The owner holds {effects(seen.count)} after {len(seen.calls)} calls.",
            "Let the effect make one request, once, with retries turned off in the client.",
        )
        return
    if seen.fault is not Fault.SENT_TWICE and Subject.DEDUPLICATES in licensed:
        unkeyed = sent_without_key(seen.done, seen.calls[0], seen.count)
        if unkeyed is not None:
            yield unkeyed
            return
    yield Finding(
        licensed[0],
        seen.done,
        f"On the strength of this promise the operation went on, and the owner holds "
        f"{effects(seen.count)}.",
        TAKE_BACK[licensed[0]],
    )


def about_outcome(seen: Seen) -> Iterator[Finding]:
    """An outcome that the owner's effects do not bear out."""
    outcome = seen.outcome
    if outcome.why.code in (Code.EFFECT_CLAIMED, Code.DISPUTED):
        yield Finding(
            Subject.LOOK_UP,
            seen.done,
            f"It ended as {outcome.why}.",
            "Let effect_id be the owner's own name of this one effect, found by attempt.key.",
        )
    elif outcome.status is Status.COMMITTED and seen.count < 1:
        yield without_effect(seen.done)
    elif outcome.status is Status.NOT_RUN and seen.count > 0:
        licensed = [subject for basis, subject in BY_BASIS.items() if basis in seen.bases]
        yield Finding(
            licensed[0] if licensed else Subject.LOOK_UP,
            seen.done,
            f"It ended as not_run, and the owner holds {effects(seen.count)}.",
            TAKE_BACK[licensed[0]] if licensed else SEND_KEY,
        )


# --- without a fault -----------------------------------------------------------------------------


def about_plain_call(call: Called, count: int) -> Iterator[Finding]:
    """What one call with nothing in its way came to."""
    done, reply = "The effect was called once, with nothing in its way.", call.reply
    nothing_passed = call.requests is not None and call.writes == 0
    if reply.kind not in (ReplyKind.CONFIRMED, ReplyKind.NO_EFFECT):
        passed = " No request of it passed through the sandbox." if nothing_passed else ""
        yield Finding(
            Subject.CALL,
            done,
            f"It shows nothing: {reply.detail}.{passed}",
            "Return the value that the owner's reply says, or cf.applied(value), when the owner "
            "confirmed; raise cf.NoEffect when it refused.",
        )
    elif nothing_passed:
        yield Finding(
            Subject.SET_UP,
            done,
            "No request of a call passed through the sandbox.",
            "Point the effect's client at the sandbox (sandbox.url), or say with writes=... which "
            "requests belong to a call.",
        )
    elif reply.kind is ReplyKind.NO_EFFECT:
        yield Finding(
            Subject.SET_UP,
            done,
            f"The owner refused it ({reply.detail}).",
            "Let sandbox.arguments() return what the owner accepts.",
        )
    elif count < 1:
        yield without_effect(done)
    elif count > 1:
        yield Finding(
            Subject.CALL,
            done,
            f"The owner holds {effects(count)}.",
            "Let one call make one effect; declare an effect of its own for each change.",
        )


def nothing_sent(why: str) -> Finding:
    """The book did not come to call the effect at all."""
    return Finding(
        Subject.SET_UP,
        "One operation was performed, with nothing in its way.",
        f"Nothing was sent ({why}).",
        "Let the effect's read_token return the token of a lease that stays with the check.",
    )


def about_unsent(ask: Asked, before: int, after: int) -> Iterator[Finding]:
    """What a look-up says of an operation that was never sent."""
    done = "The look-up was asked about an operation that was never sent."
    if after > before:
        yield Finding(
            Subject.LOOK_UP,
            done,
            "The question itself made an effect.",
            "Let the look-up only read; find or create is a call, not a question.",
        )
    elif isinstance(ask.answer, Answer) and ask.answer.result is Result.PRESENT:
        yield said_present(done)
    elif not isinstance(ask.answer, Answer):
        yield no_answer(done, ask.answer)


def no_answer(done: str, answer: NoAnswer) -> Finding:
    """A look-up that cannot tell though nothing is in its way."""
    return Finding(
        Subject.LOOK_UP,
        done,
        f"It gave no answer: {answer.detail}.",
        "Return cf.present(...) for what is found and cf.absent() for the owner's documented "
        '"not found"; let only failures out.',
    )


def said_present(done: str) -> Finding:
    """Present, and there is nothing."""
    return Finding(
        Subject.LOOK_UP,
        done,
        "The look-up said present, and the owner holds no effect of it.",
        "Search by attempt.key, and return cf.present(...) only for what came back and is done.",
    )


def said_absent(done: str, call: Called, ask: Asked) -> Finding:
    """Absent, and there it is; what passed through the transport says why."""
    key = ask.attempt.key
    searched = [request for request in ask.requests or () if request.mentions(key)]
    seen = "The look-up said absent, and the owner holds the effect."
    if call.requests and not any(request.mentions(key) for request in call.requests):
        return Finding(
            Subject.CALL,
            done,
            f"{seen} The call sent {lines(call.requests)}, without attempt.key in it.",
            SEND_KEY,
        )
    if ask.requests == ():
        why = " It asked nobody."
    elif ask.requests and not searched:
        why = f" It asked {lines(ask.requests)}, where attempt.key is not named."
    elif searched:
        why = f" It asked {lines(searched)} and did not read the effect out of the answer."
    else:
        why = ""
    return Finding(
        Subject.LOOK_UP,
        done,
        seen + why,
        "Search the owner's durable records by attempt.key, the key that the call sent.",
    )


def about_lag(lag_s: float, promises: Promises) -> Iterator[Finding]:
    """Reads that show an effect later than the owner promises to have settled."""
    promised_s = promises.settles_within_s
    if promised_s is None or lag_s <= promised_s + TIMING_MARGIN_S:
        return
    yield Finding(
        Subject.SETTLES_WITHIN,
        "The effect was called once, and the owner held its effect.",
        f"The look-up showed it only {milliseconds(lag_s)} later, and the owner promises "
        f"settles_within {milliseconds(promised_s)}.",
        "Ask where reads are not behind, or promise a settles_within that covers the delay.",
    )


def about_crowd(answer: Answer | NoAnswer, crowd: int) -> Iterator[Finding]:
    """What a look-up says of an old effect among many."""
    done = f"After the effect the owner was given {crowd} others."
    if not isinstance(answer, Answer):
        yield no_answer(done, answer)
    elif answer.result is Result.ABSENT and not answer.partial:
        yield Finding(
            Subject.LOOK_UP,
            done,
            "The look-up said absent, and the owner still holds the effect: the list that it reads "
            "does not reach that far.",
            "Ask for this one key, or read all pages; where neither can be done, return "
            "cf.absent(partial=True).",
        )


def about_two_calls(first: Called, second: Called, count: int) -> Iterator[Finding]:
    """Whether the same attempt, called twice, made one effect and was confirmed twice."""
    done = "The same attempt was called twice, as a resend would be."
    if count <= 1:
        yield from about_second_reply(done, second.reply)
        return
    unkeyed = sent_without_key(done, first, count)
    if unkeyed is not None:
        yield unkeyed
        return
    yield Finding(
        Subject.DEDUPLICATES,
        done,
        f"The owner holds {effects(count)}.",
        TAKE_BACK[Subject.DEDUPLICATES],
    )


def about_second_reply(done: str, reply: Reply) -> Iterator[Finding]:
    """What a deduplicating owner says the second time must be what it said the first."""
    if reply.kind is ReplyKind.CONFIRMED:
        return
    yield Finding(
        Subject.CALL,
        done,
        f"The second reply came out as {reply.kind} ({reply.detail}), though the effect is there.",
        "Read the owner's reply to a key that it knows as the first effect's own value, not as a "
        "refusal.",
    )


def sent_without_key(done: str, call: Called, count: int) -> Finding | None:
    """Two effects of calls that did not carry the key: no owner can tell that they are one."""
    if not call.requests or any(request.mentions(call.attempt.key) for request in call.requests):
        return None
    return Finding(
        Subject.CALL,
        done,
        f"The owner holds {effects(count)}: the call sent {lines(call.requests)}, without "
        "attempt.key in it.",
        SEND_KEY,
    )


def without_effect(done: str) -> Finding:
    """Committed, and nothing is there."""
    return Finding(
        Subject.CALL,
        done,
        "It counts as committed, and the owner holds no effect.",
        "Return from the effect only when the owner says that it is done; if it is, let "
        "sandbox.effects() count it.",
    )


def unknown_note(seen: Seen) -> str | None:
    """Say that an operation stayed unknown, which is safe and needs a person."""
    if seen.outcome.status is not Status.UNKNOWN:
        return None
    return f"{seen.fault}: the operation stayed unknown ({seen.outcome.why})"


def slow_note(seen: Seen, deadline_s: float | None, patient_s: float) -> str | None:
    """Say that a call waited long for a reply that did not come."""
    took_s = seen.calls[0].ended_s - seen.calls[0].began_s
    if took_s <= (deadline_s or patient_s):
        return None
    return (
        f"{seen.fault}: the call took {took_s:.1f} s to return; give its client a time-out, "
        "shorter than the effect's deadline"
    )


# --- words ---------------------------------------------------------------------------------------


def effects(count: int) -> str:
    """Return a count of effects in words for people."""
    return f"{count or 'no'} effect{'' if count == 1 else 's'}"


def milliseconds(duration_s: float) -> str:
    """Return a duration for people."""
    return f"{duration_s * 1000:.0f} ms" if duration_s < 10 else f"{duration_s:.0f} s"


def lines(requests: Sequence[Request]) -> str:
    """Name requests for people, three at most."""
    named = ", ".join(request.line for request in requests[:3])
    return named + (" and more" if len(requests) > 3 else "")
