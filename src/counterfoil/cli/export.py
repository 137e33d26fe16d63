"""``counterfoil export``: trails out of a database, for any reader."""

from __future__ import annotations

from pathlib import Path

import click

from counterfoil.coordinator.clock import SystemClock
from counterfoil.coordinator.export import lines
from counterfoil.store.sqlite import SqliteStore


@click.command(
    epilog="""\b
Examples:
  counterfoil export effects.db > trails.jsonl
  counterfoil export effects.db refund-1042 | counterfoil verify -

\b
Exit codes: 0 written, 1 no such operation, 2 unusable input, 3 unusable database
"""
)
@click.argument("database", metavar="DB")
@click.argument("operation_ids", metavar="[ID]...", nargs=-1)
@click.option("--namespace", default="default", show_default=True, help="Which book of the file.")
@click.option("--tenant", default=None, help="Only this tenant's operations.")
def command(
    database: str, operation_ids: tuple[str, ...], namespace: str, tenant: str | None
) -> None:
    """Write operations as uncertain-effect/v1 records, one JSON line each.

    Every record states only what was observed, and `counterfoil verify` judges it.
    """
    store = SqliteStore(Path(database), create=False, now_us=SystemClock().now_us)
    try:
        for text in lines(store, namespace, tenant, operation_ids):
            click.echo(text)
    finally:
        store.close()


__all__ = ["command"]
