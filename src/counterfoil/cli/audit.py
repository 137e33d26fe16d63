"""``counterfoil audit``: is the log whole, and is it all of it?"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from counterfoil.coordinator.audit import audit
from counterfoil.coordinator.clock import SystemClock
from counterfoil.errors import BadInput
from counterfoil.store.sqlite import SqliteStore
from counterfoil.store.witness import Witness


@click.command(
    epilog="""\b
Examples:
  counterfoil audit effects.db
  counterfoil audit effects.db --witness /mnt/elsewhere/effects.witness --json
  counterfoil audit effects.db --accept-gap --by ops@example.com --evidence INC-204

\b
Exit codes: 0 whole, 1 a fault was named, 2 unusable input, 3 unusable database
"""
)
@click.argument("database", metavar="DB", type=click.Path(path_type=Path))
@click.option(
    "--witness",
    "witness_path",
    type=click.Path(path_type=Path),
    help="The checkpoint file; by default the one beside the database.",
)
@click.option("--witness-key", type=click.Path(path_type=Path), help="The key that signs it.")
@click.option("--accept-gap", is_flag=True, help="End the suspicion that operations are missing.")
@click.option("--by", default="", help="Who accepts the gap.")
@click.option("--evidence", default="", help="On what evidence.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a fault.")
def command(
    database: Path,
    witness_path: Path | None,
    witness_key: Path | None,
    accept_gap: bool,
    by: str,
    evidence: str,
    as_json: bool,
) -> int:
    """Walk the whole log and name what is wrong with it.

    A dropped, changed, reordered or grafted event shows in the chain; an older copy of the database
    and a lost tail show against the witness.
    """
    if accept_gap and not (by.strip() and evidence.strip()):
        raise BadInput("--accept-gap takes --by and --evidence: who decides, and on what")
    seen = Witness(witness_path or database.with_name(database.name + ".witness"), key=witness_key)
    store = SqliteStore(database, create=False, now_us=SystemClock().now_us, witness=seen)
    try:
        found = 0
        for fault in audit(store):
            found += 1
            if as_json:
                click.echo(json.dumps(fault._asdict()))
            else:
                where = [] if fault.seq is None else [f"event {fault.seq}"]
                where += [] if fault.operation_id is None else [repr(fault.operation_id)]
                click.echo(f"{fault.code}: {', '.join([*where, fault.text])}")
        if accept_gap:
            if store.suspect is None:
                raise BadInput("there is no gap to accept: the store is not suspect")
            store.accept_gap(by, evidence)
            click.echo("the gap is accepted; new operations are sent without asking first")
            return 0
        if not found and not as_json:
            click.echo("the log is whole")
        return 1 if found else 0
    finally:
        store.close()
        sys.stdout.flush()
