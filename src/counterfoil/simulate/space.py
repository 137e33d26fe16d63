"""All moments of one operation that one owner and one set of bounds allow, with the tables that
number its streams and its carryings.

Here is what every step needs: how a worker comes to its next wish, and how the store takes events.
Reading the store, and proving deaths, ride along with the step that led to them: what is read can
only be used by an append that still finds the stream as it was read, so a later look adds nothing.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, TypeVar

from counterfoil.operation.commands import Append, Call, Load, Prove, ReadToken, Sent
from counterfoil.operation.events import Dispatched, NewEvent, Opened
from counterfoil.operation.next_step import Policy
from counterfoil.operation.task import Task
from counterfoil.simulate import invariants
from counterfoil.simulate.carrying import Carryings, Remembered
from counterfoil.simulate.streams import EMPTY, Kept, Streams
from counterfoil.simulate.world import (
    DEADLINE_S,
    TICK_S,
    WALL_JUMP_TICKS,
    Bounds,
    CallIs,
    Ledger,
    Owner,
    Phase,
    Place,
    Request,
    Worker,
    World,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

    from counterfoil.operation.commands import Happened

T = TypeVar("T")

Step = tuple[str, World, str | None]
"""What happens, the moment after it, and what is wrong with that, if anything."""

EPOCH_US = 1_767_225_600_000_000


class Space:
    """The moments of one operation. Its tables only grow."""

    def __init__(self, owner: Owner, bounds: Bounds) -> None:
        self.owner, self.bounds, self.promises = owner, bounds, owner.promises
        self.carryings = Carryings()
        self.streams = Streams(lambda events, h: invariants.wrong_stream(owner, events, h))
        self.opened = Opened(
            action="payment.refund",
            owner="payments",
            key="key",
            args_digest="sha256:" + 64 * "a",
            arguments="{}",
            preconditions=None,
            promises=Kept(owner.promises.to_json()),
        )
        self.policy = Policy(
            attempts_max=bounds.attempts,
            can_ask=owner.can_be_asked,
            deadline_s=DEADLINE_S,
            ends_within_s=None if bounds.hangs else DEADLINE_S,
            ask_delays_s=(0.0,),
            resend_delay_s=0.0,
        )

    def first(self) -> World:
        """Return the moment before anything happened."""
        return World(0, EMPTY, (Worker(),) * self.bounds.workers, (), Ledger())

    def task(self, w: int, memory: Remembered | None = None) -> Task:
        """Return what worker ``w`` carries; its patience has no end."""
        return Task(
            stream=invariants.STREAM,
            opened=self.opened,
            worker=f"w{w}",
            promises=self.promises,
            policy=self.policy,
            new_id=lambda: b"",
            lease_s=self.bounds.lease_s,
            patience_s=inf,
            memory=None if memory is None else memory.thaw(),
        )

    # --- time ------------------------------------------------------------------------------------

    def now_us(self, world: World) -> int:
        """Return the wall clock, which may have stepped forward."""
        ticks = world.t + (WALL_JUMP_TICKS if world.wall_jumped else 0)
        return EPOCH_US + ticks * TICK_S * 1_000_000

    def sent(self, world: World, happened: Happened, *, stop: bool = False) -> Sent:
        """Return what happened, at the clocks of this moment."""
        return Sent(happened, self.now_us(world), float(world.t * TICK_S), stop)

    # --- a worker comes to its next wish ---------------------------------------------------------

    def go(
        self,
        action: str,
        world: World,
        w: int,
        name: Hashable,
        happened: Happened,
        *,
        stop: bool = False,
    ) -> Step:
        """Send a worker what happened, and let it come to what it wants next."""
        number = world.workers[w].carrying
        number = self.carryings.advance(number, name, self.sent(world, happened, stop=stop))
        return self.arrived(action, world, w, number)

    def arrived(self, action: str, world: World, w: int, number: int) -> Step:
        """Return the step that leaves worker ``w`` in this state of its carrying."""
        number = self.read(world, w, number)
        state = self.carryings[number]
        worker = world.workers[w]
        wrong = None
        if state.command is None:
            worker = worker._replace(phase=Phase.IDLE, carrying=-1, remembered=state.remembered)
            if state.ended is not None:
                wrong = invariants.wrong_end(state.ended, self.streams[world.stream].events)
        else:
            worker = worker._replace(carrying=number)
        world = world._replace(workers=replaced(world.workers, w, worker))
        for i, request in enumerate(world.requests):
            if request.sender == w and request.call is CallIs.DISPATCHED:
                if isinstance(state.command, Call):
                    world = with_request(world, i, request._replace(call=CallIs.RUNNING))
                elif not isinstance(state.command, ReadToken):  # it looked, and did not send
                    world = with_request(world, i, Request(w, 0, Place.LOST, CallIs.ENDED))
        return action, world, wrong

    def read(self, world: World, w: int, number: int) -> int:
        """Let a carrying read the store and the locks for as long as it wants nothing else."""
        while True:
            command = self.carryings[number].command
            happened: Happened
            name: Hashable
            if isinstance(command, Load):
                happened, name = self.streams[world.stream].history, ("load", world.stream)
            elif isinstance(command, Prove):
                dead = self.proven_dead(world, w, command.workers)
                happened, name = dead, ("dead", *dead)
            elif isinstance(command, ReadToken) and self.bounds.at_once == 1:
                happened = name = world.ledger.lease  # only the lease itself moves in between
            else:
                return number
            number = self.carryings.advance(number, name, self.sent(world, happened))

    def proven_dead(self, world: World, w: int, workers: tuple[str, ...]) -> dict[str, str]:
        """Return which of these workers the machine proves dead."""
        dead = {f"w{i}" for i, x in enumerate(world.workers) if x.phase is Phase.DEAD}
        if self.bounds.backends_lie:
            dead = {f"w{i}" for i in range(len(world.workers)) if i != w}
        elif not self.bounds.same_host:
            return {}
        return {name: "its lock is free" for name in workers if name in dead}

    # --- the store -------------------------------------------------------------------------------

    def stored(self, world: World, w: int, command: Append) -> World:
        """Return the moment after an append that found the stream as it was read."""
        world = self.with_events(world, command.events)
        if isinstance(command.events[-1].body, Dispatched):
            timed = self.promises.sender_pause_max_s is not None
            token = self.streams.history(world.stream).attempts[-1].token
            request = Request(w, token, dispatched_t=world.t if timed else 0)
            world = world._replace(requests=(*world.requests, request))
        return world

    def with_events(self, world: World, events: tuple[NewEvent, ...]) -> World:
        """Return the moment after these events were appended, by anybody."""
        stream = self.streams.append(world.stream, events, self.now_us(world))
        return world._replace(stream=stream)

    def call_ended(self, request: Request, t: int) -> Request:
        """The call is over: what was not written never will be."""
        place = Place.LOST if request.place is Place.NOT_WRITTEN else request.place
        if place is not Place.IN_FLIGHT:
            return Request(request.sender, 0, place, CallIs.ENDED)
        timed = self.promises.settles_within_s is not None
        return request._replace(call=CallIs.ENDED, ended_t=t if timed else 0)


def with_request(world: World, i: int, request: Request) -> World:
    """Return a moment with one request changed."""
    return world._replace(requests=replaced(world.requests, i, request))


def replaced(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    """Return a tuple with one item changed."""
    return (*items[:index], item, *items[index + 1 :])
