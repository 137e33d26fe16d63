"""``counterfoil mission``: fold a file of commands, digest an action, show a database's mission.

Exit codes: 0 all accepted, 1 some commands refused, 2 input that cannot be used, 3 a database that
cannot. With exit code 2 nothing is on stdout: the line and the JSON Pointer are on stderr.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
import rfc8785

from counterfoil.errors import BadInput, Refused
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
    write_amount,
)
from counterfoil.mission.errors import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from counterfoil.coordinator.governed import Money
    from counterfoil.mission.parsing import Json
    from counterfoil.mission.persistent import PersistentMap
    from counterfoil.mission.state import Grant


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


@command.command(
    epilog="""\b
Examples:
  counterfoil mission show effects.db
  counterfoil mission show effects.db --json

\b
Exit codes: 0 shown, 1 no such mission, 2 unusable input, 3 unusable database
"""
)
@click.argument("database", metavar="DB", type=click.Path(path_type=Path))
@click.option("--mission", "mission_id", help="Which one, where the database holds several.")
@click.option("--namespace", default="default", show_default=True, help="Which book of the file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show(database: Path, mission_id: str | None, namespace: str, as_json: bool) -> None:
    """Show a mission: what is spent, held and free, its grants as a tree, its runs and nodes."""
    # Imported here: folding a file of commands needs no database.
    from counterfoil.coordinator.clock import SystemClock
    from counterfoil.coordinator.governed import money_of
    from counterfoil.coordinator.mission_head import loaded
    from counterfoil.store.sqlite import SqliteStore

    now_us = SystemClock().now_us
    with closing(SqliteStore(database, create=False, now_us=now_us)) as store:
        found = [each for each in store.missions() if each.namespace == namespace]
        named = [each for each in found if mission_id in (None, each.operation_id)]
        if not named:
            what = "no mission" if mission_id is None else f"no mission {shown(mission_id)}"
            text = f"{what} in namespace {shown(namespace)}; open a book with mission=contract"
            raise Refused("mission_unknown", text)
        if len(named) > 1:
            names = ", ".join(shown(each.operation_id) for each in named)
            raise BadInput(f"there are several; name one with --mission: {names}")
        state = loaded(store, named[0]).state
    money = money_of(state)
    if as_json:
        click.echo(rfc8785.dumps(_as_json(state, money)))
    else:
        click.echo("\n".join(_as_text(state, money)))


def _tree(grants: PersistentMap[Grant]) -> Iterator[tuple[int, str, Grant]]:
    """Yield (level, id, grant), each grant before those below it."""
    waiting = [(0, name) for name, grant in grants.items() if grant.parent_id is None][::-1]
    while waiting:
        level, name = waiting.pop()
        yield level, name, grants[name]
        waiting += [(level + 1, child) for child in grants[name].children][::-1]


def _as_json(state: State, money: Money) -> dict[str, Json]:
    plain = state.plain()
    rendered = plain["grants"]
    assert isinstance(rendered, dict)
    grants: list[Json] = []
    for level, name, _ in _tree(state.parts.grants):
        grant = rendered[name]
        assert isinstance(grant, dict)
        grants.append({**grant, "level": level})
    return {
        "missionId": state.parts.contract.mission_id,
        **money._asdict(),
        "stopped": plain["stopped"],
        "grants": grants,
        "runs": plain["runs"],
    }


def _as_text(state: State, money: Money) -> list[str]:
    parts = state.parts
    lines = [
        f"mission {shown(parts.contract.mission_id)}",
        f"  budget {money.budget}, spent {money.spent}, held {money.held}, free {money.free}",
    ]
    if parts.stopped is not None:
        lines.append(f"  stopped at {parts.stopped.at_ms} by {shown(parts.stopped.by)}")
    lines.append("grants" if parts.grants else "no grants")
    for level, name, grant in _tree(parts.grants):
        terms = grant.terms
        lines.append(
            f"{'  ' * (level + 1)}{shown(name)}: {shown(terms.subject)} may spend "
            f"{write_amount(terms.limit)}, spent {write_amount(grant.spent)}, "
            f"held {write_amount(grant.reserved)}{', revoked' if grant.revoked else ''}"
        )
    lines.append("runs" if parts.runs else "no runs")
    for name, run in parts.runs.items():
        owner = f", owner {shown(run.owner)}" if run.owner is not None else ""
        unknown = f", {run.unknown} unknown" if run.unknown else ""
        lines.append(f"  {shown(name)}: {run.status.value}, epoch {run.epoch}{owner}{unknown}")
        for node_id, node in run.nodes.items():
            by = f" by {shown(node.operation_id)}" if node.operation_id is not None else ""
            lines.append(f"    {shown(node_id)}: {node.status.value}{by}")
    return lines


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "no usable path"
        raise BadInput(
            f"cannot read {shown(path)}: {reason}; check the path and its rights"
        ) from None
