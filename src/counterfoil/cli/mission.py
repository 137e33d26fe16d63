"""``counterfoil mission``: fold a file of commands, and digest an action.

Exit codes: 0 all accepted, 1 some commands refused, 2 input that cannot be used. With exit code
2 nothing is on stdout: the line and the JSON Pointer are on stderr.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import rfc8785

from counterfoil.errors import BadInput
from counterfoil.mission import (
    CommandError,
    CommandRejected,
    MissionInput,
    State,
    action_digest,
    create_mission,
    parse_contract,
    parse_line,
    reduce,
)
from counterfoil.mission.errors import shown

if TYPE_CHECKING:
    from counterfoil.mission.parsing import Json


class Rejected(NamedTuple):
    """A line whose command was refused."""

    line: int
    code: str
    detail: str


@click.group(help="Fold a mission's commands: who may spend what, and what came of it.")
def command() -> None:
    """Group the mission commands."""


@command.command()
@click.argument("contract", metavar="CONTRACT.json")
@click.argument("commands", metavar="COMMANDS.jsonl")
@click.option("--json", "as_json", is_flag=True, help="Write the whole state as JSON.")
@click.option(
    "--until",
    type=click.IntRange(min=1),
    metavar="LINE",
    help="Stop after this line, counted from 1; later lines are not read.",
)
@click.pass_context
def replay(
    context: click.Context, contract: str, commands: str, as_json: bool, until: int | None
) -> None:
    """Fold COMMANDS.jsonl over CONTRACT.json and show where it leads.

    Each line is {"now": "10", "command": {...}}; blank lines are skipped. A refused command
    changes nothing and the replay goes on.
    """
    try:
        state = create_mission(parse_contract(_read(contract)))
    except MissionInput as error:
        raise BadInput(f"{shown(contract)}: {error}") from None
    state, rejected = _fold(state, commands, until)
    if as_json:
        refusals: list[Json] = [dict(refusal._asdict()) for refusal in rejected]
        click.echo(rfc8785.dumps({"state": state.plain(), "rejected": refusals}))
    else:
        click.echo("\n".join(_summary(state, rejected)))
    if rejected:
        context.exit(1)


def _fold(state: State, commands: str, until: int | None) -> tuple[State, list[Rejected]]:
    rejected: list[Rejected] = []
    for number, line in enumerate(_read(commands).split(b"\n")[:until], 1):
        if not line.strip():
            continue
        try:
            now_ms, parsed = parse_line(line)
        except CommandError as error:
            raise BadInput(f"{shown(commands)}, line {number}: {error}") from None
        try:
            state = reduce(state, parsed, now_ms)
        except CommandRejected as refusal:
            rejected.append(Rejected(number, refusal.code, refusal.detail))
    return state, rejected


def _summary(state: State, rejected: list[Rejected]) -> list[str]:
    parts = state.parts
    lines = [f"{name:<10} {state[name]}" for name in ("events", "now", "spent", "reserved")]
    lines += [
        f"{name:<10} {len(table)}"
        for name, table in (
            ("runs", parts.runs),
            ("operations", parts.operations),
            ("attempts", parts.attempts),
        )
    ]
    if parts.stopped is not None:
        lines.append(f"{'stopped':<10} at {parts.stopped.at_ms}")
    lines.append(f"{'rejected':<10} {len(rejected)}")
    lines += [f"  line {line}: {code}: {shown(detail)}" for line, code, detail in rejected]
    return lines


@command.command()
@click.argument("action", metavar="ACTION.json")
def digest(action: str) -> None:
    """Print the digest of an action: what an approval names."""
    try:
        click.echo(action_digest(_read(action)))
    except MissionInput as error:
        raise BadInput(f"{shown(action)}: {error}") from None


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "no usable path"
        raise BadInput(
            f"cannot read {shown(path)}: {reason}; check the path and its rights"
        ) from None
