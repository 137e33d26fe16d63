"""The face of ``counterfoil verify`` in click: its help. ``cli.verify`` does the work."""

from __future__ import annotations

import click

from counterfoil.cli import verify


@click.command(
    "verify",
    short_help="Judge records: is each trail consistent with at most one effect?",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    options_metavar="[--json] [--explain] [--strict]",
)
@click.argument("paths", metavar="PATH...", nargs=-1, type=click.UNPROCESSED)
def command(paths: tuple[str, ...]) -> int:
    """Judge uncertain-effect/v1 records: is each trail consistent with at most one effect?

    PATH is a record, a .jsonl file with a record a line, a folder (its .json and .jsonl files,
    sorted, with those of its subfolders), or - for lines on standard input.

    One record alone is answered by one object or line. Everything else is answered by one line a
    record, in order, with the file's path and the line's number.

    \b
    Options:
      --json     one JSON object a record: decision, reason, explanation, members,
                 outcome, advisories; or error, path, detail for a malformed record
                 (beside a file's path, the JSON Pointer is called pointer)
      --explain  also the members involved, the advisories and the trail in order
      --strict   exit 1 also for a record that is allowed with an advisory

    \b
    Exit codes:
      0  every record is allowed
      1  a record is denied
      2  a record is malformed, or an input cannot be read

    \b
    Examples:
      counterfoil verify record.json --json
      counterfoil verify trails/ more.jsonl --strict
      producer | counterfoil verify - --json
    """
    return verify.run(list(paths))
