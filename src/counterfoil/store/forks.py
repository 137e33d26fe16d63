"""Which database files this process inherited open through a fork.

SQLite keeps its locks by process and file, in memory that a fork copies: a child that opens a file
which its parent has open believes that it holds locks which the kernel does not know of. When the
parent closes, it takes itself for the last and removes the log that the child is still writing, so
that acknowledged commits are lost.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from counterfoil.errors import Refused

if TYPE_CHECKING:
    from pathlib import Path

_open: Counter[tuple[int, int]] = Counter()
_inherited: set[tuple[int, int]] = set()


def opening(path: Path) -> tuple[int, int]:
    """Note a file as open here; return what names it. Raises ``Refused`` for an inherited one."""
    found = path.stat()
    name = (found.st_dev, found.st_ino)
    if name in _inherited:
        raise Refused(
            "forked",
            f"{path} was open when this process was forked; open it after the fork only, or start "
            "the process anew (spawn)",
        )
    _open[name] += 1
    return name


def closed(name: tuple[int, int]) -> None:
    """Note that one opening of a file has ended."""
    _open[name] -= 1
    if _open[name] <= 0:
        del _open[name]


def _in_child() -> None:
    _inherited.update(_open)
    _open.clear()


os.register_at_fork(after_in_child=_in_child)
