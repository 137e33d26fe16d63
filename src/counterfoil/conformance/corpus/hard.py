"""``vectors-uncertain-effect-hard``: what the seed does not settle and the design page does.

Controls first, then cases that are allowed, denied and malformed. The malformed ones have twins
that are records and differ from them as little as can be; no one answer is due in half of the
cases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.conformance.corpus import hard_bytes, hard_shapes, hard_times, hard_trails
from counterfoil.conformance.corpus.building import MALFORMED, Controls, Corpus
from counterfoil.conformance.corpus.readmes import HARD
from counterfoil.conformance.corpus.trails import (
    COMMITTED,
    CONFIRMED,
    FIRST,
    LOST,
    NOT_RUN,
    SECOND,
    TIMEOUT,
    UNKNOWN,
    absent,
    attempt,
    held,
    invoice,
    lease,
    reservation,
    trail,
)

if TYPE_CHECKING:
    from counterfoil.conformance.corpus.building import Case

NAME = "vectors-uncertain-effect-hard"
_RANK = {"allow": 0, "deny": 1, MALFORMED: 2}


def corpus() -> Corpus:
    """Return the corpus: controls, then what is allowed, denied and malformed."""
    controls = _controls()
    cases: list[Case] = []
    for part in (hard_bytes, hard_shapes, hard_times, hard_trails):
        cases += part.cases(controls)
    cases.sort(key=lambda case: _RANK[case.decision])
    return Corpus(NAME, HARD, (*controls.cases, *cases))


def _controls() -> Controls:
    controls = Controls()
    _add_settled(controls)
    _add_leased_and_unknown(controls)
    return controls


def _add_settled(controls: Controls) -> None:
    controls.add(
        "confirmed",
        "confirmed",
        "one attempt, confirmed, and a notice that no check reads",
        trail(
            [attempt(1, "09:00:00", CONFIRMED)],
            COMMITTED,
            effects=1,
            notices=[invoice("09:30:00")],
        ),
    )
    controls.add(
        "absent",
        "lost-before-commit",
        "a time-out and a final absent answer; reported not run",
        trail([attempt(1, "09:00:00", TIMEOUT)], NOT_RUN, answers=[absent("09:30:00")]),
    )
    controls.add(
        "resent",
        "lost-before-commit",
        "a time-out, a final absent answer, a second attempt",
        trail(
            [attempt(1, "09:00:00", TIMEOUT), attempt(2, "09:05:00", CONFIRMED)],
            COMMITTED,
            answers=[absent("09:02:00")],
            effects=1,
        ),
    )
    controls.add(
        "deduplicated",
        "commit-then-lost-reply-deduplicating",
        "a lost reply and a resend under the same key, inside the owner's hour",
        trail(
            [attempt(1, "09:00:00", LOST), attempt(2, "09:10:00", CONFIRMED)],
            COMMITTED,
            effects=1,
            deduplicates=True,
            retention_s=3600,
        ),
    )


def _add_leased_and_unknown(controls: Controls) -> None:
    controls.add(
        "leased",
        "lease-lost-after-lost-reply",
        "a lost reply; the lease passes on; the new holder asks, hears absent, and sends",
        trail(
            [held(1, "09:00:00", LOST, FIRST, 7), held(2, "09:20:00", CONFIRMED, SECOND, 8)],
            COMMITTED,
            answers=[absent("09:15:00")],
            effects=1,
            leases=[
                lease(FIRST, 7, "08:55:00", "09:05:00"),
                lease(SECOND, 8, "09:10:00", "09:40:00"),
            ],
        ),
    )
    controls.add(
        "unknown",
        "owner-unreachable-after-lost-reply",
        "a lost reply and an answer that is not final; unknown, and still charged",
        trail(
            [attempt(1, "09:00:00", LOST)],
            UNKNOWN,
            answers=[absent("09:02:00", final=False)],
            reservation=reservation("23:00:00"),
            notices=[invoice("09:30:00")],
        ),
    )
