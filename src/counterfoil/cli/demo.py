"""``counterfoil demo``: eight lost replies, a plain retry wrapper beside the coordinator."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table

from counterfoil import conformance
from counterfoil.cli import adapter
from counterfoil.coordinator.clock import SystemClock
from counterfoil.coordinator.export import lines
from counterfoil.errors import BadInput
from counterfoil.reader.verdict import Decision, Verdict, judge_bytes
from counterfoil.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from counterfoil.conformance import Scenario

BLIND, COORDINATOR = "blind", "coordinator"
BLIND_FAILS_AT_LEAST = 4
_LIMIT_S = 60


@dataclass
class Line:
    """One scenario: what each runtime left and reported, and how the trail was judged."""

    scenario: Scenario
    left: dict[str, str] = field(default_factory=dict)
    findings: dict[str, list[str]] = field(default_factory=dict)
    trail: str = ""

    def passed(self, policy: str) -> bool:
        """Whether a runtime left and reported what the scenario accepts."""
        return self.findings.get(policy) == []


@click.command(
    epilog="""\b
Exit codes:
  0  the coordinator passes all and every trail is allowed, the retry wrapper fails at least four
  1  something else came out
"""
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo-trails"),
    show_default=True,
    help="Where the trails are written.",
)
@click.option("--jobs", default=4, show_default=True, type=click.IntRange(1, 16))
def command(folder: Path, jobs: int) -> int:
    """Lose replies on purpose, and count what is left at the owner.

    Each of the eight core scenarios runs twice against a counting owner on loopback: once under a
    wrapper that retries after any failure, once under the coordinator. Real processes, real HTTP,
    a real database.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder}: no folder can be made there ({error.strerror})") from None
    rows = [Line(scenario) for scenario in conformance.shipped_scenarios()]
    console = Console()
    tasks = [(row, policy) for row in rows for policy in (BLIND, COORDINATOR)]
    with ThreadPoolExecutor(jobs) as pool, _display(console, rows) as show:
        for row, policy in pool.map(lambda task: _run(task[0], task[1], folder), tasks):
            show(row, policy)
    return _sum_up(console, rows, folder)


def _run(row: Line, policy: str, folder: Path) -> tuple[Line, str]:
    """Run one scenario under one runtime, and judge what it left."""
    scenario = row.scenario
    shown = {"id": scenario.id, **{name: scenario[name] for name in ("operation", "owner")}}
    if "lease" in scenario:
        shown["lease"] = scenario["lease"]
    with (
        tempfile.TemporaryDirectory(prefix="counterfoil-demo-") as state,
        conformance.effect_owner(scenario) as (url, owner),
    ):
        file = Path(state) / "scenario.json"
        file.write_text(json.dumps(shown))
        words = [sys.executable, "-m", "counterfoil", "adapter", "--policy", policy, str(file)]
        environment = {**os.environ, "AEV_EFFECT_OWNER": url, "COUNTERFOIL_STATE_DIR": state}
        ran = subprocess.run(
            words, env=environment, capture_output=True, timeout=_LIMIT_S, check=False
        )
        try:
            outcome = str(json.loads(ran.stdout.splitlines()[-1])["outcome"])
        except (IndexError, ValueError, KeyError):
            outcome = "nothing"
        row.findings[policy] = conformance.judge(scenario, owner, outcome)
        row.left[policy] = f"{len(owner.tally().effects)}, {outcome}"
        if policy == COORDINATOR:
            row.trail = _export(Path(state) / adapter.DATABASE, folder / f"{scenario.id}.jsonl")
    return row, policy


def _export(database: Path, file: Path) -> str:
    """Write the trail and return how the reader judges it."""
    store = SqliteStore(database, create=False, now_us=SystemClock().now_us)
    try:
        (text,) = lines(store, "default", None, ())
    finally:
        store.close()
    file.write_text(text + "\n")
    verdict = judge_bytes(text.encode())
    if not isinstance(verdict, Verdict):
        return f"malformed: {verdict.detail}"
    return "allow" if verdict.decision is Decision.ALLOW else f"deny: {verdict.reason}"


class _display:  # noqa: N801 - used like a function
    """A table that fills while it runs on a terminal; a plain line each elsewhere."""

    def __init__(self, console: Console, rows: list[Line]) -> None:
        self._console, self._rows = console, rows
        self._live = Live(console=console, refresh_per_second=8) if console.is_terminal else None

    def __enter__(self) -> Callable[[Line, str], None]:
        if self._live is not None:
            self._live.start()
            self._live.update(_table(self._rows))
        return self._show

    def _show(self, row: Line, policy: str) -> None:
        if self._live is not None:
            self._live.update(_table(self._rows))
        else:
            word = "pass" if row.passed(policy) else "FAIL"
            print(f"{word}  {policy:<12}{row.scenario.id}: {row.left[policy]}", flush=True)

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()


def _table(rows: list[Line]) -> Table:
    table = Table(caption="effects at the owner, outcome reported; green: accepted")
    table.add_column("scenario")
    for name in ("retry wrapper", "coordinator", "its trail"):
        table.add_column(name, no_wrap=True)
    for row in rows:
        cells = []
        for policy in (BLIND, COORDINATOR):
            left = row.left.get(policy)
            style = "green" if row.passed(policy) else "bold red"
            cells.append("..." if left is None else f"[{style}]{left}[/]")
        trail = f"[{'green' if row.trail == 'allow' else 'bold red'}]{row.trail}[/]"
        table.add_row(row.scenario.id, *cells, trail if row.trail else "...")
    return table


def _sum_up(console: Console, rows: list[Line], folder: Path) -> int:
    if not console.is_terminal:
        console.width = 120
        console.print(_table(rows))
    passed = {p: sum(row.passed(p) for row in rows) for p in (BLIND, COORDINATOR)}
    allowed = sum(row.trail == "allow" for row in rows)
    total = len(rows)
    for row in rows:
        for finding in row.findings[BLIND]:
            _say(console, f"retry wrapper, {row.scenario.id}: {finding}")
    for row in rows:
        for finding in row.findings[COORDINATOR]:
            _say(console, f"coordinator, {row.scenario.id}: {finding}")
    _say(
        console,
        f"\nThe retry wrapper passes {passed[BLIND]} of {total}, the coordinator "
        f"{passed[COORDINATOR]} of {total}; {allowed} of {total} trails are allowed.\n"
        f"The trails lie in {folder}. Next:\n"
        f"  counterfoil verify --explain {folder}/commit-then-lost-reply.jsonl\n"
        f"  counterfoil runtime --runtime 'counterfoil adapter --policy blind'",
    )
    blind_fails = total - passed[BLIND] >= BLIND_FAILS_AT_LEAST
    return 0 if passed[COORDINATOR] == total == allowed and blind_fails else 1


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
