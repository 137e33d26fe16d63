"""``counterfoil adapter``: our own runtimes under the conformance contract."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from counterfoil.errors import BadInput


@click.command(
    epilog="""\b
Examples:
  counterfoil runtime --runtime 'counterfoil adapter'
  counterfoil runtime --runtime 'counterfoil adapter --policy blind'
"""
)
@click.argument("scenario", type=click.Path(path_type=Path), metavar="SCENARIO.json")
@click.option(
    "--policy",
    type=click.Choice(["coordinator", "reconcile", "blind"]),
    default="coordinator",
    show_default=True,
    help="The product; the small reference that asks before it resends; a plain retry wrapper.",
)
def command(scenario: Path, policy: str) -> None:
    """Carry one conformance scenario out against the owner in AEV_EFFECT_OWNER.

    Prints {"outcome": "committed" | "not_run" | "unknown"} as its last line.
    """
    owner_url = os.environ.get("AEV_EFFECT_OWNER")
    if not owner_url:
        raise BadInput(
            "AEV_EFFECT_OWNER is not set; run it with: counterfoil runtime --runtime ..."
        )
    try:
        shown = json.loads(scenario.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{scenario}: no scenario can be read there ({error})") from None
    if policy == "coordinator":
        from counterfoil.cli import adapter

        outcome = adapter.run(shown, owner_url)
    else:
        from counterfoil.conformance.reference import run

        outcome = run(policy, shown, owner_url)
    click.echo(json.dumps({"outcome": outcome}))
