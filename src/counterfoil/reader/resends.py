"""Which attempts follow another without protection: the pairs of check 6, without trying each pair.

Attempt v is after u if its time is later or its number is higher. It is protected if the owner
deduplicates the two (same key, inside the retention window) or a final absent answer under u's key
lies after u and no later than v; it is bare otherwise. A record may hold 10**5 attempts, so sorted
times answer whether u has a bare follower, and only a pair that is to be named is looked for.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate

from counterfoil.record.instants import more_than_apart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from counterfoil.record.instants import Instant
    from counterfoil.record.model import Attempt, Record


class Resends:
    """The attempts of one record in the order of time, ready to be asked for bare followers.

    ``absent`` are the places of the answers that protect; none where only deduplication does.
    """

    def __init__(self, record: Record, absent: Iterable[int]) -> None:
        self._attempts = record.attempts
        self._deduplicates = record.effect_owner.deduplicates_by_key
        self._retention_s = record.effect_owner.key_retention_s
        self._absent: dict[str, list[Instant]] = {}
        for index in absent:
            answer = record.reconciliations[index]
            self._absent.setdefault(answer.idempotency_key, []).append(answer.at)
        for answered in self._absent.values():
            answered.sort()

        dispatched = [attempt.dispatched_at for attempt in self._attempts]
        order = sorted(range(len(dispatched)), key=dispatched.__getitem__)
        in_time = [self._attempts[index] for index in order]
        self._times = [attempt.dispatched_at for attempt in in_time]
        self._times_of: dict[str, list[Instant]] = {}
        if self._deduplicates:
            for attempt in in_time:
                self._times_of.setdefault(attempt.idempotency_key, []).append(attempt.dispatched_at)
            self._highest = _highest_of_two_keys(in_time)
        else:
            numbers = accumulate((attempt.number for attempt in in_time), max)
            self._highest = [(number, "", number) for number in numbers]

    def first_bare(self, earlier: Iterable[int]) -> tuple[int, int] | None:
        """Return the places of the first of these that has a bare follower, and of the follower."""
        for index in earlier:
            if self._has_bare_follower(self._attempts[index]):
                attempt = self._attempts[index]
                for place, follower in enumerate(self._attempts):
                    if self._is_bare(attempt, follower):
                        return index, place
        return None

    def _covered_from(self, attempt: Attempt) -> Instant | None:
        """Return the time of the first answer that protects what is dispatched from then on."""
        answered = self._absent.get(attempt.idempotency_key, ())
        first = bisect_right(answered, attempt.dispatched_at)
        return answered[first] if first < len(answered) else None

    def _is_bare(self, attempt: Attempt, follower: Attempt) -> bool:
        at, then = attempt.dispatched_at, follower.dispatched_at
        if follower is attempt or (then <= at and follower.number <= attempt.number):
            return False
        covered_from = self._covered_from(attempt)
        if covered_from is not None and covered_from <= then:
            return False
        return not (
            self._deduplicates
            and follower.idempotency_key == attempt.idempotency_key
            and (self._retention_s is None or not more_than_apart(at, then, self._retention_s))
        )

    def _has_bare_follower(self, attempt: Attempt) -> bool:
        at = attempt.dispatched_at
        covered_from = self._covered_from(attempt)
        begin = bisect_right(self._times, at)
        between = _end(self._times, covered_from) - begin
        if self._deduplicates:
            # The same key: only the last one before the answer can be outside the window.
            own = self._times_of[attempt.idempotency_key]
            own_begin, own_end = bisect_right(own, at), _end(own, covered_from)
            between -= own_end - own_begin
            if (
                own_end > own_begin
                and self._retention_s is not None
                and more_than_apart(at, own[own_end - 1], self._retention_s)
            ):
                return True
        if between > 0:
            return True
        # No answer can lie between u and a v that is not later: a higher number decides alone.
        number, key, number_of_others = self._highest[begin - 1]
        if self._deduplicates and key == attempt.idempotency_key:
            number = number_of_others
        return number > attempt.number


def _end(times: list[Instant], covered_from: Instant | None) -> int:
    return len(times) if covered_from is None else bisect_left(times, covered_from)


def _highest_of_two_keys(in_time: list[Attempt]) -> list[tuple[int, str, int]]:
    """Return, up to each place, the highest number, its key, and the highest under another key."""
    highest: list[tuple[int, str, int]] = []
    best, best_key, other = 0, "", 0
    for attempt in in_time:
        number, key = attempt.number, attempt.idempotency_key
        if key == best_key:
            best = max(best, number)
        elif number > best:
            best, best_key, other = number, key, best
        else:
            other = max(other, number)
        highest.append((best, best_key, other))
    return highest
