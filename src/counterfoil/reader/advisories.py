"""What the ten checks let pass and is dangerous still (uncertain-effect, "Advisories").

The decision is the contract's; an advisory never changes it. Nine codes, one function each, in the
order of the page. Where the page leaves an edge open, the function's docstring fixes it.
"""

from __future__ import annotations

from counterfoil.reader.supported_outcome import COMMITTED, NOT_RUN, Findings, last_absent
from counterfoil.record.instants import more_than_apart
from counterfoil.record.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from counterfoil.record.instants import Instant
    from counterfoil.record.model import Attempt, Lease, Record

MEMBERS_MAX = 16
"""Pointers that one advisory names; its detail gives the count where there are more."""


class Advisory(Value):
    """A danger by its code, a sentence, and JSON Pointers to the members it is about."""

    code: str
    detail: str
    members: tuple[str, ...]


def advise(found: Findings) -> tuple[Advisory, ...]:
    """Return the advisories of a record, in the order of the page; at most one of each code."""
    return tuple([advisory for check in ADVISORIES if (advisory := check(found)) is not None])


# --- one function a code -------------------------------------------------------------------------


def resend_after_committed(found: Findings) -> Advisory | None:
    """An attempt after a confirmed one, or after a present answer, that is not deduplicated.

    After an answer is at its instant or later, as in check 6. The retention window of an effect
    that an answer found runs from the first dispatch under that key.
    """
    if found.confirmed and len(found.record.attempts) > 1:
        from counterfoil.reader.resends import Resends

        pair = Resends(found.record, ()).first_bare(found.confirmed)
        if pair is not None:
            earlier, later = (found.record.attempts[index] for index in pair)
            return Advisory(
                "resend_after_committed",
                f"attempt {later.number} follows attempt {earlier.number}, which was confirmed",
                (f"/attempts/{pair[1]}", f"/attempts/{pair[0]}"),
            )
    if found.present:
        place, index = _sent_after_present(found)
        if place is not None:
            number = found.record.attempts[place].number
            return Advisory(
                "resend_after_committed",
                f"attempt {number} follows an answer that found the effect",
                (f"/attempts/{place}", f"/reconciliations/{index}"),
            )
    return None


def absent_after_retention(found: Findings) -> Advisory | None:
    """A final absent answer of an owner that deduplicates and forgets keys, later than its window.

    The window runs from the first attempt under the answer's key that was confirmed or unknown.
    """
    record = found.record
    retention_s = record.effect_owner.key_retention_s
    if retention_s is None or not record.effect_owner.deduplicates_by_key or not found.absent:
        return None
    first = _first_dispatched(
        record.attempts[index] for index in (*found.unknown, *found.confirmed)
    )
    late = []
    for index in found.absent:
        answer = record.reconciliations[index]
        sent_at = first.get(answer.idempotency_key)
        if sent_at is not None and more_than_apart(sent_at, answer.at, retention_s):
            late.append(index)
    return _named(
        "absent_after_retention",
        "the owner answered absent when it may have forgotten the key",
        [f"/reconciliations/{index}" for index in late],
    )


def unknown_beside_confirmed(found: Findings) -> Advisory | None:
    """The outcome is committed, and another attempt is unknown, not covered and not deduplicated.

    One present answer accounts for the first uncovered attempt under its key that it can have seen;
    an attempt is deduplicated with a confirmed or so accounted one of the same key in the window.
    """
    record = found.record
    if found.outcome is not COMMITTED or not found.unknown:
        return None
    last = last_absent(record, found.absent)
    uncovered: dict[str, list[int]] = {}
    for index in found.unknown:
        attempt = record.attempts[index]
        answered_at = last.get(attempt.idempotency_key)
        if answered_at is None or answered_at <= attempt.dispatched_at:
            uncovered.setdefault(attempt.idempotency_key, []).append(index)
    alone = _unaccounted(found, uncovered) if uncovered else []
    return _named(
        "unknown_beside_confirmed",
        "the effect is committed, and this attempt may have made another",
        [f"/attempts/{index}" for index in sorted(alone)],
    )


def ledger_disagrees(found: Findings) -> Advisory | None:
    """The owner's ledger lists effects with ``not_run``, or none with ``committed``."""
    listed = len(found.record.owner_effects)
    if found.outcome is COMMITTED and not listed:
        detail = "the outcome is committed, and the owner's ledger lists no effect"
    elif found.outcome is NOT_RUN and listed:
        detail = f"the outcome is not_run, and the owner's ledger lists effects: {listed}"
    else:
        return None
    return Advisory("ledger_disagrees", detail, ("/ownerEffects",))


def present_before_dispatch(found: Findings) -> Advisory | None:
    """An answer found the effect earlier than the first dispatch under its key."""
    if not found.present:
        return None
    record = found.record
    first = _first_dispatched(record.attempts)
    early = []
    for index in found.present:
        answer = record.reconciliations[index]
        sent_at = first.get(answer.idempotency_key)
        if sent_at is None or answer.at < sent_at:
            early.append(f"/reconciliations/{index}")
    detail = "the owner held the effect before anything was sent under this key"
    return _named("present_before_dispatch", detail, early)


def answers_contradict(found: Findings) -> Advisory | None:
    """Under one key the owner said present, and at that time or later final absent."""
    if not found.present or not found.absent:
        return None
    record = found.record
    first: dict[str, int] = {}
    for index in found.present:
        answer = record.reconciliations[index]
        before = first.get(answer.idempotency_key)
        if before is None or answer.at < record.reconciliations[before].at:
            first[answer.idempotency_key] = index
    members: list[str] = []
    for index in found.absent:
        answer = record.reconciliations[index]
        before = first.get(answer.idempotency_key)
        if before is not None and record.reconciliations[before].at <= answer.at:
            members += [f"/reconciliations/{before}", f"/reconciliations/{index}"]
    detail = "present, then final absent, under one key"
    return _named("answers_contradict", detail, list(dict.fromkeys(members)))


def foreign_arguments(found: Findings) -> Advisory | None:
    """An attempt, under any key, whose arguments are not the operation's."""
    if not found.foreign:
        return None
    return _named(
        "foreign_arguments",
        "an attempt sent other arguments than the operation's",
        [f"/attempts/{index}/argsDigest" for index in found.foreign],
    )


def token_shared(found: Findings) -> Advisory | None:
    """One fencing token in the hands of two workers, over leases and attempts."""
    record = found.record
    leases: tuple[Attempt | Lease, ...] = record.leases
    workers: dict[int, str] = {}
    shared: set[int] = set()
    for holder in leases + record.attempts:
        token, worker = holder.fencing_token, holder.worker
        if token is None or worker is None:
            continue
        if workers.setdefault(token, worker) != worker:
            shared.add(token)
    if not shared:
        return None
    members = [f"/leases/{i}" for i, x in enumerate(leases) if x.fencing_token in shared]
    members += [
        f"/attempts/{i}" for i, x in enumerate(record.attempts) if x.fencing_token in shared
    ]
    return _named("token_shared", "two workers hold one fencing token", members)


def order_disagrees(found: Findings) -> Advisory | None:
    """An attempt with a higher number was dispatched earlier than one with a lower number."""
    attempts = found.record.attempts
    if len(attempts) < 2:
        return None
    numbers = [attempt.number for attempt in attempts]
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    latest = order[0]
    for place in order:
        at = attempts[place].dispatched_at
        if at < attempts[latest].dispatched_at:
            return Advisory(
                "order_disagrees",
                f"attempt {attempts[place].number} was dispatched before attempt "
                f"{attempts[latest].number}, by their times",
                (f"/attempts/{place}", f"/attempts/{latest}"),
            )
        latest = place
    return None


ADVISORIES: tuple[Callable[[Findings], Advisory | None], ...] = (
    resend_after_committed,
    absent_after_retention,
    unknown_beside_confirmed,
    ledger_disagrees,
    present_before_dispatch,
    answers_contradict,
    foreign_arguments,
    token_shared,
    order_disagrees,
)
CODES = tuple(check.__name__ for check in ADVISORIES)


# --- helpers -------------------------------------------------------------------------------------


def _named(code: str, detail: str, members: list[str]) -> Advisory | None:
    if not members:
        return None
    if len(members) > MEMBERS_MAX:
        detail += f" ({len(members)} members, the first {MEMBERS_MAX} named)"
    return Advisory(code, detail, tuple(members[:MEMBERS_MAX]))


def _first_dispatched(attempts: Iterable[Attempt]) -> dict[str, Instant]:
    """Return, for each key, the time of its first dispatch."""
    first: dict[str, Instant] = {}
    for attempt in attempts:
        at = first.get(attempt.idempotency_key)
        if at is None or attempt.dispatched_at < at:
            first[attempt.idempotency_key] = attempt.dispatched_at
    return first


def _deduplicated(record: Record, earlier: Instant, later: Instant) -> bool:
    """Say whether the owner takes two sends of one key at these times for one."""
    owner = record.effect_owner
    if not owner.deduplicates_by_key:
        return False
    retention_s = owner.key_retention_s
    return retention_s is None or not more_than_apart(earlier, later, retention_s)


def _sent_after_present(found: Findings) -> tuple[int | None, int]:
    """Return the first attempt that follows a present answer undeduplicated, and the answer.

    Of the answers only each key's earliest matters, and of those the first two keys' at most: an
    attempt under another key than an answer's is never deduplicated with it.
    """
    record = found.record
    earliest: dict[str, int] = {}
    for index in sorted(found.present, key=lambda i: record.reconciliations[i].at):
        earliest.setdefault(record.reconciliations[index].idempotency_key, index)
    first = _first_dispatched(record.attempts)
    for place, attempt in enumerate(record.attempts):
        key, at = attempt.idempotency_key, attempt.dispatched_at
        others = [index for other, index in list(earliest.items())[:2] if other != key]
        if others and record.reconciliations[others[0]].at <= at:
            return place, others[0]
        own = earliest.get(key)
        if own is None or at < record.reconciliations[own].at:
            continue
        if not _deduplicated(record, first[key], at):
            return place, own
    return None, 0


def _unaccounted(found: Findings, uncovered: dict[str, list[int]]) -> list[int]:
    """Return which of these unknown attempts, listed by key, no known effect accounts for."""
    attempts, answers = found.record.attempts, found.record.reconciliations
    sent: dict[str, list[Instant]] = {}
    for index in found.confirmed:
        attempt = attempts[index]
        sent.setdefault(attempt.idempotency_key, []).append(attempt.dispatched_at)
    seen: dict[str, Instant] = {}
    for index in found.present:
        key, at = answers[index].idempotency_key, answers[index].at
        seen[key] = max(at, seen.get(key, at))
    alone: list[int] = []
    for key, places in uncovered.items():
        known = sorted(sent.get(key, ()))
        if not known and key in seen:
            earliest = min(places, key=lambda index: attempts[index].dispatched_at)
            if attempts[earliest].dispatched_at <= seen[key]:
                known = [attempts[earliest].dispatched_at]
                places.remove(earliest)
        alone += [index for index in places if not _near(found.record, known, attempts[index])]
    return alone


def _near(record: Record, known: list[Instant], attempt: Attempt) -> bool:
    """Say whether the owner deduplicates this attempt with one of the known sends of its key."""
    from bisect import bisect_right

    at = attempt.dispatched_at
    after = bisect_right(known, at)
    return (after > 0 and _deduplicated(record, known[after - 1], at)) or (
        after < len(known) and _deduplicated(record, at, known[after])
    )
