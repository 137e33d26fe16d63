"""Draws docs/lifecycle.svg from the tables that decide: run it with ``make diagrams``.

The upper half are the states of one attempt and the commands that lead from each to another; the
lower half says what is known of an operation, read off its attempts. A state without a place here
is an error, so that the picture cannot leave one out.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from counterfoil.mission.transitions import ATTEMPTS, DISPOSITIONS
from counterfoil.mission.vocabulary import AttemptStatus

TARGET = Path(__file__).with_name("lifecycle.svg")

WIDTH, HEIGHT = 860, 520
BOX_WIDTH, BOX_HEIGHT = 140, 44
LINE = 16
ENTERING = ("admit", "retry", "compensate")
"""The commands that make an attempt; they begin at no state, so no row of the table names them."""


class Place(NamedTuple):
    """The middle of a box."""

    x: int
    y: int


PLACES = {
    AttemptStatus.PREPARED: Place(230, 110),
    AttemptStatus.DISPATCHED: Place(490, 110),
    AttemptStatus.SETTLED: Place(750, 110),
    AttemptStatus.RELEASED: Place(230, 240),
}
STYLE = """text { font: 14px sans-serif; fill: #1b1b1b }
.word { font-size: 13px; fill: #444 }
.head { font-weight: bold }
rect.box { fill: #f2f5f9; stroke: #33506e; stroke-width: 1.5 }
path { fill: none; stroke: #33506e; stroke-width: 1.5; marker-end: url(#tip) }"""


def text(x: int, y: int, words: str, kind: str = "", anchor: str = "middle") -> str:
    """Return one line of text."""
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{kind}>{words}</text>'


def stacked(x: int, bottom: int, lines: list[str], anchor: str = "middle") -> list[str]:
    """Return lines of text, the last at ``bottom``."""
    top = bottom - LINE * (len(lines) - 1)
    return [text(x, top + LINE * at, line, "word", anchor) for at, line in enumerate(lines)]


def box(status: AttemptStatus) -> list[str]:
    """Return a state."""
    x, y = PLACES[status]
    left, top = x - BOX_WIDTH // 2, y - BOX_HEIGHT // 2
    frame = f'<rect class="box" x="{left}" y="{top}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}"'
    return [f'{frame} rx="8"/>', text(x, y + 5, status.value, "head")]


def arrow(before: AttemptStatus, after: AttemptStatus, words: list[str]) -> list[str]:
    """Return the way from one state to another, or back to itself, and what takes it."""
    a, b = PLACES[before], PLACES[after]
    if before is after:
        top = a.y - BOX_HEIGHT // 2
        way = f"M{a.x - 30},{top} C{a.x - 45},{top - 34} {a.x + 45},{top - 34} {a.x + 30},{top}"
        return [f'<path d="{way}"/>', *stacked(a.x, top - 32, words)]
    if a.y == b.y:
        way = f"M{a.x + BOX_WIDTH // 2},{a.y} L{b.x - BOX_WIDTH // 2 - 2},{b.y}"
        return [f'<path d="{way}"/>', *stacked((a.x + b.x) // 2, a.y - 8, words)]
    way = f"M{a.x},{a.y + BOX_HEIGHT // 2} L{b.x},{b.y - BOX_HEIGHT // 2 - 2}"
    return [f'<path d="{way}"/>', *stacked(a.x + 10, (a.y + b.y) // 2 + 5, words, "start")]


def attempts() -> list[str]:
    """Return the states of an attempt, and every row of the table as an arrow."""
    missing = {s for key, after in ATTEMPTS.items() for s in (key[0], after)} - PLACES.keys()
    if missing:
        raise ValueError(f"no place for {', '.join(sorted(missing))}")
    words: dict[tuple[AttemptStatus, AttemptStatus], list[str]] = {}
    for (before, step), after in ATTEMPTS.items():
        words.setdefault((before, after), []).append(step.name.lower().replace("_", " "))
    first = PLACES[AttemptStatus.PREPARED]
    drawn = [f'<path d="M70,{first.y} L{first.x - BOX_WIDTH // 2 - 2},{first.y}"/>']
    drawn += stacked(112, first.y - 8, list(ENTERING))
    for (before, after), steps in words.items():
        drawn += arrow(before, after, steps)
    for status in PLACES:
        drawn += box(status)
    return drawn


def dispositions() -> list[str]:
    """Return the table of what is known of an operation."""
    top, columns = 340, (40, 230, 400, 570)
    heads = ("one is dispatched", "one was applied", "one was settled", "the operation is")
    drawn = [text(columns[0], top - 28, "Of its attempts", "word", "start")]
    drawn += [text(x, top, head, "head", "start") for x, head in zip(columns, heads, strict=True)]
    for row, (facts, disposition) in enumerate(DISPOSITIONS.items(), 1):
        said = [*("yes" if fact else "no" for fact in facts), disposition.value]
        y = top + 8 + row * 24
        drawn += [text(x, y, word, "", "start") for x, word in zip(columns, said, strict=True)]
    return drawn


def svg() -> str:
    """Return the picture; equal tables give equal bytes."""
    tip = (
        '<marker id="tip" markerWidth="9" markerHeight="9" refX="7" refY="4" orient="auto">'
        '<polygon points="0,0 8,4 0,8" fill="#33506e"/></marker>'
    )
    view = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    name = "Lifecycle of an attempt, and what is known of its operation"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {view} role="img" aria-label="{name}">',
        f"<title>{name}</title>",
        f"<style>{STYLE}</style>",
        f"<defs>{tip}</defs>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        *attempts(),
        *dispositions(),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(svg(), "utf-8")
