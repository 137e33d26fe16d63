"""`perform_async`: the same generator, driven under asyncio."""

from __future__ import annotations

import asyncio

import pytest

import counterfoil as cf

from .conftest import Service, declare


def declare_async(service: Service, **promises: object) -> cf.Effect[..., object]:
    @cf.effect("change", owner=cf.Owner("service", **promises))  # type: ignore[arg-type]
    async def change(attempt: cf.Attempt, *, amount: str = "1") -> object:
        await asyncio.sleep(0)
        return service.call(attempt)

    @change.reconcile
    async def find(attempt: cf.Attempt) -> object:
        await asyncio.sleep(0)
        return service.find(attempt)

    return change


def test_an_async_effect_is_carried(book: cf.Book, service: Service) -> None:
    effect = declare_async(service)
    outcome = asyncio.run(book.perform_async(effect, "o-1", amount="2"))
    assert (outcome.status, outcome.value) == ("committed", {"id": f"e-{service.calls[0]}"})
    assert asyncio.run(book.perform_async(effect, "o-1", amount="2")).replayed


def test_a_lost_reply_is_asked_about_and_resent_only_after_a_final_absent(
    book: cf.Book, service: Service
) -> None:
    service.script = ["lose before"]
    outcome = asyncio.run(book.perform_async(declare_async(service, final_by="answer"), "o-1"))
    assert (outcome.status, outcome.attempts, service.count) == ("committed", 2, 1)


def test_a_plain_effect_runs_under_asyncio_too(book: cf.Book, service: Service) -> None:
    service.script = ["lose"]
    outcome = asyncio.run(book.perform_async(declare(service), "o-1"))
    assert (outcome.status, outcome.why.code) == ("committed", "found_at_owner")


def test_an_async_effect_cannot_be_performed_without_a_loop(
    book: cf.Book, service: Service
) -> None:
    with pytest.raises(cf.BadInput, match="perform_async"):
        book.perform(declare_async(service), "o-1")
    assert service.calls == []


def test_a_cancellation_is_recorded_as_unknown_and_goes_on_up(
    book: cf.Book, service: Service
) -> None:
    async def scenario() -> None:
        inside = asyncio.Event()

        @cf.effect("held", owner=cf.Owner("s", final_by="answer"))
        async def held(attempt: cf.Attempt) -> object:
            if not service.calls:
                service.call(attempt)
                inside.set()
                await asyncio.Event().wait()
            return service.call(attempt)

        held.reconcile(service.find)
        task = asyncio.create_task(book.perform_async(held, "o-1"))
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert book.outcome("o-1").status == "unknown"
        assert (await book.perform_async(held, "o-1")).status == "committed"

    asyncio.run(scenario())
    assert service.count == 1


def test_a_coroutine_past_its_deadline_is_cancelled_and_asked_about(
    book: cf.Book, service: Service
) -> None:
    @cf.effect("slow", owner=cf.Owner("s"), deadline="30ms")
    async def slow(attempt: cf.Attempt) -> object:
        service.call(attempt)
        await asyncio.Event().wait()
        return None

    slow.reconcile(service.find)
    outcome = asyncio.run(book.perform_async(slow, "o-1"))
    assert (outcome.status, outcome.why.code) == ("committed", "found_at_owner")


def test_two_tasks_make_one_attempt(book: cf.Book, service: Service) -> None:
    effect = declare_async(service)

    async def both() -> list[cf.Outcome[object]]:
        return await asyncio.gather(
            book.perform_async(effect, "o-1"), book.perform_async(effect, "o-1")
        )

    outcomes = asyncio.run(both())
    assert sorted(o.replayed for o in outcomes) == [False, True]
    assert len(service.calls) == 1
