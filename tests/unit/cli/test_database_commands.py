"""`export`, `audit`, `work` and `ops` as a user runs them: output, exit codes, one-line errors."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import counterfoil as cf

if TYPE_CHECKING:
    from pathlib import Path

APP = """
import counterfoil as cf

owner = cf.Owner("service", final_by="answer")


@cf.effect("change", owner=owner)
def change(attempt):
    return "done"


@change.reconcile
def find(attempt):
    return cf.present("done", effect_id="e-1")
"""


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "counterfoil", *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an app and a database that holds one committed and one unknown operation."""
    (tmp_path / "shop.py").write_text(APP)

    @cf.effect("change", owner=cf.Owner("service"))
    def change(attempt: cf.Attempt) -> object:
        if attempt.operation_id == "lost":
            raise ConnectionResetError
        return "done"

    with cf.open(tmp_path / "effects.db", create=True, patience=0.05) as book:
        book.perform(change, "kept")
        book.perform(change, "lost")
    return tmp_path


def test_export_writes_a_line_for_each_operation_and_verify_allows_them(folder: Path) -> None:
    done = run("export", "effects.db", cwd=folder)
    assert done.returncode == 0
    ids = [json.loads(line)["operation"]["id"] for line in done.stdout.splitlines()]
    assert ids == ["kept", "lost"]
    (folder / "trails.jsonl").write_text(done.stdout)
    assert run("verify", "trails.jsonl", cwd=folder).returncode == 0


def test_export_of_named_ids_writes_those(folder: Path) -> None:
    done = run("export", "effects.db", "lost", cwd=folder)
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["reported"] == {"outcome": "unknown"}


def test_an_id_that_is_not_there_writes_nothing(folder: Path) -> None:
    done = run("export", "effects.db", "kept", "nobody", cwd=folder)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1


def test_a_whole_log_is_said_to_be_whole(folder: Path) -> None:
    done = run("audit", "effects.db", cwd=folder)
    assert (done.returncode, done.stdout) == (0, "the log is whole\n")


def test_a_gap_is_accepted_only_by_somebody_and_on_evidence(folder: Path) -> None:
    witness = folder / "effects.db.witness"
    seen = json.loads(witness.read_text())
    witness.write_text(json.dumps({**seen, "seq": seen["seq"] + 5}))
    found = run("audit", "effects.db", "--json", cwd=folder)
    assert found.returncode == 1
    assert json.loads(found.stdout)["code"] == "forgotten"
    assert run("audit", "effects.db", "--accept-gap", cwd=folder).returncode == 2
    words = ("audit", "effects.db", "--accept-gap", "--by", "ops", "--evidence", "INC-1")
    assert run(*words, cwd=folder).returncode == 0
    assert run("audit", "effects.db", cwd=folder).returncode == 0


def test_work_settles_what_the_owner_can_tell(folder: Path) -> None:
    done = run("work", "effects.db", "--app", "shop:change", "--once", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("'lost': committed (found_at_owner")
    assert run("work", "effects.db", "--app", "shop", "--once", cwd=folder).stdout == ""


@pytest.mark.parametrize("app", ["nosuchmodule", "shop:nothing"])
def test_an_app_that_cannot_be_loaded_is_one_line(folder: Path, app: str) -> None:
    done = run("work", "effects.db", "--app", app, cwd=folder)
    assert done.returncode == 2
    assert done.stderr.startswith(f"counterfoil: --app {app}")
    assert done.stderr.count("\n") == 1


def test_a_worker_that_is_not_known_is_not_declared_dead(folder: Path) -> None:
    words = ("ops", "worker-dead", "effects.db", "w-0", "--by", "ops", "--evidence", "x")
    done = run(*words, cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)


@pytest.mark.parametrize(
    "words",
    [
        ("export", "none.db"),
        ("audit", "none.db"),
        ("work", "none.db", "--app", "shop"),
        ("ops", "worker-dead", "none.db", "w", "--by", "a", "--evidence", "b"),
    ],
    ids=lambda words: words[0],
)
def test_a_database_that_is_not_there_is_one_line_and_is_not_made(
    folder: Path, words: tuple[str, ...]
) -> None:
    done = run(*words, cwd=folder)
    assert (done.returncode, done.stderr.count("\n")) == (3, 1)
    assert not (folder / "none.db").exists()
