"""A process that forks with a book open: who may send, and what proves a death."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fleet_clock import JumpingClock, open_on
from fleet_owner import FleetOwner
from fleet_worker import declare

import counterfoil as cf
from counterfoil.coordinator.audit import audit

if TYPE_CHECKING:
    from collections.abc import Iterator

FORKING = Path(__file__).resolve().parents[1] / "support" / "fleet_fork.py"


@pytest.fixture
def owner() -> Iterator[FleetOwner]:
    with FleetOwner(final=True) as serving:
        yield serving


def start(mode: str, database: Path, owner: FleetOwner) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-B", str(FORKING), mode, str(database), owner.url]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def said_by(mode: str, database: Path, owner: FleetOwner) -> list[dict[str, Any]]:
    """Run the forking process to its end, and its child too; return what they said."""
    with start(mode, database, owner) as process:
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 0, output
    return [json.loads(line) for line in output.splitlines()]


def test_a_forked_child_that_uses_its_parents_book_is_refused_and_the_parent_goes_on(
    database: Path, owner: FleetOwner
) -> None:
    said = said_by("use", database, owner)
    assert said == [{"who": "child", "refused": "forked"}] * 5 + [
        {"who": "parent", "ended": "committed"}
    ]
    assert sorted(owner.effects.values()) == [1, 1]
    with cf.open(database) as book:
        assert {row.stream.operation_id for row in book.store.rows()} == {"before", "after"}
        assert list(audit(book.store)) == []


def test_processes_that_open_the_database_after_a_fork_are_two_workers(
    database: Path, owner: FleetOwner
) -> None:
    said = said_by("after", database, owner)
    workers = {line["who"]: line["worker"] for line in said if "worker" in line}
    assert workers["parent"] != workers["child"]
    assert Counter(line["ended"] for line in said if "ended" in line) == {"committed": 2}
    assert sorted(owner.effects.values()) == [1, 1]


def test_a_child_that_opens_the_database_which_its_parent_had_open_loses_no_commit_or_is_refused(
    database: Path, owner: FleetOwner
) -> None:
    """SQLite keeps its locks by process and file: an inherited file is locked in name alone."""
    said = said_by("open", database, owner)
    (ended,) = [line for line in said if "ended" in line or "refused" in line]
    with cf.open(database) as book:
        held = {row.stream.operation_id: row.status for row in book.store.rows()}
        assert book.store.suspect is None
        assert list(audit(book.store)) == []
    if "refused" in ended:
        assert ended["refused"] == "forked"
        assert held == {"before": "committed"}
        assert owner.count == 1
    else:
        workers = {line["who"]: line["worker"] for line in said if "worker" in line}
        assert workers["parent"] != workers["child"]
        assert held == dict.fromkeys(("before", "child-1", "child-2"), "committed")


def test_a_child_that_inherits_the_lock_keeps_its_dead_parent_from_being_proven_dead(
    database: Path, owner: FleetOwner
) -> None:
    clock = JumpingClock()
    effect = declare(owner.url, {})
    with start("die", database, owner) as process, open_on(database, clock) as book:
        assert process.wait(20) == -9
        clock.skipped_s += 120.0
        outcome = book.perform(effect, "o-1", amount="1")
        assert (outcome.status, outcome.why.code) == ("unknown", "sender_may_still_send")
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        assert process.stdout.read()  # it ends when the last process that has it is gone
        outcome = book.perform(effect, "o-1", amount="1")
        assert (outcome.status, outcome.why.code) == ("unknown", "absent_not_final")
        history = book.store.load(book.stream("o-1", "default"))
        assert history is not None
        assert history.excluded_workers == {history.attempts[0].worker}
    assert owner.count == 0
