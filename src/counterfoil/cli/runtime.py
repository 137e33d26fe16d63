"""``counterfoil runtime``: drives a runtime under test through scenarios and says what it left."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

import click

from counterfoil.conformance import report
from counterfoil.conformance.loading import load_folder, shipped_scenarios
from counterfoil.conformance.runtime import TIME_LIMIT_S, resolve_command, run_scenario
from counterfoil.conformance.scenario import SETS
from counterfoil.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from counterfoil.conformance.report import Row
    from counterfoil.conformance.scenario import Scenario

EPILOG = """\b
Exit codes:
  0  every scenario passes
  1  some scenario fails
  2  nothing was judged: no such command, scenario or folder

\b
Example:
  counterfoil runtime --runtime './adapter' --set core --set crash --junit out.xml
"""


@click.command("runtime", epilog=EPILOG)
@click.option("--runtime", "runtime_text", metavar="CMD", help="The runtime: CMD SCENARIO.json.")
@click.option("--set", "sets", multiple=True, type=click.Choice(SETS), help="A set; else core.")
@click.option("--scenario", "names", multiple=True, metavar="NAME", help="Only this one.")
@click.option("--scenarios", "folder", type=click.Path(path_type=Path), help="A folder of yours.")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1, 64))
@click.option(
    "--timeout",
    "limit_s",
    default=TIME_LIMIT_S,
    show_default=True,
    type=click.FloatRange(0, 3600, min_open=True),
    metavar="S",
    help="Seconds that each worker of the runtime has.",
)
@click.option("--seed", type=click.IntRange(0), help="Spells ids, keys, arguments; else by chance.")
@click.option("--report", "report_path", type=click.Path(path_type=Path), help="A JSON report.")
@click.option("--junit", "junit_path", type=click.Path(path_type=Path), help="A JUnit XML file.")
@click.option("--json", "as_json", is_flag=True, help="Print the JSON report alone.")
@click.option("--list", "only_list", is_flag=True, help="List the scenarios and stop.")
def command(
    runtime_text: str | None,
    sets: tuple[str, ...],
    names: tuple[str, ...],
    folder: Path | None,
    jobs: int,
    limit_s: float,
    seed: int | None,
    report_path: Path | None,
    junit_path: Path | None,
    as_json: bool,
    only_list: bool,
) -> int:
    """Drive a runtime through scenarios with a counting effect owner.

    The command gets the path of a scenario file, the owner's URL in AEV_EFFECT_OWNER and a folder
    in COUNTERFOIL_STATE_DIR. Its last line must be {"outcome": "committed"|"not_run"|"unknown"}.
    """
    scenarios = _choose(sets, names, folder)
    if only_list:
        for scenario in scenarios:
            click.echo(f"{scenario.set_name}/{scenario.id}: {scenario.summary}")
        return 0
    if runtime_text is None:
        raise BadInput("name the runtime: --runtime 'COMMAND', which is run as COMMAND FILE")
    words = resolve_command(runtime_text)
    for path in (report_path, junit_path):
        if path is not None and not path.resolve().parent.is_dir():
            raise BadInput(f"no folder {str(path.parent)!r} for {path.name!r}; make it first")
    if seed is None:
        seed = random.SystemRandom().randrange(2**32)
    if not as_json:
        click.echo(f"seed {seed}; repeat this run with --seed {seed}")
    rows = _run_all(words, scenarios, seed=seed, jobs=jobs, limit_s=limit_s, quiet=as_json)
    found = report.report_json(rows, command=words, seed=seed)
    if report_path is not None:
        _write(report_path, found.encode())
    if junit_path is not None:
        _write(junit_path, report.junit_xml(rows, command=words))
    click.echo(found if as_json else report.total(rows), nl=not as_json)
    return 0 if all(row.passed for row in rows) else 1


def _choose(
    sets: tuple[str, ...], names: tuple[str, ...], folder: Path | None
) -> tuple[Scenario, ...]:
    """Return the scenarios asked for; a name alone is looked for in every set."""
    if folder is not None:
        if sets:
            raise BadInput("--set names shipped sets and --scenarios a folder; use one of them")
        scenarios = load_folder(folder)
    else:
        ordered = [name for name in SETS if name in sets]
        scenarios = shipped_scenarios(*(ordered or (SETS if names else ("core",))))
    known = {scenario.id for scenario in scenarios}
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "--list shows them"
            raise BadInput(f"no scenario {name!r} here; {hint}")
    return tuple(one for one in scenarios if not names or one.id in names)


def _run_all(
    words: Sequence[str],
    scenarios: Sequence[Scenario],
    *,
    seed: int,
    jobs: int,
    limit_s: float,
    quiet: bool,
) -> list[Row]:
    """Run the scenarios side by side; show each in its turn."""
    stop = threading.Event()

    def run(scenario: Scenario) -> Row:
        return run_scenario(words, scenario, seed=seed, time_limit_s=limit_s, stop=stop)

    rows: list[Row] = []
    pool = ThreadPoolExecutor(jobs)
    try:
        with _display(len(scenarios), quiet=quiet) as show:
            for row in pool.map(run, scenarios):
                rows.append(row)
                show(row, words)
    finally:
        # Only after an error or an interrupt is there anything left to end.
        stop.set()
        pool.shutdown(cancel_futures=True)
    return rows


@contextlib.contextmanager
def _display(count: int, *, quiet: bool) -> Iterator[Callable[[Row, Sequence[str]], None]]:
    """Give what shows a row: nothing, plain lines, or lines above a moving bar on a terminal."""
    if quiet:
        yield lambda _row, _words: None
    elif not sys.stdout.isatty():
        yield lambda row, words: click.echo(_text(row, words))
    else:
        from rich.console import Console
        from rich.progress import Progress
        from rich.text import Text

        console = Console(highlight=False)
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task("scenarios", total=count)

            def show(row: Row, words: Sequence[str]) -> None:
                style = "green" if row.passed else "red"
                console.print(Text(_text(row, words), style=style), soft_wrap=True)
                progress.advance(task)

            yield show


def _text(row: Row, words: Sequence[str]) -> str:
    lines = [report.line(row)]
    if not row.passed:
        lines.append(report.failure(row, words))
    else:
        lines += [f"  note: {note}" for note in row.notes]
    return "\n".join(lines)


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise BadInput(f"{str(path)!r} cannot be written: {error.strerror}") from None
