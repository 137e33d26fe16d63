"""A book in memory, on a clock that jumps, with an owner that follows a script."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest

import counterfoil as cf
from counterfoil.testing import (
    OwnerRefusal,
    ScriptedOwner,
    SystemClock,
    VirtualClock,
    memory_book,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def declare(owner: ScriptedOwner, **promises: Any) -> cf.Effect[..., Any]:
    @cf.effect("letter.send", owner=cf.Owner("post", **promises))
    def send(attempt: cf.Attempt, *, to: str) -> object:
        try:
            return owner.call(attempt.key, {"to": to}, attempt.token)
        except OwnerRefusal as refusal:
            raise cf.NoEffect(refusal.code) from None

    @send.reconcile
    def find(attempt: cf.Attempt) -> object:
        view = owner.find(attempt.key, attempt.token)
        if view.effect is not None:
            return cf.present(view.effect, effect_id=view.effect["id"])
        return cf.absent(final=view.final, partial=view.partial)

    return send


def test_a_virtual_clock_jumps_to_where_it_is_told_and_never_back() -> None:
    jumps: list[float] = []
    clock = VirtualClock(jumps.append)
    began_us = clock.now_us()
    clock.sleep_until(120.0)
    clock.sleep_until(60.0)
    clock.advance(0.5)
    assert clock.monotonic_s() == pytest.approx(120.5, abs=1e-3)
    assert clock.now_us() - began_us == pytest.approx(120.5e6, abs=10)
    assert jumps == pytest.approx([120.0, 0.5], abs=1e-3)


def test_a_virtual_clock_never_stops_short_of_where_it_was_told() -> None:
    clock = VirtualClock()
    for step in range(1, 500):
        clock.sleep_until(step / 3)
        assert clock.monotonic_s() >= step / 3


def test_two_minutes_to_settle_pass_in_no_time() -> None:
    owner = ScriptedOwner(["drop"])
    began_s = time.monotonic()
    with memory_book() as book:
        outcome = book.perform(declare(owner, settles_within="2m"), "o-1", to="Ada")
    assert (outcome.status, outcome.attempts, owner.count) == ("committed", 2, 1)
    assert time.monotonic() - began_s < 1


def test_a_late_commit_within_the_promise_is_waited_for() -> None:
    clock = VirtualClock()
    owner = ScriptedOwner(["late"], clock=clock, late_by="90s")
    with memory_book(clock=clock) as book:
        outcome = book.perform(declare(owner, settles_within="2m"), "o-1", to="Ada")
    assert (outcome.status, outcome.attempts, owner.count) == ("committed", 1, 1)


def test_a_late_commit_beyond_the_promise_makes_a_second_effect() -> None:
    clock = VirtualClock()
    owner = ScriptedOwner(["late"], clock=clock, late_by="3m")
    with memory_book(clock=clock) as book:
        book.perform(declare(owner, settles_within="2m"), "o-1", to="Ada")
    clock.advance(180)
    assert list(owner.effects.values()) == [2]


def test_a_memory_book_on_the_systems_clock_waits_as_long_as_it_says() -> None:
    owner = ScriptedOwner(["drop"])
    began_s = time.monotonic()
    with memory_book(clock=SystemClock(), patience="100ms") as book:
        outcome = book.perform(declare(owner), "o-1", to="Ada")
    assert outcome.why.code == "absent_not_final"
    assert time.monotonic() - began_s >= 0.1


def test_an_async_perform_on_a_clock_that_does_not_run_is_refused() -> None:
    effect = declare(ScriptedOwner())
    with memory_book() as book, pytest.raises(cf.BadInput, match="clock=SystemClock"):
        asyncio.run(book.perform_async(effect, "o-1", to="Ada"))
    with memory_book(clock=SystemClock()) as book:
        outcome = asyncio.run(book.perform_async(effect, "o-1", to="Ada"))
    assert outcome.status == "committed"


def test_a_memory_book_keeps_its_namespace_and_its_limit_of_attempts() -> None:
    owner = ScriptedOwner(["drop"] * 5)
    with memory_book(namespace="staging", attempts_max=2) as book:
        outcome = book.perform(declare(owner, final_by="answer"), "o-1", to="Ada")
        assert [stream.operation_id for stream in book.store.streams("staging")] == ["o-1"]
    assert (outcome.status, outcome.attempts) == ("not_run", 2)


@pytest.mark.parametrize(
    ("calls", "finds", "promises", "status", "attempts", "effects"),
    [
        (["lose"], [], {}, "committed", 1, 1),
        (["time out"], ["fail", "truth"], {}, "committed", 1, 1),
        (["time out"], ["stale", "truth"], {"final_by": "answer"}, "committed", 1, 1),
        (["lose"], ["partial", "truth"], {"final_by": "answer"}, "committed", 1, 1),
        (["drop"], [], {"final_by": "answer"}, "committed", 2, 1),
        (["refuse"], [], {}, "not_run", 1, 0),
        (["late"], [], {"final_by": "answer"}, "unknown", 1, 0),
    ],
)
def test_an_owner_follows_its_script(
    calls: list[str],
    finds: list[str],
    promises: dict[str, Any],
    status: str,
    attempts: int,
    effects: int,
) -> None:
    owner = ScriptedOwner(calls, finds)
    with memory_book() as book:
        outcome = book.perform(declare(owner, **promises), "o-1", to="Ada")
    assert (outcome.status, outcome.attempts, owner.count) == (status, attempts, effects)


def test_a_late_request_lands_when_it_is_released() -> None:
    owner = ScriptedOwner(["late"])
    with pytest.raises(TimeoutError):
        owner.call("k", {})
    assert owner.find("k").final is False
    owner.release()
    assert owner.effects == {"k": 1}
    assert owner.find("k").effect is not None


def test_an_owner_that_deduplicates_answers_a_known_key_as_it_did_at_first() -> None:
    owner = ScriptedOwner(["twice"], deduplicates=True)
    first = owner.call("k", {"a": 1})
    assert owner.call("k", {"a": 1}) == first
    assert owner.effects == {"k": 1}


def test_an_owner_refuses_a_token_below_one_that_it_was_shown() -> None:
    owner = ScriptedOwner(["late"], fences=True)
    with pytest.raises(TimeoutError):
        owner.call("k", {}, token=1)
    owner.find("k", token=2)
    owner.release()
    with pytest.raises(OwnerRefusal, match="token_superseded"):
        owner.call("k", {}, token=1)
    assert owner.count == 0


@pytest.mark.parametrize(
    "make",
    [
        lambda: ScriptedOwner(["comit"]),
        lambda: ScriptedOwner(finds=["old"]),
        lambda: ScriptedOwner(late_by="1s"),
    ],
)
def test_a_script_that_cannot_be_followed_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(cf.BadInput, match="ScriptedOwner"):
        make()
