"""What a worker may do next: start, do what its carrying wants, crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.operation.commands import (
    Append,
    Appended,
    Call,
    Moved,
    Pause,
    Question,
    RaiseFence,
    ReadToken,
)
from counterfoil.operation.protocol import carry, carry_again
from counterfoil.operation.replies import (
    Answer,
    NoAnswer,
    Refusal,
    Reply,
    ReplyKind,
    Result,
    Status,
)
from counterfoil.simulate import owner as owners
from counterfoil.simulate.space import Space, Step, replaced, with_request
from counterfoil.simulate.world import CallIs, Ledger, Phase, Place, Request, Worker, World

if TYPE_CHECKING:
    from collections.abc import Iterator

LOST_REPLY = Reply(ReplyKind.CONNECTION_LOST, detail="the connection was cut")
NO_REPLY = Reply(ReplyKind.TIMEOUT, detail="no reply in time")
OVERDUE = Reply(ReplyKind.TIMEOUT, detail="past its deadline", ended=False)
NEVER_WRITTEN = Reply(ReplyKind.NO_EFFECT, Refusal.NOT_SENT, "the connection was refused")
CONFIRMED = Reply(ReplyKind.CONFIRMED, effect_id="e1")
REFUSED = Reply(ReplyKind.NO_EFFECT, Refusal.DEFINITE, "not allowed")
TOKEN_REFUSED = Reply(ReplyKind.NO_EFFECT, Refusal.TOKEN, "the token was superseded")
SILENCE = NoAnswer("the owner cannot say now")


def worker_steps(space: Space, world: World, w: int) -> Iterator[Step]:
    """Yield what worker ``w`` may do, or have done to it."""
    worker = world.workers[w]
    if worker.phase is Phase.DEAD:
        return
    if worker.phase is Phase.IDLE:
        yield from _starts(space, world, w)
    else:
        yield from _acts(space, world, w)
    if world.crashes < space.bounds.crashes and worker.runs:
        yield f"w{w} crashes", _crashed(space, world, w), None


def _starts(space: Space, world: World, w: int) -> Iterator[Step]:
    worker, bounds = world.workers[w], space.bounds
    if worker.runs >= bounds.runs:
        return
    if worker.runs == 0:
        if w and world.workers[w - 1].runs == 0:
            return  # the workers are alike: the lower number starts first
        alive = sum(x.runs > 0 and x.phase is not Phase.DEAD for x in world.workers)
        if alive >= bounds.at_once:
            return
    outcome = space.streams[world.stream].outcome
    known = worker.remembered
    if outcome is None:
        action = f"w{w} starts"
        number = space.carryings.begin(("carry", w, known), lambda: carry(space.task(w, known)))
    elif outcome is Status.NOT_RUN and world.retries < bounds.retries:
        action = f"w{w} is told to try again"
        number = space.carryings.begin(
            ("retry", w, known), lambda: carry_again(space.task(w, known), "a person")
        )
        world = world._replace(retries=world.retries + 1)
    else:
        return
    worker = worker._replace(phase=Phase.RUNNING, carrying=number, runs=worker.runs + 1)
    world = world._replace(workers=replaced(world.workers, w, worker))
    yield space.arrived(action, world, w, number)


def _crashed(space: Space, world: World, w: int) -> World:
    requests = tuple(
        space.call_ended(r, world.t) if r.sender == w and r.call is not CallIs.ENDED else r
        for r in world.requests
    )
    dead = Worker(Phase.DEAD, runs=world.workers[w].runs)
    workers = replaced(world.workers, w, dead)
    return world._replace(workers=workers, requests=requests, crashes=world.crashes + 1)


def _acts(space: Space, world: World, w: int) -> Iterator[Step]:
    """Do what the carrying wants, in each way that it may go."""
    command = space.carryings[world.workers[w].carrying].command
    match command:
        case Append():
            yield _appends(space, world, w, command)
        case Call():
            yield from _call_ends(space, world, w, command.attempt.number - 1)
        case Question():
            yield from _asks(space, world, w, command)
        case ReadToken():
            token = world.ledger.lease
            yield space.go(f"w{w} reads the owner's token {token}", world, w, token, token)
        case RaiseFence():
            raised = world._replace(ledger=with_bar(world.ledger, command.token))
            said = f"w{w} raises the owner's bar to {command.token}"
            yield space.go(said, raised, w, "raised", happened=True)
            yield space.go(f"{said}, unheard", raised, w, "unheard", happened=False)
        case Pause():
            yield space.go(f"w{w} looks again", world, w, "woke", None)
        case _:
            raise AssertionError(command)


def _appends(space: Space, world: World, w: int, command: Append) -> Step:
    if len(space.streams[world.stream].events) != command.expected_n:
        return space.go(f"w{w} finds that the stream moved", world, w, "moved", Moved())
    after = space.stored(world, w, command)
    happened = Appended(space.streams.history(after.stream))
    return space.go(f"w{w} appends", after, w, ("appended", after.stream), happened)


# --- calls ---------------------------------------------------------------------------------------


def replies(request: Request, i: int) -> Iterator[tuple[str, Reply]]:
    """Yield how a call may end that still runs, by what has become of its request.

    A reply that is lost is a cut connection, one that nobody sent a time-out: the rules make no
    difference, and so each is met.
    """
    a = f"a{i + 1}"
    match request.place:
        case Place.NOT_WRITTEN:
            yield f"{a} is not sent", NEVER_WRITTEN
            yield f"{a} times out", NO_REPLY
        case Place.IN_FLIGHT | Place.LOST:
            yield f"{a} times out", NO_REPLY
        case Place.CONFIRMED:
            yield f"{a}: the confirmation arrives", CONFIRMED
            yield f"{a}: the reply is lost", LOST_REPLY
        case Place.REFUSED:
            yield f"{a}: the refusal arrives", REFUSED
            yield f"{a}: the reply is lost", LOST_REPLY
        case Place.TOKEN_REFUSED:
            yield f"{a}: the refusal of its token arrives", TOKEN_REFUSED
            yield f"{a}: the reply is lost", LOST_REPLY


def _call_ends(space: Space, world: World, w: int, i: int) -> Iterator[Step]:
    request = world.requests[i]
    ended = with_request(world, i, space.call_ended(request, world.t))
    for said, reply in replies(request, i):
        yield space.go(said, ended, w, reply, reply)
    if space.bounds.interrupts:
        said = f"a{i + 1} is interrupted"
        yield space.go(said, ended, w, LOST_REPLY, LOST_REPLY, stop=True)
    if space.bounds.hangs and request.place < Place.CONFIRMED:
        hung = with_request(world, i, request._replace(call=CallIs.OVERDUE))
        yield space.go(f"a{i + 1} runs past its deadline", hung, w, OVERDUE, OVERDUE)


# --- questions -----------------------------------------------------------------------------------


def _asks(space: Space, world: World, w: int, command: Question) -> Iterator[Step]:
    """The owner answers, and the answer arrives: what happens to the asker in between is as if it
    had happened after, since it reads nothing before its next append."""
    if space.carryings[world.workers[w].carrying].remembered.questions >= space.bounds.questions:
        return
    yield space.go(f"w{w} gets no answer", world, w, SILENCE, SILENCE)
    for answer in owners.answers(space.owner, world.ledger, command.key):
        after = cut_off(space, world, command.key, answer)
        if command.fence is not None:
            after = after._replace(ledger=with_bar(after.ledger, command.fence))
        said = f"the owner answers w{w}: {in_words(answer)}"
        yield space.go(said, after, w, answer, answer)


def cut_off(space: Space, world: World, key: str, answer: Answer) -> World:
    """Return the moment after an answer: a final absent that the owner means keeps out what was
    sent under the key before it."""
    if not owners.cuts_off(space.owner, answer):
        return world
    attempts = space.streams.history(world.stream).attempts
    requests = tuple(
        Request(request.sender, 0, Place.LOST, request.call)
        if request.place is Place.IN_FLIGHT and attempts[i].key == key
        else request
        for i, request in enumerate(world.requests)
    )
    return world._replace(requests=requests)


def with_bar(ledger: Ledger, token: int) -> Ledger:
    """Return the ledger of an owner that has learned of this token."""
    return ledger._replace(bar=max(ledger.bar, token))


def in_words(answer: Answer) -> str:
    """Say what an answer says."""
    if answer.result is Result.PRESENT:
        return "present"
    final = "final" if answer.says_final else "not final"
    return f"absent, {final}" + (", from a partial view" if answer.partial else "")
