"""``counterfoil work``: carries on what is not settled, beside live workers."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

import counterfoil as cf
from counterfoil.cli import apps

if TYPE_CHECKING:
    from types import FrameType


@click.command(
    epilog="""\b
Examples:
  counterfoil work effects.db --app shop.effects
  counterfoil work effects.db --app shop.effects --once

\b
Exit codes: 0 drained or done, 2 unusable input, 3 unusable database
"""
)
@click.argument("database", metavar="DB", type=click.Path(path_type=Path))
@click.option("--app", required=True, metavar="MODULE[:NAME]", help="What declares your effects.")
@click.option("--namespace", default="default", show_default=True)
@click.option(
    "--every",
    "every_s",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0.01, 3600),
    metavar="S",
    help="Seconds between two rounds; each operation is asked about on a widening schedule.",
)
@click.option("--once", is_flag=True, help="One round, then stop.")
def command(database: Path, app: str, namespace: str, every_s: float, once: bool) -> int:
    """Ask about every unsettled operation and settle what can be settled.

    An operation of a dead worker is taken over at once, that of a live one is left to it. SIGTERM
    and SIGINT end it after the operation in hand; nothing is sent afterwards.
    """
    apps.load(app)
    stop = threading.Event()

    def drain(number: int, frame: FrameType | None) -> None:
        del number, frame
        stop.set()

    signal.signal(signal.SIGTERM, drain)
    signal.signal(signal.SIGINT, drain)
    with cf.open(database, namespace=namespace) as book:
        click.echo(f"worker {book.worker_id} carries on {database}", err=True)
        while not stop.is_set():
            for outcome in book.recover(until=stop.is_set):
                if outcome.status is not cf.Status.UNKNOWN or once:
                    click.echo(f"{outcome.operation_id!r}: {outcome.status} ({outcome.why})")
            if once:
                break
            stop.wait(every_s)
    return 0
