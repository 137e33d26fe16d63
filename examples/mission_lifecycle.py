"""Prints the lifecycle of an attempt, as a Mermaid diagram made from the table that decides it.

Run it with ``python examples/mission_lifecycle.py``: the picture cannot differ from the code.
"""

from __future__ import annotations

from counterfoil.mission.transitions import ATTEMPTS


def diagram() -> str:
    """Return the diagram's text."""
    lines = ["stateDiagram-v2", "    [*] --> PREPARED: admit, retry"]
    lines += [
        f"    {before.value} --> {after.value}: {step.name.lower().replace('_', ' ')}"
        for (before, step), after in ATTEMPTS.items()
    ]
    ends = set(ATTEMPTS.values()) - {before for before, _ in ATTEMPTS}
    lines += [f"    {end.value} --> [*]" for end in sorted(ends)]
    return "\n".join(lines)


if __name__ == "__main__":
    print(diagram())
