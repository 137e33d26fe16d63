"""What must hold of a database file before it is trusted: where it lies, who may write."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from counterfoil.errors import StoreCorrupt, StoreNotFound, StoreUnsafe, StoreUnwritable

NETWORK_FILE_SYSTEMS = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.rclone",
        "fuse.s3fs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2",
        "orangefs", "smb3", "smbfs", "vboxsf", "virtiofs",
    }
)  # fmt: skip
"""File systems on which locks or syncs may not mean what they say, or mean it to one host only."""

_OCTAL = re.compile(r"\\([0-7]{3})")  # how a space, a tab, a line end and a backslash are written

MOUNTS = Path("/proc/self/mountinfo")


def check_path(path: Path, *, create: bool, mounts: Path | None = None) -> None:
    """Check that a database can be opened, or made, at ``path``.

    Raises ``StoreNotFound``, ``StoreUnwritable``, ``StoreUnsafe`` or ``StoreCorrupt``, each with
    what to do next.
    """
    folder = path.parent
    try:
        os.lstat(path)  # pathlib takes a NUL for a file that is not there
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:
        raise StoreUnwritable(f"no file can have that name ({error}); choose another") from None
    if not folder.is_dir():
        raise StoreNotFound(f"{folder} is no folder; make it first")
    kind = file_system_of(folder, mounts)
    if kind in NETWORK_FILE_SYSTEMS:
        raise StoreUnsafe(
            f"{path} lies on a network file system ({kind}); put it on a local disk, "
            "or use PostgreSQL"
        )
    if path.is_dir():
        raise StoreCorrupt(f"{path} is a folder; name the database file")
    if not path.exists():
        if path.is_symlink():
            raise StoreNotFound(f"{path} is a link to nothing; mend the link")
        if not create:
            raise StoreNotFound(f"no database at {path}; make one with open(..., create=True)")
    elif not stat.S_ISREG(path.stat().st_mode):
        raise StoreCorrupt(f"{path} is no regular file; name the database file")
    elif not os.access(path, os.W_OK):
        raise StoreUnwritable(f"{path} cannot be written; mend its permissions")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreUnwritable(f"{folder} cannot be written; the database keeps its log beside it")


def file_system_of(folder: Path, mounts: Path | None = None) -> str:
    """Return the type of the file system that holds ``folder``; "" where it cannot be told."""
    try:
        lines = (mounts or MOUNTS).read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    resolved = str(folder.resolve())
    longest, kind = -1, ""
    for line in lines:
        left, _, right = line.partition(" - ")
        fields, types = left.split(" "), right.split(" ")
        if len(fields) < 5 or not types:
            continue
        point = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), fields[4])
        inside = point in ("/", resolved) or resolved.startswith(point + "/")
        if inside and len(point) >= longest:
            longest, kind = len(point), types[0]
    return kind


def make_private(path: Path) -> None:
    """Create the file for its owner alone (0600), if it is not there."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreUnwritable(f"{path} cannot be opened ({error.strerror})") from error
