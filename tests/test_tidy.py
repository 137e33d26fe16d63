"""Style as a unit test: sizes, names and words that must not be in the repository."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
LINE_MAX = 100

# Spelled in pieces, so that this file does not hold what it forbids.
FORBIDDEN = re.compile(
    "|".join(
        [
            r"(py" + r"pi|pythonh" + r"osted|npm" + r"js|deb\.deb" + r"ian)\.(org|com)",
            r"/(wo" + r"rk|fa" + r"rm)/",
            r"fa" + r"rm-(bench|studio)",
            r"/ro" + r"ot/\.",
        ]
    )
)


def tracked(*patterns: str) -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout.decode()
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).exists()]


PYTHON = tracked("*.py")


@pytest.mark.parametrize("path", PYTHON, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_python_file_keeps_the_sizes(path: Path) -> None:
    text = path.read_text("utf-8")
    lines = text.splitlines()
    assert len(lines) <= FILE_LINES_MAX, f"{len(lines)} lines"
    long = [number for number, line in enumerate(lines, 1) if len(line) > LINE_MAX]
    assert not long, f"lines over {LINE_MAX}: {long}"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= FUNCTION_LINES_MAX, f"{node.name}: {length} lines"


@pytest.mark.parametrize(
    "path", tracked("src/*.py", "src/**/*.py"), ids=lambda p: str(p.relative_to(ROOT))
)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text("utf-8"))), "no module docstring"


def test_no_host_path_or_tool_of_a_machine_is_in_the_repository() -> None:
    found = []
    for path in tracked():
        try:
            text = path.read_text("utf-8")
        except UnicodeDecodeError:
            continue
        found += [
            f"{path.relative_to(ROOT)}:{number}"
            for number, line in enumerate(text.splitlines(), 1)
            if FORBIDDEN.search(line)
        ]
    assert not found
