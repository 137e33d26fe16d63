"""The real protocol as values: each state that its generator can be in gets a number.

A generator cannot be copied, so a state is kept as what was sent to it since it began, and built
again by sending that once more. Two states are one if every frame stands at the same instruction
with equal locals and the carrier's fields are equal: then they will do the same for ever.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from counterfoil.errors import CounterfoilError
from counterfoil.operation.task import Ended, Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from types import FrameType, GeneratorType

    from counterfoil.operation.commands import Command, Sent
    from counterfoil.operation.task import Carrying

NOT_READ_AGAIN = frozenset(
    {"task", "now_us", "monotonic_s", "acted", "live_value", "in_doubt_since_s"}
)
"""Fields of a carrier that cannot change what it does next: the task is part of the state's name,
both clocks are read anew with every command, a doubt's beginning counts only against a patience,
which is endless here, and the rest only goes into the result."""


class Remembered(NamedTuple):
    """What a process remembers of an operation between two carryings (``Memory``), frozen."""

    ends: tuple[tuple[int, float], ...] = ()
    questions: int = 0
    last_question_at_s: float | None = None

    def thaw(self) -> Memory:
        """Return a memory of its own for one generator."""
        return Memory(dict(self.ends), self.questions, self.last_question_at_s)


class State(NamedTuple):
    """One state of a carrying: what it waits for, or how it ended, and what it will remember."""

    command: Command | None
    remembered: Remembered
    ended: Ended | None = None
    error: str | None = None


@dataclasses.dataclass(slots=True)
class _Node:
    state: State
    task: int
    parent: int
    sent: Sent | None
    live: Carrying | None


class Carryings:
    """The table of states, and the ways between them that were taken already."""

    def __init__(self) -> None:
        self._nodes: list[_Node] = []
        self._numbers: dict[Hashable, int] = {}
        self._ways: dict[tuple[Hashable, ...], int] = {}
        self._begun: dict[Hashable, int] = {}
        self._makers: list[Callable[[], Carrying]] = []

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, number: int) -> State:
        return self._nodes[number].state

    def begin(self, name: Hashable, make: Callable[[], Carrying]) -> int:
        """Return the first state of the carrying that ``make`` makes; ``name`` tells it apart."""
        if name not in self._begun:
            self._makers.append(make)
            carrying = make()
            task = len(self._makers) - 1
            self._begun[name] = self._number(task, -1, None, carrying, next(carrying))
        return self._begun[name]

    def advance(self, number: int, name: Hashable, sent: Sent) -> int:
        """Return the state after ``sent``; ``name`` tells apart what was sent."""
        way = (number, name, sent.now_us, sent.monotonic_s, sent.stop)
        known = self._ways.get(way)
        if known is not None:
            return known
        node = self._nodes[number]
        carrying = self._wake(number)
        memory = carrier_of(carrying).memory
        try:
            found = self._number(node.task, number, sent, carrying, carrying.send(sent))
        except StopIteration as stop:
            ended = cast("Ended", stop.value)
            found = self._ended(node.task, State(None, remembered(memory), ended))
        except CounterfoilError as error:
            found = self._ended(node.task, State(None, remembered(memory), None, str(error)))
        self._ways[way] = found
        return found

    def _wake(self, number: int) -> Carrying:
        """Return a generator in this state: the one that came here first, or one built again."""
        node = self._nodes[number]
        if node.live is not None:
            carrying, node.live = node.live, None
            return carrying
        path: list[Sent] = []
        while node.sent is not None:
            path.append(node.sent)
            node = self._nodes[node.parent]
        carrying = self._makers[node.task]()
        next(carrying)
        for sent in reversed(path):
            carrying.send(sent)
        return carrying

    def _number(
        self, task: int, parent: int, sent: Sent | None, carrying: Carrying, command: Command
    ) -> int:
        key = (task, type(command).__name__, frozen(command), *frames_of(carrying))
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self._nodes)
            state = State(command, remembered(carrier_of(carrying).memory))
            self._nodes.append(_Node(state, task, parent, sent, carrying))
        return known

    def _ended(self, task: int, state: State) -> int:
        ended = state.ended
        outcome = None if ended is None else (ended.status, ended.reason.code)
        key = (task, outcome, state.error, state.remembered)
        known = self._numbers.get(key)
        if known is None:
            known = self._numbers[key] = len(self._nodes)
            self._nodes.append(_Node(state, task, -1, None, None))
        return known


class Carrier(Protocol):
    """The part of the protocol's state that outlives one carrying."""

    memory: Memory


def remembered(memory: Memory) -> Remembered:
    """Return a memory as it is now."""
    ends = tuple(sorted(memory.ends.items()))
    return Remembered(ends, memory.questions, memory.last_question_at_s)


def carrier_of(carrying: Carrying) -> Carrier:
    """Return the object whose method the generator runs: all that outlives its frames."""
    frame = cast("GeneratorType[Command, Sent, object]", carrying).gi_frame
    assert frame is not None
    return cast("Carrier", frame.f_locals["self"])


def frames_of(carrying: Carrying) -> list[Hashable]:
    """Return where each frame of a suspended generator stands, and all that it can still read."""
    found: list[Hashable] = []
    inner: object = carrying
    carrier = carrier_of(carrying)
    while inner is not None and hasattr(inner, "gi_frame"):
        generator = cast("GeneratorType[Command, Sent, object]", inner)
        frame: FrameType | None = generator.gi_frame
        assert frame is not None
        found += [frame.f_code.co_name, frame.f_lasti]
        for name, value in frame.f_locals.items():
            if name != "self":
                found += [name, frozen(value)]
        inner = generator.gi_yieldfrom
    assert dataclasses.is_dataclass(carrier)
    for field in dataclasses.fields(carrier):
        if field.name not in NOT_READ_AGAIN:
            found.append(frozen(getattr(carrier, field.name)))
    return found


def frozen(value: object) -> Hashable:
    """Return a value that is hashable and equal exactly where the given one is."""
    if isinstance(value, dict):
        return tuple(sorted((name, frozen(item)) for name, item in value.items()))
    if isinstance(value, list):
        return tuple(frozen(item) for item in value)
    if isinstance(value, Memory):
        return remembered(value)
    try:
        hash(value)
    except TypeError:
        assert isinstance(value, tuple)
        return tuple(frozen(item) for item in value)
    return value
