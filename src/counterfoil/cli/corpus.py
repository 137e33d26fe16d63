"""``counterfoil corpus``: puts the cases of a corpus before a reader and says where it differs."""

from __future__ import annotations

import contextlib
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click

from counterfoil.conformance import report, verifier
from counterfoil.conformance.manifest import DEFAULT, SHIPPED, load_corpus, shipped_names
from counterfoil.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from counterfoil.conformance.manifest import ReadCorpus, Vector
    from counterfoil.conformance.report import Row

EPILOG = """\b
Exit codes:
  0  the reader agrees with every case
  1  it differs somewhere, or does not answer as the contract says
  2  nothing was judged: no such command, or a corpus that is not whole

\b
Examples:
  counterfoil corpus
  counterfoil corpus --verifier './my-reader' --jobs 4 --junit out.xml
  counterfoil corpus --corpus vectors-uncertain-effect-hard --verifier 'counterfoil verify'
"""


@click.command("corpus", epilog=EPILOG)
@click.option(
    "--corpus",
    "place",
    default=DEFAULT,
    show_default=True,
    metavar="NAME|DIR",
    help="A shipped corpus, or a folder that holds a MANIFEST.json.",
)
@click.option("--verifier", "command_text", metavar="CMD", help="The reader; else our own.")
@click.option("--jobs", default=2, show_default=True, type=click.IntRange(1, 64))
@click.option(
    "--timeout",
    "limit_s",
    default=verifier.TIME_LIMIT_S,
    show_default=True,
    type=click.FloatRange(0, 3600, min_open=True),
    metavar="S",
    help="Seconds that the reader has for each case.",
)
@click.option(
    "--cwd",
    "folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False, resolve_path=True),
    help="The reader's working folder; else a fresh one for each case.",
)
@click.option("--filter", "pattern", metavar="GLOB", help="Only cases whose id matches.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first case that fails.")
@click.option("--seed", type=click.IntRange(0), help="Orders and respells; else by chance.")
@click.option("--report", "report_path", type=click.Path(path_type=Path), help="A JSON report.")
@click.option("--junit", "junit_path", type=click.Path(path_type=Path), help="A JUnit XML file.")
@click.option("--json", "as_json", is_flag=True, help="Print the JSON report alone.")
@click.option("--list", "only_list", is_flag=True, help="List the cases and stop.")
def command(
    place: str,
    command_text: str | None,
    jobs: int,
    limit_s: float,
    folder: Path | None,
    pattern: str | None,
    fail_fast: bool,
    seed: int | None,
    report_path: Path | None,
    junit_path: Path | None,
    as_json: bool,
    only_list: bool,
) -> int:
    """Judge a reader of uncertain-effect/v1 records by the cases of a corpus.

    The reader is run as CMD FILE --json, and prints one JSON object with decision and reason. It
    exits 0 for allow, 1 for deny, and 2 without a decision for a record that is malformed.
    """
    corpus = _load(place)
    vectors = _chosen(corpus, pattern)
    if only_list:
        for vector in vectors:
            click.echo(f"{vector.id}: {vector.expected}: {vector.edit}")
        return 0
    words = None if command_text is None else verifier.resolve_verifier(command_text)
    for path in (report_path, junit_path):
        if path is not None and not path.resolve().parent.is_dir():
            raise BadInput(f"no folder {str(path.parent)!r} for {path.name!r}; make it first")
    if seed is None:
        seed = random.SystemRandom().randrange(2**32)
    if not as_json:
        click.echo(f"seed {seed}; repeat this run with --seed {seed}")
    run = _judge_with(words, corpus, seed=seed, limit_s=limit_s, folder=folder)
    ordered = verifier.shuffled(vectors, seed)
    rows = _run_all(run, ordered, words, jobs=jobs, fail_fast=fail_fast, quiet=as_json)
    places = {vector.id: number for number, vector in enumerate(vectors)}
    rows.sort(key=lambda row: places[row.id])
    found = verifier.report_json(rows, corpus, words, seed=seed)
    if report_path is not None:
        _write(report_path, found.encode())
    if junit_path is not None:
        xml = report.junit_xml(rows, command=words or (), arguments=verifier.ARGUMENTS)
        _write(junit_path, xml)
    click.echo(found if as_json else verifier.total(rows, len(vectors), words), nl=not as_json)
    return 0 if all(row.passed for row in rows) else 1


def _load(place: str) -> ReadCorpus:
    """Return a shipped corpus by its name, or the one that a folder holds."""
    names = shipped_names()
    if place in names:
        return load_corpus(SHIPPED / place)
    if not Path(place).is_dir():
        near = get_close_matches(place, names, n=1, cutoff=0.4)
        hint = f"did you mean {near[0]!r}?" if near else f"shipped are {', '.join(names)}"
        raise BadInput(f"no corpus and no folder {place!r}; {hint}")
    return load_corpus(Path(place))


def _chosen(corpus: ReadCorpus, pattern: str | None) -> tuple[Vector, ...]:
    vectors = tuple(
        vector for vector in corpus.vectors if pattern is None or fnmatchcase(vector.id, pattern)
    )
    if not vectors:
        raise BadInput(f"no case of {corpus.name} matches {pattern!r}; --list shows them")
    return vectors


def _judge_with(
    words: Sequence[str] | None,
    corpus: ReadCorpus,
    *,
    seed: int,
    limit_s: float,
    folder: Path | None,
) -> Callable[[Vector, threading.Event], Row]:
    """Return what judges one case: our own reader, or the command."""
    if words is None:
        return lambda vector, _stop: verifier.judge_in_process(vector, corpus.name, seed=seed)
    return lambda vector, stop: verifier.run_case(
        words, vector, corpus.name, seed=seed, time_limit_s=limit_s, folder=folder, stop=stop
    )


def _run_all(
    run: Callable[[Vector, threading.Event], Row],
    vectors: Sequence[Vector],
    words: Sequence[str] | None,
    *,
    jobs: int,
    fail_fast: bool,
    quiet: bool,
) -> list[Row]:
    """Judge the cases side by side; show each in its turn."""
    stop = threading.Event()
    rows: list[Row] = []
    pool = ThreadPoolExecutor(1 if words is None else jobs)
    try:
        with _display(len(vectors), words or (), quiet=quiet) as show:
            for row in pool.map(lambda vector: run(vector, stop), vectors):
                rows.append(row)
                show(row)
                if fail_fast and not row.passed:
                    break
    finally:
        # Only after a first failure, an error or an interrupt is there anything left to end.
        stop.set()
        pool.shutdown(cancel_futures=True)
    return rows


@contextlib.contextmanager
def _display(count: int, words: Sequence[str], *, quiet: bool) -> Iterator[Callable[[Row], None]]:
    """Give what shows a row: nothing, plain lines, or lines above a moving bar on a terminal."""
    if quiet:
        yield lambda _row: None
    elif not sys.stdout.isatty():
        yield lambda row: click.echo(_text(row, words))
    else:
        from rich.console import Console
        from rich.progress import Progress
        from rich.text import Text

        console = Console(highlight=False)
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task("cases", total=count)

            def show(row: Row) -> None:
                style = "green" if row.passed else "red"
                console.print(Text(_text(row, words), style=style), soft_wrap=True)
                progress.advance(task)

            yield show


def _text(row: Row, words: Sequence[str]) -> str:
    if row.passed:
        return report.line(row)
    return f"{report.line(row)}\n{report.failure(row, words, verifier.ARGUMENTS)}"


def _write(path: Path, data: bytes) -> None:
    try:
        path.write_bytes(data)
    except OSError as error:
        raise BadInput(f"{str(path)!r} cannot be written: {error.strerror}") from None
