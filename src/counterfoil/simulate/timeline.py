"""A path through a search as lines for people: what happened, and what the store took."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.operation.events import (
    Answered,
    Body,
    Dispatched,
    Event,
    Excluded,
    Leased,
    Replied,
    Settled,
)

if TYPE_CHECKING:
    from counterfoil.simulate.explore import Found
    from counterfoil.simulate.space import Space


def timeline(space: Space, found: Found) -> str:
    """Return the path to the wrong moment, a line for each step and for each stored event."""
    lines = [f"{space.owner.name}: {found.wrong}"]
    stored = 0
    for place, (action, world) in enumerate(found.path, 1):
        lines.append(f"{place:3}. t={world.t}  {action}")
        events = space.streams[world.stream].events
        lines += [f"             {in_words(event)}" for event in events[stored:]]
        stored = len(events)
    if found.path:
        effects = found.path[-1][1].ledger.effects
        lines.append(f"     the owner holds {len(effects)} effect(s)")
    return "\n".join(lines)


def in_words(event: Event) -> str:
    """Say what an event says, on one line."""
    return f"{event.n}: {_said(event.body)}" + (
        f", token {event.token}" if event.token is not None else ""
    )


def _said(body: Body) -> str:
    match body:
        case Leased():
            return "leased"
        case Dispatched():
            return f"attempt {body.attempt} dispatched under {body.key!r} ({body.basis})"
        case Replied():
            how = "" if body.refusal is None else f" ({body.refusal})"
            return f"attempt {body.attempt} {body.kind}{how}" + ("" if body.ended else ", running")
        case Excluded():
            return f"{body.worker} excluded: {body.because}"
        case Answered():
            believed = f"believed: {body.basis}" if body.basis else "not believed"
            believed = "" if body.result == "present" else f", {believed}"
            return f"asked after {body.asked_after}: {body.result}{believed}"
        case Settled():
            return f"settled {body.outcome}: {body.text}"
        case _:
            return type(body).__name__.lower()
