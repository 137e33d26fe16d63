"""``counterfoil ops``: what people do about unknown effects."""

from __future__ import annotations

from pathlib import Path

import click

import counterfoil as cf


@click.group("ops")
def command() -> None:
    """Decide what no program can: who is dead, and on what evidence."""


@command.command(
    "worker-dead",
    epilog="""\b
Example:
  counterfoil ops worker-dead effects.db w-1f2e3d4c5b6a7988 --by ops@example.com \\
    --evidence 'host db-3 was powered off, INC-204'

\b
Exit codes: 0 recorded, 1 refused, 2 unusable input, 3 unusable database
""",
)
@click.argument("database", metavar="DB", type=click.Path(path_type=Path))
@click.argument("worker", metavar="WORKER")
@click.option("--by", required=True, help="Who declares it.")
@click.option("--evidence", required=True, help="How it is known that it can send nothing more.")
@click.option("--namespace", default="default", show_default=True)
def worker_dead(database: Path, worker: str, by: str, evidence: str, namespace: str) -> None:
    """Declare a worker dead that no lock can prove dead.

    The word is trusted: if the worker can still send, a second effect may follow. On the same host
    it is not needed, since the end of a process proves itself.
    """
    with cf.open(database, namespace=namespace) as book:
        freed = book.people.worker_dead(worker, by=by, evidence=evidence)
    for operation_id in freed:
        click.echo(f"{operation_id!r} can be carried on")
    click.echo(f"worker {worker} is declared dead in {len(freed)} operations")
