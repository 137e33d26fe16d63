"""``counterfoil owner``: serves one scenario's effect owner by hand and prints each request."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click

from counterfoil.conformance.ledger import Event, Kind
from counterfoil.conformance.loading import load_file, shipped_scenarios
from counterfoil.conformance.owner_server import OwnerServer
from counterfoil.conformance.report import printable_text
from counterfoil.conformance.scenario import SETS, Scenario, effects_in_words
from counterfoil.errors import BadInput

EPILOG = """\b
Example:
  counterfoil owner commit-then-lost-reply
  curl -d '{"idempotencyKey": "k", "args": {}}' http://127.0.0.1:PORT/effects
"""


@click.command("owner", epilog=EPILOG)
@click.argument("scenario", metavar="SCENARIO")
@click.option(
    "--port", default=0, type=click.IntRange(0, 65535), help="The port; else any free one."
)
def command(scenario: str, port: int) -> int:
    """Serve the effect owner of SCENARIO (a shipped name, or a file) until interrupted.

    Faults of the scenario are not played: there is no process to end. When it stops it lets land
    what is still on the wire, and says what it holds.
    """
    found = _find(scenario)
    try:
        server = OwnerServer(found, port=port, on_event=_print)
    except OSError as error:
        raise BadInput(f"port {port} cannot be used: {error.strerror}; choose another") from None
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    signal.signal(signal.SIGINT, lambda *_: done.set())
    with server:
        click.echo(f"{found.id}: {found.summary}")
        click.echo(f"AEV_EFFECT_OWNER={server.url}")
        done.wait()
        tally = server.tally()
    click.echo(
        f"the owner holds {effects_in_words(len(tally.effects))}; accepted: {found.expected}"
    )
    return 0


def _find(name: str) -> Scenario:
    if name.endswith(".json") or "/" in name:
        return load_file(Path(name))
    for scenario in shipped_scenarios(*SETS):
        if scenario.id == name:
            return scenario
    raise BadInput(f"no scenario {name!r}; `counterfoil runtime --list` shows the shipped ones")


def _print(event: Event) -> None:
    parts = [f"{event.at_ms:>7} ms  {event.kind} {event.number}"]
    if event.key is not None:
        parts.append(f"key={event.key}")
    if event.args is not None:
        parts.append(f"args={event.args}")
    if event.token is not None:
        parts.append(f"token={event.token}")
    if event.kind is Kind.CALL:
        parts.append(f"-> {event.did}")
    parts.append(f"-> {event.answer}")
    click.echo(printable_text("  ".join(parts)))
