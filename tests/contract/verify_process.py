"""Runs ``counterfoil verify`` as a process, and says what it said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = [str(Path(sys.executable).with_name("counterfoil")), "verify"]


@dataclass(frozen=True)
class Said:
    """What a run left: its exit code and both of its streams."""

    code: int
    out: bytes
    err: bytes

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The JSON objects on standard output, one a line and nothing else."""
        lines = self.out.decode("utf-8").splitlines()
        found = [json.loads(line) for line in lines]
        assert all(isinstance(one, dict) for one in found), lines
        return found

    @property
    def answers(self) -> list[str]:
        """The reason of each answer, or its error."""
        return [str(one.get("reason", one.get("error"))) for one in self.objects]

    @property
    def lines(self) -> list[str]:
        return self.out.decode("utf-8").splitlines()


def verify(
    *arguments: str | bytes | Path,
    stdin: bytes = b"",
    cwd: Path | None = None,
    environment: dict[str, str] | None = None,
    seconds: float = 60,
) -> Said:
    run = subprocess.run(
        [*COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        timeout=seconds,
        check=False,
    )
    said = Said(run.returncode, run.stdout, run.stderr)
    assert b"Traceback" not in said.out + said.err, said
    return said


def refused(said: Said, *names: str) -> None:
    """Hold a run to: nothing judged, exit 2, one clear line that names what is wrong."""
    assert said.code == 2, said
    assert said.out == b"", said
    lines = said.err.decode().splitlines()
    assert len(lines) == 1, said
    for name in names:
        assert name in lines[0], said


def write(path: Path, data: bytes) -> Path:
    """Write a file and the folders above it; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path
