"""Every run of one worker at a time: the real generator, and a world that does its worst.

A node is the world and what the generator was sent so far; the generator is run anew for each node,
so nothing of the product is copied. The worker may crash at every command, and is started again.
Checked on the owner's ledger alone: at most one effect, and an outcome that stays true whatever is
still on the wire.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from counterfoil.operation import commands as c
from counterfoil.operation.events import Event, Opened
from counterfoil.operation.history import History, advance, begin
from counterfoil.operation.identity import StreamId
from counterfoil.operation.next_step import Policy
from counterfoil.operation.promises import Fences, Promises
from counterfoil.operation.protocol import carry
from counterfoil.operation.replies import (
    Answer,
    NoAnswer,
    Refusal,
    Reply,
    ReplyKind,
    Result,
    Status,
)
from counterfoil.operation.task import Ended, Memory, Task

if TYPE_CHECKING:
    from collections.abc import Iterator

TICK_S = 10.0
TICKS_MAX = 12
RESTARTS_MAX = 1
ADVERSE = ("! ",)
QUESTIONS_MAX = 2
FAULTS_MAX = 3
"""Crashes, replies that are lost or late, and answers that are missing or not final, in one run."""
STREAM = StreamId("ns", "t", "o")


class Kind(NamedTuple):
    """An owner: what it promises, and what it really does within that."""

    name: str
    promises: Promises
    asked: bool = True
    partial: bool = False
    refuses: bool = False
    hangs: bool = True
    faults_max: int = FAULTS_MAX


class Request(NamedTuple):
    """A request of ours. ``left`` is False while its sender has not written it."""

    attempt: int
    key: str
    token: int
    dispatched_at: int
    left: bool = True
    ended_at: int | None = None


@dataclass(frozen=True)
class World:
    """What is outside the generator. ``events`` is the durable stream; ``tick`` is the time."""

    events: tuple[Event, ...] = ()
    wire: tuple[Request, ...] = ()
    effects: int = 0
    remembered: bool = False
    bar: int = 0
    first_landed_at: int | None = None
    tick: int = 0
    worker: int = 1
    restarts: int = 0
    questions: int = 0
    faults: int = 0

    def history(self) -> History | None:
        found: History | None = None
        for event in self.events:
            found = begin(event) if found is None else advance(found, event)
        return found


class Node(NamedTuple):
    """A world, what the present process was sent since it started, and how we came here."""

    world: World
    sent: tuple[c.Sent, ...]
    steps: tuple[str, ...]


class Violation(Exception):
    """Something that must never be, with the timeline that led there."""

    def __init__(self, what: str, steps: tuple[str, ...]) -> None:
        super().__init__("\n  ".join([what, *steps]))


@dataclass
class Search:
    """All runs against one kind of owner. ``states`` and ``transitions`` count what was seen."""

    kind: Kind
    states: int = 0
    transitions: int = 0
    outcomes: set[str] = field(default_factory=set)

    def run(self) -> None:
        """Visit every state. Raises ``Violation``."""
        seen: set[object] = set()
        waiting = [Node(World(), (), ())]
        while waiting:
            node = waiting.pop()
            command, key = self.resume(node)
            if key in seen:
                continue
            seen.add(key)
            self.states += 1
            for following in self.follow(node, command):
                self.transitions += 1
                self.check_ledger(following)
                waiting.append(following)

    # --- the real generator ----------------------------------------------------------------------

    def resume(self, node: Node) -> tuple[c.Command | Ended, object]:
        """Run the generator to where the node stands; return what it wants, and the state's key."""
        memory = Memory()
        number = iter(range(1_000_000))
        task = Task(
            stream=STREAM,
            opened=Opened("act", "own", "k", "sha256:" + "0" * 64, "{}", None, {}),
            worker=f"w{node.world.worker}",
            promises=self.kind.promises,
            policy=Policy(
                can_ask=self.kind.asked,
                deadline_s=1.0,
                ends_within_s=None if self.kind.hangs else 1.0,
                ask_delays_s=(0.0, TICK_S),
                resend_delay_s=0.0,
            ),
            new_id=lambda: next(number).to_bytes(16, "big"),
            lease_s=1000.0,
            patience_s=1.5 * TICK_S,
            memory=memory,
        )
        opened = task.opened
        assert opened is not None
        task = task._replace(opened=opened._replace(promises=self.kind.promises.to_json()))
        carrying = carry(task)
        try:
            command: c.Command | Ended = next(carrying)
            for one in node.sent:
                command = carrying.send(one)
        except StopIteration as stop:
            command = stop.value
        frame = tuple(sorted(memory.ends.items())), memory.questions, memory.last_question_at_s
        place = command if not isinstance(command, Ended) else (command.status, command.reason)
        return command, (type(command), hashable(place), frame, key_of(node.world))

    # --- what may happen next --------------------------------------------------------------------

    def follow(self, node: Node, command: c.Command | Ended) -> Iterator[Node]:
        world = node.world
        for index, request in enumerate(world.wire):
            if request.left and self.may_land(world, request):
                landed = self.land(world, index)
                yield node._replace(world=landed, steps=(*node.steps, f"{request.attempt} lands"))
            if not request.left and self.may_be_written(world, request):
                wire = replaced(world.wire, index, request._replace(left=True))
                left = replace(world, wire=wire)
                step = f"the hung call of {request.attempt} is written"
                yield node._replace(world=left, steps=(*node.steps, step))
        if isinstance(command, Ended):
            self.check_outcome(node, command)
            if command.history.settled is None and world.restarts < RESTARTS_MAX:
                fresh = replace(self.while_away(world), restarts=world.restarts + 1, questions=0)
                yield Node(fresh, (), (*node.steps, "again"))
            return
        yield from self.crash(node, "crash")
        for happened, seen, step in self.happen(world, command):
            adverse = step.startswith(ADVERSE)
            if adverse and seen.faults >= self.kind.faults_max:
                continue
            after = replace(seen, faults=seen.faults + 1) if adverse else seen
            now_us = 10**12 + round(after.tick * TICK_S * 1e6)
            sent = c.Sent(happened, now_us, after.tick * TICK_S)
            following = Node(after, (*node.sent, sent), (*node.steps, step) if step else node.steps)
            yield following
            if isinstance(command, c.Append | c.Call):
                yield from self.crash(following, "crash after it")

    def crash(self, node: Node, step: str) -> Iterator[Node]:
        """The process ends: what it had not written is gone, what is on the wire is not."""
        world = node.world
        if world.restarts >= RESTARTS_MAX or world.faults >= self.kind.faults_max:
            return
        wire = tuple(
            r if r.ended_at is not None else r._replace(ended_at=world.tick)
            for r in world.wire
            if r.left
        )
        after = replace(
            self.while_away(world),
            wire=wire,
            worker=world.worker + 1,
            restarts=world.restarts + 1,
            questions=0,
            faults=world.faults + 1,
        )
        yield Node(after, (), (*node.steps, step))

    def while_away(self, world: World) -> World:
        """Nobody carries it for longer than the owner remembers a key, where it forgets at all."""
        keeps_s = self.kind.promises.key_retention_s
        return world if keeps_s is None else self.later(world, int(keeps_s // TICK_S) + 1)

    def happen(self, world: World, command: c.Command) -> Iterator[tuple[c.Happened, World, str]]:
        match command:
            case c.Load():
                yield world.history(), world, ""
            case c.Append():
                after = self.append(world, command)
                yield c.Appended(history_of(after)), after, said(after.events[len(world.events) :])
            case c.Prove():
                yield dict.fromkeys(command.workers, "its process ended"), world, "proven dead"
            case c.Pause():
                ticks = max(1, -int(-(command.until_s - world.tick * TICK_S) // TICK_S))
                if world.tick + ticks <= TICKS_MAX:
                    yield None, self.later(world, ticks), f"{ticks} ticks pass"
            case c.ReadToken():
                yield world.bar, world, ""
            case c.RaiseFence():
                yield True, replace(world, bar=max(world.bar, command.token)), "fence raised"
            case c.Call():
                yield from self.call(world, command)
            case c.Question():
                if world.questions < QUESTIONS_MAX:
                    asked = replace(world, questions=world.questions + 1)
                    yield from self.answer(asked, command)

    def append(self, world: World, command: c.Append) -> World:
        assert command.expected_n == len(world.events)
        events, at_us = list(world.events), 10**12 + round(world.tick * TICK_S * 1e6)
        for new in command.events:
            n = len(events) + 1
            token = n if new.takes_token else new.token
            events.append(Event(n, at_us + n, new.worker, token, new.body))
        return replace(world, events=tuple(events))

    def call(self, world: World, command: c.Call) -> Iterator[tuple[c.Happened, World, str]]:
        attempt = command.attempt
        request = Request(attempt.number, attempt.key, attempt.token, world.tick)
        name = f"{attempt.number} is sent"
        hung = replace(world, wire=(*world.wire, request._replace(left=False)))
        if self.kind.hangs:
            step = f"! {name}: hangs, nothing written yet"
            yield Reply(ReplyKind.TIMEOUT, ended=False), hung, step
        written = replace(world, wire=(*world.wire, request._replace(ended_at=world.tick)))
        yield Reply(ReplyKind.TIMEOUT), written, f"! {name}: times out, still on the wire"
        lost = replace(world, wire=(*world.wire, request))
        landed = self.land(lost, len(lost.wire) - 1)
        refused_token = landed.effects == world.effects and attempt.token < world.bar
        confirmed = (
            Reply(ReplyKind.NO_EFFECT, Refusal.TOKEN)
            if refused_token
            else Reply(ReplyKind.CONFIRMED)
        )
        yield confirmed, landed, f"{name}: lands, the reply comes"
        yield Reply(ReplyKind.CONNECTION_LOST), landed, f"! {name}: lands, the reply is lost"
        yield Reply(ReplyKind.NO_EFFECT, Refusal.NOT_SENT), world, f"! {name}: nothing was written"
        if self.kind.refuses and not world.remembered:
            yield Reply(ReplyKind.NO_EFFECT, Refusal.DEFINITE), world, f"{name}: refused"
            yield Reply(ReplyKind.CONNECTION_LOST), world, f"! {name}: refused, the reply is lost"

    def answer(self, world: World, asked: c.Question) -> Iterator[tuple[c.Happened, World, str]]:
        promises = self.kind.promises
        if promises.fences is Fences.ON_ASK and asked.fence is not None:
            world = replace(world, bar=max(world.bar, asked.fence))
        yield NoAnswer("silence"), world, "! asked: no answer"
        if world.effects:
            yield Answer(Result.PRESENT), world, "asked: present"
        if not world.effects:
            yield Answer(Result.ABSENT), world, "! asked: absent, not final"
        if self.kind.partial:
            partial = Answer(Result.ABSENT, says_final=True, partial=True)
            yield partial, world, "! asked in a partial view: absent"
        if not world.effects and promises.final_by_answer:
            # No request that left its sender before this answer can commit after it.
            wire = tuple(r for r in world.wire if not r.left)
            yield Answer(Result.ABSENT, says_final=True), replace(world, wire=wire), "absent, final"
        if not world.effects and not promises.final_by_answer:
            yield Answer(Result.ABSENT, says_final=True), world, "absent, said to be final"

    # --- the owner and the wire ------------------------------------------------------------------

    def may_land(self, world: World, request: Request) -> bool:
        """Whether a request can still commit under what the owner promises."""
        settles_s = self.kind.promises.settles_within_s
        if settles_s is None or request.ended_at is None:
            return True
        return (world.tick - request.ended_at) * TICK_S <= settles_s

    def may_be_written(self, world: World, request: Request) -> bool:
        """Whether a sender may be frozen that long, under what the user says of senders."""
        pause_s = self.kind.promises.sender_pause_max_s
        return pause_s is None or (world.tick - request.dispatched_at) * TICK_S <= pause_s

    def land(self, world: World, index: int) -> World:
        request, promises = world.wire[index], self.kind.promises
        wire = (*world.wire[:index], *world.wire[index + 1 :])
        stopped = promises.fences.stop_older_sends and request.token < world.bar
        repeated = promises.deduplicates and world.remembered
        if stopped or repeated:
            return replace(world, wire=wire)
        at = world.first_landed_at if world.first_landed_at is not None else world.tick
        return replace(
            world, wire=wire, effects=world.effects + 1, remembered=True, first_landed_at=at
        )

    def later(self, world: World, ticks: int) -> World:
        tick = world.tick + ticks
        keeps_s, at = self.kind.promises.key_retention_s, world.first_landed_at
        forgets = keeps_s is not None and at is not None and (tick - at) * TICK_S > keeps_s
        return replace(world, tick=tick, remembered=world.remembered and not forgets)

    # --- what must hold --------------------------------------------------------------------------

    def check_ledger(self, node: Node) -> None:
        if node.world.effects > 1:
            raise Violation("two effects", node.steps)
        history = node.world.history()
        settled = history.settled if history is not None else None
        if settled is not None and settled.outcome is Status.NOT_RUN and node.world.effects:
            raise Violation("settled as not run, and there is an effect", node.steps)
        if settled is not None and settled.outcome is Status.COMMITTED and not node.world.effects:
            raise Violation("settled as committed, and there is no effect", node.steps)

    def check_outcome(self, node: Node, ended: Ended) -> None:
        self.outcomes.add(ended.status)
        effects = node.world.effects
        if ended.status is Status.COMMITTED and effects != 1:
            raise Violation(f"reported committed with {effects} effects", node.steps)
        if ended.status is Status.NOT_RUN and effects:
            raise Violation("reported not run with an effect", node.steps)


def history_of(world: World) -> History:
    found = world.history()
    assert found is not None
    return found


def replaced(wire: tuple[Request, ...], index: int, by: Request) -> tuple[Request, ...]:
    return (*wire[:index], by, *wire[index + 1 :])


def key_of(world: World) -> object:
    """The world as a value; an event's promises are the same in all of them."""
    stream = tuple(
        (e.at_us // round(TICK_S * 1e6), e.worker, e.token, e.body) for e in world.events[1:]
    )
    return stream, replace(world, events=())


def hashable(place: object) -> object:
    """What the generator wants, without random ids and values that cannot be hashed."""
    if isinstance(place, c.Append):
        return place.expected_n, tuple((type(e.body), repr(e.body)) for e in place.events)
    return repr(place)


def said(events: tuple[Event, ...]) -> str:
    return "stored: " + ", ".join(type(event.body).__name__ for event in events)


def kinds() -> list[Kind]:
    """Every kind of owner that one worker can meet."""
    plain = Promises()
    final = replace(plain, final_by_answer=True)
    settles = replace(plain, settles_within_s=TICK_S / 2)
    forever = replace(plain, deduplicates=True)
    limited = replace(
        plain,
        deduplicates=True,
        key_retention_s=4 * TICK_S,
        settles_within_s=TICK_S / 2,
        sender_pause_max_s=TICK_S / 2,
    )
    return [
        Kind("promises nothing", plain, partial=True),
        Kind("cannot be asked", plain, asked=False),
        Kind("final by its answer", final, partial=True),
        Kind("final by its answer, and refuses", final, refuses=True),
        Kind("settles within a time", settles, partial=True),
        Kind("deduplicates for ever", forever, asked=False),
        Kind("deduplicates for a time", limited, asked=False, hangs=False),
        Kind("deduplicates for a time, its calls may hang", limited, asked=False),
        Kind("fences on ask", replace(plain, fences=Fences.ON_ASK), faults_max=2),
        Kind("fences by a call", replace(plain, fences=Fences.BY_CALL), faults_max=2),
        Kind("learns tokens from sends", replace(plain, fences=Fences.ON_SEND)),
    ]
