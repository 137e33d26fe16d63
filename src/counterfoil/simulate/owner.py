"""The owner that a search plays: as hostile as its promises let it be, and never more.

Everything here knows the ledger and nothing of our rules. Where a promise leaves a choice, each
choice is another way on.
"""

from __future__ import annotations

from counterfoil.operation.promises import Fences
from counterfoil.operation.replies import Answer, Result
from counterfoil.simulate.world import (
    PAUSE_S,
    RETENTION_S,
    SETTLES_S,
    TICK_S,
    CallIs,
    Ledger,
    Owner,
    Place,
    Request,
)


def may_be_written(owner: Owner, request: Request, t: int) -> bool:
    """Whether the first byte may still go out: a promised bound on our own pauses is kept."""
    if request.place is not Place.NOT_WRITTEN or request.call not in (
        CallIs.RUNNING,
        CallIs.OVERDUE,
    ):
        return False
    return in_pause(owner, request, t)


def in_pause(owner: Owner, request: Request, t: int) -> bool:
    """Whether the sender's longest pause, where one is promised, is not over yet."""
    bounded = owner.promises.sender_pause_max_s is not None
    return not bounded or (t - request.dispatched_t) * TICK_S <= PAUSE_S


def may_land(owner: Owner, request: Request, t: int) -> bool:
    """Whether a request in flight can still reach the owner.

    Without a promise it can at any time. With one, a call that has ended commits within
    ``settles_within`` of its end; where our pauses are bounded too, a call is over in the tick in
    which it was written.
    """
    if request.place is not Place.IN_FLIGHT:
        return False
    promises = owner.promises
    if promises.settles_within_s is None:
        return True
    if request.call is CallIs.ENDED and (t - request.ended_t) * TICK_S > SETTLES_S:
        return False
    bounded = promises.sender_pause_max_s is not None
    return not bounded or (t - request.written_t) * TICK_S <= SETTLES_S


def land(
    owner: Owner, ledger: Ledger, key: str, token: int, t: int, *, refuse: bool
) -> tuple[Ledger, Place]:
    """Let a request in: return the ledger after it and what became of the request."""
    promises = owner.promises
    if is_fenced(owner, ledger, token):
        return ledger, Place.TOKEN_REFUSED
    if promises.fences is Fences.ON_SEND:
        ledger = ledger._replace(bar=max(ledger.bar, token))
    if key in ledger.spent:
        return ledger, Place.REFUSED
    if any(key == remembered for remembered, _ in ledger.remembered):
        return ledger, Place.CONFIRMED
    if refuse:
        if promises.replays_refusals:
            ledger = ledger._replace(spent=(*ledger.spent, key))
        return ledger, Place.REFUSED
    remembered = ledger.remembered
    if promises.deduplicates:
        remembered = (*remembered, (key, t if promises.key_retention_s is not None else 0))
    return ledger._replace(effects=(*ledger.effects, key), remembered=remembered), Place.CONFIRMED


def is_fenced(owner: Owner, ledger: Ledger, token: int) -> bool:
    """Whether the owner refuses this token. A token equal to the bar is let in."""
    match owner.promises.fences:
        case Fences.NO:
            return False
        case Fences.BY_LEASE:
            return token < ledger.lease
        case _:
            return token < ledger.bar


def would_commit(owner: Owner, ledger: Ledger, key: str, token: int) -> bool:
    """Whether a request that lands now could make one more effect."""
    after, _ = land(owner, ledger, key, token, 0, refuse=False)
    return len(after.effects) > len(ledger.effects)


def can_forget(owner: Owner, ledger: Ledger, t: int) -> bool:
    """Whether some key has been kept for as long as was promised."""
    if owner.promises.key_retention_s is None or not owner.promises.deduplicates:
        return False
    return any((t - since) * TICK_S >= RETENTION_S for _, since in ledger.remembered)


def forget(ledger: Ledger, t: int) -> Ledger:
    """Forget every key that was kept long enough; the effects stay."""
    kept = tuple(
        (key, since) for key, since in ledger.remembered if (t - since) * TICK_S < RETENTION_S
    )
    return ledger._replace(remembered=kept)


def answers(owner: Owner, ledger: Ledger, key: str) -> tuple[Answer, ...]:
    """Return what the owner may say of a key now.

    Where its answer is final by promise, a final absent means that nothing sent before it can land
    after it: see ``cut_off``.
    """
    final = owner.promises.final_by_answer
    found: list[Answer] = []
    if key in ledger.effects:
        place = ledger.effects.index(key) + 1
        found.append(Answer(Result.PRESENT, effect_id=f"e{place}"))
    else:
        found.append(Answer(Result.ABSENT, says_final=owner.claims_final))
        if final:
            found.append(Answer(Result.ABSENT, says_final=True))
    if owner.partial_views:
        found.append(Answer(Result.ABSENT, says_final=final or owner.claims_final, partial=True))
    return tuple(found)


def cuts_off(owner: Owner, answer: Answer) -> bool:
    """Whether this answer is a final absent that the owner means."""
    return (
        owner.promises.final_by_answer
        and answer.result is Result.ABSENT
        and answer.says_final
        and not answer.partial
    )
