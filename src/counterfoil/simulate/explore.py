"""Searches every interleaving of one operation, breadth first, until something is wrong or all is
seen: ``python -m counterfoil.simulate.explore --workers 1``.

With ``--without RULE`` a rule is taken out first; the search then has to find a wrong moment.
"""

from __future__ import annotations

import argparse
import gc
import sys
from collections import deque
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, NamedTuple

from counterfoil.simulate import invariants
from counterfoil.simulate.around import surrounding_steps, wire_steps
from counterfoil.simulate.deletions import DELETIONS, without
from counterfoil.simulate.plans import plans
from counterfoil.simulate.space import Space, Step
from counterfoil.simulate.timeline import timeline
from counterfoil.simulate.workers import worker_steps

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from counterfoil.simulate.world import World


class Found(NamedTuple):
    """What a search saw. ``wrong`` is None if everything that was reached is right.

    ``path`` leads from the first moment to the wrong one: each step with the moment after it.
    """

    states: int
    transitions: int
    wrong: str | None = None
    path: tuple[tuple[str, World], ...] = ()


def steps(space: Space, world: World) -> Iterator[Step]:
    """Yield every way on from a moment, with what is wrong after it."""
    for action, after, wrong in _ways(space, world):
        if after == world:
            continue
        stream = space.streams[after.stream]
        found = wrong or (stream.wrong if after.stream != world.stream else None)
        yield action, after, found or invariants.wrong_world(space.owner, after, stream)


def _ways(space: Space, world: World) -> Iterator[Step]:
    for w in range(len(world.workers)):
        yield from worker_steps(space, world, w)
    for i in range(len(world.requests)):
        yield from wire_steps(space, world, i)
    yield from surrounding_steps(space, world)


def search(space: Space, start: World | None = None, only: frozenset[str] | None = None) -> Found:
    """Search from ``start``, the first moment unless given, to the nearest wrong moment.

    ``only`` names the wrongs to look for: past any other the search goes on.
    """
    with _uncollected():
        return _search(space, space.first() if start is None else start, only)


@contextmanager
def _uncollected() -> Iterator[None]:
    """A search makes no cycles and keeps nearly all that it makes: looking for them costs a third
    of its time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _search(space: Space, first: World, only: frozenset[str] | None) -> Found:
    came: dict[World, tuple[World, str] | None] = {first: None}
    waiting = deque([first])
    transitions = 0
    while waiting:
        world = waiting.popleft()
        for action, after, wrong in steps(space, world):
            transitions += 1
            if wrong is not None and (only is None or wrong in only):
                path = [*_path(came, world), (action, after)]
                return Found(len(came) + 1, transitions, wrong, tuple(path))
            if after not in came:
                came[after] = (world, action)
                waiting.append(after)
    return Found(len(came), transitions)


def _path(came: dict[World, tuple[World, str] | None], world: World) -> list[tuple[str, World]]:
    path = []
    while (back := came[world]) is not None:
        path.append((back[1], world))
        world = back[0]
    return path[::-1]


def follow(space: Space, actions: Iterable[str], start: World | None = None) -> World:
    """Return the moment after these actions, one after another.

    Raises ``LookupError``, which lists what may happen instead, and ``AssertionError`` at a moment
    that is wrong.
    """
    world = space.first() if start is None else start
    for action in actions:
        found = {name: (after, wrong) for name, after, wrong in steps(space, world)}
        if action not in found:
            raise LookupError(f"{action!r} cannot happen now, only: {', '.join(sorted(found))}")
        world, wrong = found[action]
        assert wrong is None, f"{action}: {wrong}"
    return world


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the searches of a plan, print what was counted, and the timeline of what went wrong.

    Returns 0 if nothing is wrong; with a rule taken out, 0 if a wrong moment was found. Else 1.
    """
    rules = {deletion.name: deletion for deletion in DELETIONS}
    parser = argparse.ArgumentParser(prog="python -m counterfoil.simulate.explore")
    parser.add_argument("--workers", type=int, choices=(1, 2), default=1)
    parser.add_argument("--full", action="store_true", help="the wide bounds: minutes to hours")
    parser.add_argument("--owner", help="only this kind of owner")
    parser.add_argument("--without", choices=rules, metavar="RULE", help="take this rule out")
    options = parser.parse_args(arguments)
    chosen = [
        plan
        for plan in plans(options.workers, full=options.full)
        if options.owner in (None, plan.owner.name)
    ]
    if not chosen:
        parser.error(f"no owner is called {options.owner!r}; leave it out to search them all")
    states = transitions = wrong = 0
    with ExitStack() as stack:
        if options.without:
            stack.enter_context(without(rules[options.without]))
        for plan in chosen:
            space = Space(plan.owner, plan.bounds)
            found = search(space)
            states, transitions = states + found.states, transitions + found.transitions
            wrong += found.wrong is not None
            print(f"{plan.name}: {found.states} states, {found.transitions} transitions")
            if found.wrong is not None:
                print(timeline(space, found))
                if options.without:
                    break
    print(f"in all: {states} states, {transitions} transitions, {wrong} wrong")
    return int(bool(wrong) != bool(options.without))


if __name__ == "__main__":
    sys.exit(main())
