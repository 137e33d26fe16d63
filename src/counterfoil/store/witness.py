"""A witness outside the database: the last checkpoint of its log that somebody saw.

A store that was restored from an older copy, or lost the tail of its log, looks whole from inside.
The witness says how far the log had come (`seq`), and the hash there (`head`). It is written at
most once a second, and at close; with ``each`` after every commit, and synced. How much it may lag
is how much can be lost unseen.

Once a store was found out, the witness begins anew from where the store is, and says so too
(`suspect`): a second copy, from before that or after, is found out like the first.
"""

from __future__ import annotations

import base64
import fcntl
import json
import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from counterfoil.errors import BadInput, StoreUnwritable

if TYPE_CHECKING:
    from counterfoil.store.stamping import Head

_log = logging.getLogger("counterfoil.store")

EVERY_S = 1.0
"""Seconds between two checkpoints, unless each commit is witnessed."""


class Checkpoint(NamedTuple):
    """How far a store's log had come, the hash there, and why the store was suspect by then."""

    store_id: str
    seq: int
    head: str
    suspect: str | None = None

    def signed_bytes(self) -> bytes:
        """Return what a signature is over."""
        text = f"counterfoil-checkpoint-v1\n{self.store_id}\n{self.seq}\n{self.head}\n"
        return (text if self.suspect is None else f"{text}{self.suspect}\n").encode()


class Witness:
    """A checkpoint file. ``key`` is an Ed25519 private key file (32 raw bytes, base64), or None.

    Raises ``BadInput`` for a key that cannot be read, ``StoreUnwritable`` for a file that cannot be
    written.
    """

    def __init__(self, path: Path, *, each: bool = False, key: Path | None = None) -> None:
        self.path = path
        self.each = each
        self._key = None if key is None else _read_key(key)
        self._next_s = 0.0

    def last(self) -> Checkpoint | str | None:
        """Return the checkpoint, None if there is none, or text: why it cannot be trusted."""
        try:
            text = self.path.read_text("ascii")
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            return f"the witness {self.path} cannot be read ({error})"
        try:
            members = json.loads(text)
            seen = Checkpoint(
                str(members["store"]),
                int(members["seq"]),
                str(members["head"]),
                None if members.get("suspect") is None else str(members["suspect"]),
            )
            signature = members.get("signature")
        except (ValueError, KeyError, TypeError, AttributeError):
            return f"the witness {self.path} is damaged"
        if self._key is not None and not self._holds(seen, signature):
            return f"the witness {self.path} is not signed by its key"
        return seen

    def note(self, store_id: str, head: Head, *, now: bool = False) -> None:
        """Write a checkpoint if one is due; never replace a later one by an earlier."""
        clock_s = time.monotonic()
        if not (now or self.each) and clock_s < self._next_s:
            return
        self._next_s = clock_s + EVERY_S
        self._write(Checkpoint(store_id, head.seq, head.chained.hex()))

    def restart(self, store_id: str, head: Head, suspect: str | None = None) -> None:
        """Begin anew from here: the gap is on record, in the store or by a person who accepted it.

        Raises ``StoreUnwritable``: the old checkpoint still stands, and says what it said.
        """
        checkpoint = Checkpoint(store_id, head.seq, head.chained.hex(), suspect)
        self._write(checkpoint, anew=True)

    def _write(self, checkpoint: Checkpoint, *, anew: bool = False) -> None:
        try:
            lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                last = None if anew else self.last()
                if isinstance(last, Checkpoint) and last.store_id == checkpoint.store_id:
                    if last.seq >= checkpoint.seq:
                        return
                    checkpoint = checkpoint._replace(suspect=last.suspect)
                self._replace(checkpoint)
            finally:
                os.close(lock)
        except OSError as error:
            text = f"the witness {self.path} cannot be written ({error.strerror}); mend its folder"
            if self.each or anew:
                raise StoreUnwritable(text) from error
            _log.warning("%s", text)  # the commit stands, and is witnessed later

    def _replace(self, checkpoint: Checkpoint) -> None:
        store_id, seq, head, suspect = checkpoint
        members: dict[str, object] = {"store": store_id, "seq": seq, "head": head}
        if suspect is not None:
            members["suspect"] = suspect
        if self._key is not None:
            signature = self._key.sign(checkpoint.signed_bytes())
            members["signature"] = base64.b64encode(signature).decode()
        fresh = Path(f"{self.path}.new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, (json.dumps(members) + "\n").encode())
            if self.each or suspect is not None:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)
        fresh.replace(self.path)

    def _holds(self, checkpoint: Checkpoint, signature: object) -> bool:
        from cryptography.exceptions import InvalidSignature

        assert self._key is not None
        try:
            raw = base64.b64decode(str(signature), validate=True)
            self._key.public_key().verify(raw, checkpoint.signed_bytes())
        except (ValueError, InvalidSignature):
            return False
        return True


if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def _read_key(path: Path) -> Ed25519PrivateKey:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        text = path.read_text("ascii").strip()
        return Ed25519PrivateKey.from_private_bytes(
            base64.b64decode(text.rpartition(":")[2], validate=True)
        )
    except (OSError, ValueError) as error:
        raise BadInput(f"{path}: no Ed25519 private key can be read there ({error})") from None


def why_suspect(
    checkpoint: Checkpoint | str | None,
    store_id: str,
    last_seq: int,
    head_at_seq: str | None,
    suspect: str | None = None,
) -> str | None:
    """Return why a store may have forgotten operations, or None. Pure.

    ``head_at_seq`` is the hash that the log has at the checkpoint's sequence, None if it has none;
    ``suspect`` is what the store itself says of an earlier gap, which is none of the answer.
    """
    if checkpoint is None or isinstance(checkpoint, str):
        return checkpoint
    if checkpoint.store_id != store_id:
        return "the witness beside it saw another store"
    if checkpoint.seq > last_seq:
        lost = checkpoint.seq - last_seq
        return f"the witness saw {checkpoint.seq} events, the log ends {lost} before that"
    if checkpoint.seq and head_at_seq != checkpoint.head:
        return f"the log has another history than the witness saw at event {checkpoint.seq}"
    if checkpoint.suspect is not None and checkpoint.suspect != suspect:
        return "the witness knew it to have forgotten, and it does not know that itself"
    return None
