"""What happens around the workers: the wire, the owner's own doings, time, and people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.operation import belief
from counterfoil.operation.commands import Append, Appended
from counterfoil.operation.events import Answered, Excluded, NewEvent
from counterfoil.operation.promises import Fences
from counterfoil.operation.protocol import record_late_reply
from counterfoil.simulate import owner as owners
from counterfoil.simulate.space import EPOCH_US, Space, Step, with_request
from counterfoil.simulate.streams import EMPTY
from counterfoil.simulate.workers import cut_off, in_words, replies
from counterfoil.simulate.world import (
    TICK_S,
    CallIs,
    Page,
    Phase,
    Place,
    Request,
    World,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from counterfoil.operation.replies import Reply


def wire_steps(space: Space, world: World, i: int) -> Iterator[Step]:
    """Yield what may become of the request of attempt ``i + 1``, and of a call left running."""
    request, t = world.requests[i], world.t
    if owners.may_be_written(space.owner, request, t):
        timed = space.promises.sender_pause_max_s is not None
        written = request._replace(
            token=token_written(world, request),
            place=Place.IN_FLIGHT,
            written_t=t if timed else 0,
        )
        yield f"a{i + 1} is written", with_request(world, i, written), None
    if owners.may_land(space.owner, request, t):
        yield from _lands(space, world, i)
    if request.call is CallIs.OVERDUE:
        for said, reply in replies(request, i):
            yield _late(space, f"{said}, late", world, i, reply)


def token_written(world: World, request: Request) -> int:  # noqa: ARG001
    """A request carries the token that it was dispatched with, whatever the lease has now (T2)."""
    return request.token


LANDED = {
    Place.CONFIRMED: "lands and commits",
    Place.REFUSED: "lands and is refused",
    Place.TOKEN_REFUSED: "lands, and its token is too low",
}


def _lands(space: Space, world: World, i: int) -> Iterator[Step]:
    request = world.requests[i]
    key = space.streams.history(world.stream).attempts[i].key
    seen = set()
    for refuse in (False, True) if space.owner.refuses else (False,):
        ledger, place = owners.land(
            space.owner, world.ledger, key, request.token, world.t, refuse=refuse
        )
        if place in seen:
            continue
        seen.add(place)
        heard = Request(request.sender, 0, place, request.call)
        if request.call is CallIs.ENDED:
            heard = Request(request.sender, 0, Place.LOST, CallIs.ENDED)
        what = LANDED[place]
        if place is Place.CONFIRMED and ledger.effects == world.ledger.effects:
            what = "lands and is known already"
        yield f"a{i + 1} {what}", with_request(world, i, heard)._replace(ledger=ledger), None


def _late(space: Space, action: str, world: World, i: int, reply: Reply) -> Step:
    """A call returned that its worker no longer waited for. Recording it takes one append, tried
    until it finds the stream as it read it, and so is one step."""
    w = world.requests[i].sender
    number = space.carryings.begin(
        ("late", w, i, reply), lambda: record_late_reply(space.task(w), i + 1, reply)
    )
    world = with_request(world, i, space.call_ended(world.requests[i], world.t))
    while True:
        number = space.read(world, w, number)
        command = space.carryings[number].command
        if command is None:
            return action, world, None
        assert isinstance(command, Append), command
        world = space.stored(world, w, command)
        appended = Appended(space.streams.history(world.stream))
        name = ("appended", world.stream)
        number = space.carryings.advance(number, name, space.sent(world, appended))


# --- time, and the owner's own doings ------------------------------------------------------------


def surrounding_steps(space: Space, world: World) -> Iterator[Step]:
    """Yield what happens by itself, once there is an operation."""
    bounds, ledger = space.bounds, world.ledger
    if world.stream == EMPTY:
        return
    if world.t < bounds.ticks and _time_matters(space, world):
        yield "time passes", _later(space, world), None
    if space.promises.fences is Fences.BY_LEASE and ledger.lease <= bounds.lease_moves:
        moved = ledger._replace(lease=ledger.lease + 1)
        yield f"the owner's lease moves to {moved.lease}", world._replace(ledger=moved), None
    if owners.can_forget(space.owner, ledger, world.t):
        forgot = owners.forget(ledger, world.t)
        yield "the owner forgets the key", world._replace(ledger=forgot), None
    if bounds.clock_steps and not world.wall_jumped:
        yield "the wall clock steps forward", world._replace(wall_jumped=True), None
    if not bounds.same_host:
        yield from _declared(space, world)
    if bounds.relays:
        yield from _relays(space, world)


def _time_matters(space: Space, world: World) -> bool:
    """Whether something counts time now.

    A commit is prompt, unless the bounds let a decision wait for it. With one worker at a time on
    one host no lease is waited for, and nothing is counted before a call has ended or, where our
    pauses are bounded, before there is one: the moments before that are the same, only later.
    """
    if space.bounds.stalls:
        return True
    running = [worker for worker in world.workers if worker.phase is Phase.RUNNING]
    if any(isinstance(space.carryings[w.carrying].command, Append) for w in running):
        return False
    if space.bounds.at_once > 1 or not space.bounds.same_host:
        return True
    if space.promises.sender_pause_max_s is not None:
        return bool(world.requests)
    return any(request.call is CallIs.ENDED for request in world.requests)


def _later(space: Space, world: World) -> World:
    """One tick on; a request that by promise cannot land any more is as good as lost."""
    t = world.t + 1
    requests = tuple(
        Request(request.sender, 0, Place.LOST, request.call)
        if request.place is Place.IN_FLIGHT and not owners.may_land(space.owner, request, t)
        else request
        for request in world.requests
    )
    return world._replace(t=t, requests=requests)


# --- people --------------------------------------------------------------------------------------


def _declared(space: Space, world: World) -> Iterator[Step]:
    """A person declares dead what is dead, once."""
    excluded = {
        event.body.worker
        for event in space.streams[world.stream].events
        if isinstance(event.body, Excluded)
    }
    for w, worker in enumerate(world.workers):
        if worker.phase is Phase.DEAD and f"w{w}" not in excluded:
            body = Excluded(f"w{w}", "seen dead", "a person", "a ticket")
            event = NewEvent(b"", "console", body)
            yield f"a person declares w{w} dead", space.with_events(world, (event,)), None


def _relays(space: Space, world: World) -> Iterator[Step]:
    """A person opens the page of an operation, reads the owner's answer, and relays it later."""
    stream = space.streams[world.stream]
    if not world.requests or stream.outcome is not None:
        return
    if world.page is not None:
        yield "the person relays the answer on the page", _relayed(space, world, world.page), None
    elif world.relays < space.bounds.relays:
        for answer in owners.answers(space.owner, world.ledger, space.opened.key):
            page = Page(len(stream.events), world.t, answer, ends_known(space, world))
            after = cut_off(space, world, space.opened.key, answer)
            after = after._replace(page=page, relays=world.relays + 1)
            yield f"a person opens the page and the owner says: {in_words(answer)}", after, None


def ends_known(space: Space, world: World) -> tuple[tuple[int, float], ...]:
    """How long each stored end has been known to a console that watches all the time."""
    now_us = space.now_us(world)
    return tuple(
        (attempt.number, (now_us - attempt.ended_at_us) / 1_000_000)
        for attempt in space.streams.history(world.stream).attempts
        if attempt.ended_at_us is not None
    )


def _relayed(space: Space, world: World, page: Page) -> World:
    answer, question = page.answer, question_of(space, world, page)
    history = space.streams.history(world.stream)
    body = Answered(
        key=question.key,
        result=answer.result,
        asked_after=question.asked_after,
        asked_at_us=question.asked_at_us,
        says_final=answer.says_final,
        partial=answer.partial,
        basis=belief.basis_of_belief(history, question, answer, space.promises),
        effect_id=answer.effect_id,
        by="a person",
        evidence="the owner's page",
    )
    event = NewEvent(b"", "console", body)
    return space.with_events(world, (event,))._replace(page=None)


def question_of(space: Space, world: World, page: Page) -> belief.Question:  # noqa: ARG001
    """A relayed answer's question began when the page was opened, not when it is relayed (T8)."""
    at_us = EPOCH_US + page.asked_t * TICK_S * 1_000_000
    return belief.Question(space.opened.key, page.asked_after, at_us, None, dict(page.known_s))
