"""``counterfoil sign``: records into signed envelopes, one JSON line each."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import click

from counterfoil import limits
from counterfoil.cli.keyfiles import read_signing_key
from counterfoil.errors import BadInput, BrokenWorld, MalformedRecord
from counterfoil.evidence import dsse
from counterfoil.evidence.statement import chain_of, statement_of
from counterfoil.reader.shown import escaped

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import BinaryIO

    from counterfoil.evidence.keyring import SigningKey
    from counterfoil.evidence.statement import Chain

STREAM = "-"
ENDING = ".dsse.json"


@click.command(
    "sign",
    epilog="""\b
Examples:
  counterfoil keygen . --name refunds
  counterfoil sign record.json --key refunds.key > signed.jsonl
  counterfoil export effects.db | counterfoil sign - --key refunds.key --out evidence
  counterfoil sign trails.jsonl --key a.key --key b.key

\b
Exit codes: 0 all signed, 2 a record or key that cannot be used, 3 writing failed
""",
)
@click.argument("paths", metavar="RECORD...", nargs=-1, required=True)
@click.option(
    "--key",
    "key_paths",
    multiple=True,
    required=True,
    metavar="FILE",
    help="A private key file; several sign together.",
)
@click.option(
    "--out",
    default=STREAM,
    metavar="DIR|-",
    show_default=True,
    help=f"A folder for one file a record, named by the payload's SHA-256 and {ENDING}.",
)
@click.option("--chain-head", metavar="HEX", help="The log's head, 64 hex digits.")
@click.option("--chain-count", type=int, metavar="N", help="How many events the log held then.")
def command(
    paths: tuple[str, ...],
    key_paths: tuple[str, ...],
    out: str,
    chain_head: str | None,
    chain_count: int | None,
) -> None:
    """Sign uncertain-effect/v1 records: one DSSE envelope, a JSON line, for each.

    RECORD is a record, a .jsonl file with a record a line, or - for lines on standard input. A
    signature says who vouches for a record, not that it holds: a record that `verify` denies is
    signed too, one that is malformed is not. The first that cannot be signed ends the run; those
    before it are written.

    With --chain-head and --chain-count the envelopes also say how far the log had come; the witness
    file beside a database has both, as head and seq.
    """
    chain = _chain(chain_head, chain_count)
    folder = None if out == STREAM else _folder(out)
    keys = [read_signing_key(path) for path in key_paths]
    for place, record in _records(paths):
        payload, envelope = _signed(place, record, keys, chain)
        if folder is None:
            _print(envelope)
        else:
            path = folder / (sha256(payload).hexdigest() + ENDING)
            _write(path, envelope + b"\n")
            click.echo(escaped(str(path)))


def _chain(head: str | None, count: int | None) -> Chain | None:
    if head is None and count is None:
        return None
    if head is None or count is None:
        raise BadInput("--chain-head and --chain-count go together; give both")
    return chain_of(head, count)


def _folder(name: str) -> Path:
    if not Path(name).is_dir():
        raise BadInput(f"--out {escaped(name)}: no such folder; make it first")
    return Path(name)


def _signed(
    place: str, record: bytes, keys: Sequence[SigningKey], chain: Chain | None
) -> tuple[bytes, bytes]:
    """Return the payload and its envelope."""
    try:
        payload = statement_of(record, chain)
    except MalformedRecord as error:
        raise BadInput(f"{place}: malformed {escaped(str(error))}") from None
    except BadInput as error:
        raise BadInput(f"{place}: {escaped(str(error))}") from None
    return payload, dsse.sign(dsse.PAYLOAD_TYPE, payload, keys)


# --- files ---------------------------------------------------------------------------------------


def _records(paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Yield each record's place, for messages, and its bytes."""
    for path in paths:
        shown = escaped(path)
        try:
            if path == STREAM:
                yield from _standard_input()
            elif path.endswith(".jsonl"):
                with open(path, "rb") as stream:
                    yield from _lines(stream, shown)
            else:
                with open(path, "rb") as stream:
                    data = stream.read(limits.RECORD_BYTES_MAX + 1)
                yield shown, data
        except OSError as error:
            problem = (error.strerror or "cannot be read").lower()
            raise BadInput(f"{shown}: {problem}; check the path and its permissions") from None
        except ValueError as error:
            if isinstance(error, BadInput):
                raise
            raise BadInput(f"{shown}: not a path; check it") from None  # it holds a NUL


def _standard_input() -> Iterator[tuple[str, bytes]]:
    # By its number: a program started without one gets an error to show, not a None.
    with open(0, "rb", closefd=False) as stream:
        yield from _lines(stream, "standard input")


def _lines(stream: BinaryIO, shown: str) -> Iterator[tuple[str, bytes]]:
    number = 0
    # A line too long is yielded as far as it was read: it is refused, and the run ends there.
    while line := stream.readline(limits.RECORD_BYTES_MAX + 1):
        number += 1
        yield f"{shown}:{number}", line.removesuffix(b"\n")
    if not number:
        raise BadInput(f"{shown}: holds no record; nothing was signed")


def _print(envelope: bytes) -> None:
    try:
        click.echo(envelope)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise BrokenWorld(f"standard output: {error.strerror}; mend that") from None


def _write(path: Path, data: bytes) -> None:
    """Write a new file whole or not at all; one that is there with the same bytes is left.

    Another one may hold signatures of others over the same payload: it is not overwritten.
    """
    try:
        if path.exists():
            if path.read_bytes() != data:
                raise BadInput(
                    f"{escaped(str(path))}: is there with other signatures; "
                    "choose another folder, or remove it"
                )
            return
        fresh = path.with_name(path.name + ".new")
        with open(fresh, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
    except OSError as error:
        problem = (error.strerror or "failed").lower()
        raise BrokenWorld(
            f"{escaped(str(path))}: cannot be written, {problem}; mend that"
        ) from None
