"""``counterfoil keygen``: a new Ed25519 key pair for signing trails."""

from __future__ import annotations

import secrets
from pathlib import Path

import click

from counterfoil.cli.keyfiles import write_pair
from counterfoil.errors import BadInput
from counterfoil.evidence.keyring import RAW_BYTES
from counterfoil.reader.shown import escaped

DEFAULT_NAME = "counterfoil"


@click.command(
    "keygen",
    epilog="""\b
Examples:
  counterfoil keygen .                     counterfoil.key and counterfoil.pub
  counterfoil keygen keys --name refunds   keys/refunds.key and keys/refunds.pub
  counterfoil keygen refunds.key           refunds.key and refunds.key.pub

\b
Exit codes: 0 written, 2 a file is there already or a folder is not, 3 writing failed
""",
)
@click.argument("place", metavar="DIR|FILE")
@click.option(
    "--name", default=None, metavar="NAME", help=f"In a DIR, the files' name [{DEFAULT_NAME}]."
)
def command(place: str, name: str | None) -> None:
    """Make a key pair for signing trails, in two new files.

    The private file can be read by its owner only. Give the public one to whoever shall verify. No
    file is ever overwritten.
    """
    if Path(place).is_dir():
        name = DEFAULT_NAME if name is None else name
        if name in {"", ".", ".."} or "/" in name:
            raise BadInput("--name is a file's name without folders; choose another")
        stem = str(Path(place) / name)
        private_path, public_path = f"{stem}.key", f"{stem}.pub"
    elif name is not None:
        raise BadInput(f"{escaped(place)}: --name needs a folder that is there; make it first")
    else:
        private_path, public_path = place, f"{place}.pub"
    key = write_pair(secrets.token_bytes(RAW_BYTES), private_path, public_path)
    click.echo(f"private {escaped(private_path)}")
    click.echo(f"public  {escaped(public_path)}")
    click.echo(f"key id  {key.key_id}")
