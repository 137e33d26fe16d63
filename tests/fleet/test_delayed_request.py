"""The first request of a worker is still on the wire when it asks, and when it sends again.

The wire is TCP of our own. It cuts the worker off, holds the bytes, and brings them to the owner
just before or just after the second request, or at the very end where there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from fleet_clock import JumpingClock, open_on
from fleet_owner import FleetOwner
from fleet_proxy import DelayingWire
from fleet_worker import declare

from counterfoil.coordinator.export import lines
from counterfoil.reader.verdict import judge_bytes

if TYPE_CHECKING:
    from pathlib import Path


class Kind(NamedTuple):
    """What an owner promises and keeps, and whether the same worker may send again by itself."""

    promises: dict[str, object]
    sends_again: bool
    deduplicates: bool = False
    settles: bool = False
    lease_moves: bool = False


FOREVER = {"deduplicates": True, "key_retention": "forever"}
AN_HOUR = {"deduplicates": True, "key_retention": "1h"}
BOUNDED = {**AN_HOUR, "sender_pause_max": "5s", "settles_within": "5s"}

KINDS = {
    "promises nothing": Kind({}, sends_again=False),
    "final by its answer": Kind({"final_by": "answer"}, sends_again=False),
    "settles in time": Kind({"settles_within": "5s"}, sends_again=True, settles=True),
    "deduplicates": Kind(FOREVER, sends_again=True, deduplicates=True),
    "deduplicates for an hour": Kind(AN_HOUR, sends_again=False, deduplicates=True),
    "deduplicates within bounds": Kind(BOUNDED, sends_again=True, deduplicates=True, settles=True),
    "fences on send": Kind({"fences": "on_send"}, sends_again=False),
    "fences on ask": Kind({"fences": "on_ask"}, sends_again=True),
    "fences by call": Kind({"fences": "by_call"}, sends_again=True),
    "grants a lease": Kind({"fences": "by_lease"}, sends_again=False),
    "grants another lease": Kind({"fences": "by_lease"}, sends_again=True, lease_moves=True),
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("name", KINDS)
def test_a_request_delivered_around_its_resend_makes_one_effect_or_there_is_no_resend(
    database: Path, name: str, when: str
) -> None:
    kind, clock = KINDS[name], JumpingClock()
    bound_s = 5.0 if kind.settles else None
    owner = FleetOwner(
        final="final_by" in kind.promises,
        settles_within_s=bound_s,
        fences=str(kind.promises.get("fences", "no")),
        deduplicates=kind.deduplicates,
        clock=clock.monotonic_s,
    )
    moves = owner.move_lease if kind.lease_moves else lambda: None
    with (
        owner,
        DelayingWire(
            owner, when=when, clock=clock.monotonic_s, bound_s=bound_s, on_hold=moves
        ) as wire,
        open_on(database, clock) as book,
    ):
        effect = declare(wire.url, kind.promises)
        outcome = book.perform(effect, "o-1", amount="1")
        assert wire.calls == (2 if kind.sends_again else 1)
        assert outcome.status == ("committed" if kind.sends_again else "unknown")
        wire.deliver()
        assert book.resume("o-1").status == "committed"
        assert owner.count == 1
        (text,) = lines(book.store, "default", None, ())
        judged = judge_bytes(text.encode())
        assert getattr(judged, "decision", None) == "allow", judged
