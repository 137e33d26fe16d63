"""The coordinator under a conformance scenario, as a user would run it: the public face alone."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import counterfoil as cf

DEADLINE_S = 2.0
LEASE_S = 6.0
PATIENCE_S = 8.0
DATABASE = "effects.db"


def run(scenario: dict[str, Any], owner_url: str) -> str:
    """Carry the scenario's operation out; return the outcome's word."""
    promised, operation = scenario["owner"], scenario["operation"]
    leased = "lease" in scenario or promised.get("fences", "no") != "no"
    owner = cf.Owner(
        "effect-owner",
        deduplicates=promised["deduplicatesByKey"],
        key_retention=retention(promised),
        settles_within=promised.get("settlesWithinSeconds"),
        final_by=promised.get("finalBy"),
        fences=promised.get("fences") or ("by_lease" if "lease" in scenario else "no"),
    )
    api = cf.HttpOwner(owner_url, deadline=DEADLINE_S, sends_token=leased)
    effect = cf.effect(operation["action"], owner=owner)(api)
    folder = os.environ.get("COUNTERFOIL_STATE_DIR") or tempfile.mkdtemp(prefix="counterfoil-")
    with cf.open(Path(folder) / DATABASE, create=True, lease=LEASE_S, patience=PATIENCE_S) as book:
        outcome = book.perform(
            effect, operation["id"], key=operation["idempotencyKey"], **operation["args"]
        )
    return str(outcome.status)


def retention(promised: dict[str, Any]) -> float | str | None:
    """Say how long the owner remembers a key, where it deduplicates at all."""
    if not promised["deduplicatesByKey"]:
        return None
    kept = promised["keyRetentionSeconds"]
    return "forever" if kept is None else float(kept)
