"""Key files, read and written. Private ones are readable by their owner only, or not used."""

from __future__ import annotations

import os
import stat

from counterfoil.errors import BadInput, BrokenWorld
from counterfoil.evidence.keyring import (
    UnusableKey,
    keyring_of,
    private_line,
    public_line,
    read_private_key,
    read_public_keys,
)
from counterfoil.reader.shown import escaped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from counterfoil.evidence.keyring import Keyring, PublicKey, SigningKey

KEY_FILE_BYTES_MAX = 64 * 1024
PRIVATE_MODE, PUBLIC_MODE = 0o600, 0o644
OTHERS = 0o077
PUBLIC_ENDINGS = (".pub", ".pem")


def read_signing_key(path: str) -> SigningKey:
    """Return the private key in a file. Raises BadInput, also where others may read the file."""
    try:
        data = _read(path, private=True)
        return read_private_key(data)
    except UnusableKey as error:
        raise UnusableKey(error.fault, f"{escaped(path)}: {error.detail}") from None


def read_keyring(paths: Sequence[str], threshold: int = 1) -> Keyring:
    """Return the keyring of all public keys in these files and folders (their .pub and .pem files).

    Raises BadInput for a path that cannot be read, UnusableKey for keys that cannot be used.
    """
    keys: list[PublicKey] = []
    for path in paths:
        for name in _key_files(path):
            try:
                keys += read_public_keys(_read(name))
            except UnusableKey as error:
                raise UnusableKey(error.fault, f"{escaped(name)}: {error.detail}") from None
    return keyring_of(keys, threshold)


def write_pair(seed: bytes, private_path: str, public_path: str) -> PublicKey:
    """Write a new key pair: two files that were not there, the private one for its owner only.

    Raises BadInput where a file is there already or its folder is not, BrokenWorld where writing
    fails; neither file is left then.
    """
    from counterfoil.evidence.keyring import SigningKey

    public = SigningKey(seed).public
    written: list[str] = []
    try:
        for path, text, mode in (
            (private_path, private_line(seed), PRIVATE_MODE),
            (public_path, public_line(public), PUBLIC_MODE),
        ):
            _write_new(path, f"{text}\n".encode(), mode, written)
    except BaseException:
        for path in written:
            os.unlink(path)  # noqa: PTH108 - paths are text in this module
        raise
    return public


def _key_files(path: str) -> list[str]:
    if not os.path.isdir(path):  # noqa: PTH112 - as above
        return [path]
    try:
        found = sorted(os.listdir(path))  # noqa: PTH208 - as above
    except OSError as error:
        raise _cannot_read(path, error) from None
    names = [name for name in found if name.endswith(PUBLIC_ENDINGS)]
    if not names:
        raise BadInput(f"{escaped(path)}: holds no .pub or .pem file; name a folder of public keys")
    return [os.path.join(path, name) for name in names]  # noqa: PTH118 - as above


def _read(path: str, *, private: bool = False) -> bytes:
    try:
        # A pipe without a writer must not hold us: it is refused as no file.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as stream:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise BadInput(f"{escaped(path)}: not a file; name a key file")
            if private and status.st_mode & OTHERS:
                raise BadInput(
                    f"{escaped(path)}: others may read this private key "
                    f"(mode {stat.S_IMODE(status.st_mode):04o}); run chmod 600 on it"
                )
            data = stream.read(KEY_FILE_BYTES_MAX + 1)
    except OSError as error:
        raise _cannot_read(path, error) from None
    except ValueError as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{escaped(path)}: not a path; check it") from None  # it holds a NUL
    if len(data) > KEY_FILE_BYTES_MAX:
        raise BadInput(f"{escaped(path)}: too long for a key file; name the file that keygen wrote")
    return data


def _write_new(path: str, data: bytes, mode: int, written: list[str]) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        written.append(path)
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(descriptor)
    except FileExistsError:
        raise BadInput(f"{escaped(path)}: is there already; a key is never overwritten") from None
    except (FileNotFoundError, NotADirectoryError):
        raise BadInput(f"{escaped(path)}: its folder is not there; make it first") from None
    except ValueError:  # a NUL
        raise BadInput(f"{escaped(path)}: not a path; check it") from None
    except OSError as error:
        problem = (error.strerror or "failed").lower()
        raise BrokenWorld(f"{escaped(path)}: cannot be written, {problem}; mend that") from None


def _cannot_read(path: str, error: OSError) -> BadInput:
    problem = (error.strerror or "cannot be read").lower()
    return BadInput(f"{escaped(path)}: {problem}; check the path and its permissions")
