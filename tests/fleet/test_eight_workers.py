"""Eight worker processes on one database, killed and frozen at random, at one hostile owner.

Processes are not repeatable to the instruction; the seed fixes who is disturbed, how, in which
order, and what the owner does to each request.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from fleet_owner import Faults, FleetOwner
from fleet_worker import Task

import counterfoil as cf
from counterfoil.coordinator.audit import audit
from counterfoil.coordinator.export import lines
from counterfoil.reader.verdict import judge_bytes

if TYPE_CHECKING:
    from pathlib import Path

    from fleet_process import Processes

SEED = int(os.environ.get("COUNTERFOIL_FLEET_SEED", "20"))
OPERATIONS = int(os.environ.get("COUNTERFOIL_FLEET_OPERATIONS", "600"))
WORKERS = 8
FAULTS = Faults(lost=0.10, dropped=0.04, late=0.04, slow=0.02, refused=0.02, unanswered=0.1)
CHAOS_S_MAX = 90.0
"""Seconds after which the faults stop, however far the fleet has come."""
LIVENESS_S_MAX = 60.0
"""Seconds after the faults within which everything must be settled."""
ENOUGH = 0.95
"""The share of the operations whose keys the owner has heard of when the faults stop."""


@dataclass
class Chaos:
    """Who was disturbed, and who still works."""

    processes: Processes
    task: Task
    seeded: random.Random
    started: int = 0
    kills: int = 0
    freezes: int = 0
    unfinished: int = 0
    given_up: Counter[int] = field(default_factory=Counter)
    workers: list[int] = field(default_factory=list)
    frozen: dict[int, float] = field(default_factory=dict)

    def fill(self, reached: int) -> None:
        """Start as many workers as are missing, a little before where the others are."""
        while len(self.workers) < WORKERS:
            self.started += 1
            seed = self.task.seed * 10_000 + self.started
            begin = max(0, reached - 50)
            task = replace(self.task, seed=seed, begin=begin)
            self.workers.append(self.processes.start(task))

    def disturb(self) -> None:
        """Kill one worker, or freeze one, for a moment or past its lease."""
        pid = self.seeded.choice(self.workers)
        if self.seeded.random() < 0.5:
            self.processes.kill(pid)
            self.workers.remove(pid)
            self.frozen.pop(pid, None)
            self.kills += 1
        elif pid not in self.frozen:
            for_s = 6.0 if self.seeded.random() < 0.05 else self.seeded.uniform(0.02, 1.0)
            self.processes.freeze(pid)
            self.frozen[pid] = time.monotonic() + for_s
            self.freezes += 1

    def thaw(self, *, everyone: bool = False) -> None:
        """Let those go on whose time has come."""
        for pid, until_s in list(self.frozen.items()):
            if everyone or time.monotonic() >= until_s:
                del self.frozen[pid]
                self.processes.thaw(pid)

    def reap(self) -> None:
        """Take out those that have ended by themselves."""
        for pid in list(self.workers):
            status = self.processes.ended(pid) if pid not in self.frozen else None
            if status is not None:
                self.workers.remove(pid)
                self.given_up[status] += 1

    def run(self, owner: FleetOwner) -> None:
        """Disturb the fleet until enough was sent; then heal, and wait until all is settled."""
        pause, ends_s = threading.Event(), time.monotonic() + CHAOS_S_MAX
        while len(owner.sends) < ENOUGH * len(self.task.operations) and time.monotonic() < ends_s:
            self.fill(len(owner.sends))
            pause.wait(self.seeded.uniform(0.02, 0.3))
            self.thaw()
            self.disturb()
            self.reap()
        self.thaw(everyone=True)
        owner.faults = Faults(refused=FAULTS.refused)
        ends_s = time.monotonic() + LIVENESS_S_MAX
        while self.workers and time.monotonic() < ends_s:
            pause.wait(0.05)
            self.reap()
        self.unfinished = len(self.workers)

    def end(self) -> None:
        """Leave no worker behind."""
        while self.workers:
            self.processes.kill(self.workers.pop())


@dataclass
class Seen:
    """What is there at the end: the owner's ledger against what the workers were told."""

    ledger: dict[str, int]
    statuses: dict[str, str]
    keys: dict[str, str]
    told: list[dict[str, str]]
    denied: list[object]
    faults: list[object]
    take_overs: int


def look(database: Path, report: Path, owner: FleetOwner) -> Seen:
    """Read the database, the report and the ledger."""
    owner.settle()
    with cf.open(database) as book:
        store = book.store
        histories = {s.operation_id: store.load(s) for s in store.streams("default")}
        judged = [judge_bytes(text.encode()) for text in lines(store, "default", None, ())]
        return Seen(
            ledger=owner.effects,
            statuses={row.stream.operation_id: row.status for row in store.rows()},
            keys={name: h.opened.key for name, h in histories.items() if h is not None},
            told=[json.loads(line) for line in report.read_text().splitlines()],
            denied=[each for each in judged if getattr(each, "decision", None) != "allow"],
            faults=list(audit(store)),
            take_overs=sum(len(h.excluded) for h in histories.values() if h is not None),
        )


def check(seen: Seen, task: Task, chaos: Chaos) -> None:
    """Nothing twice, nothing lost, nothing unknown, and everybody was told the truth."""
    counts = {name: seen.ledger.get(key, 0) for name, key in seen.keys.items()}
    assert not {name: n for name, n in counts.items() if n > 1}, "effects were made twice"
    assert set(seen.statuses) == set(task.operations), "operations were lost"
    assert not {n: s for n, s in seen.statuses.items() if s not in ("committed", "not_run")}
    wrong = {n: s for n, s in seen.statuses.items() if (s == "committed") != (counts[n] == 1)}
    assert not wrong, "the book and the owner disagree"
    assert sum(seen.ledger.values()) == sum(counts.values()), "an effect under an unknown key"
    lies = [
        line
        for line in seen.told
        if line.get("status", "unknown") not in ("unknown", seen.statuses.get(line.get("op", "")))
    ]
    assert not lies, "somebody was told something else"
    # Whoever is frozen inside its transaction keeps the others out, and they may give up on it.
    given_up = [line for line in seen.told if "has been locked by another" in line.get("text", "")]
    broken = [line for line in seen.told if "crash" in line or "error" in line]
    assert broken == given_up
    assert not seen.denied
    assert not seen.faults
    assert not chaos.unfinished, "workers still worked long after the faults had stopped"
    assert set(chaos.given_up) <= {0, cf.StoreError.exit_code}, chaos.given_up


def go(
    processes: Processes,
    database: Path,
    owner: FleetOwner,
    promises: dict[str, object],
    operations: int,
    name: str,
) -> None:
    """Run one fleet, say what happened, and check it."""
    report = database.with_name("report")
    task = Task(
        database=str(database),
        url=owner.url,
        report=str(report),
        operations=tuple(f"o-{number}" for number in range(operations)),
        seed=SEED,
        promises=promises,
        until_settled=True,
    )
    chaos = Chaos(processes, task, random.Random(SEED))
    began_s = time.monotonic()
    print(
        f"\nagain: COUNTERFOIL_FLEET_SEED={SEED} COUNTERFOIL_FLEET_OPERATIONS={OPERATIONS} "
        f".venv/bin/pytest -s tests/fleet/test_eight_workers.py -k {name}"
    )
    try:
        chaos.run(owner)
    finally:
        chaos.end()
    took_s = time.monotonic() - began_s
    seen = look(database, report, owner)
    print(
        f"fleet {name}: seed {SEED}, {operations} operations in {took_s:.1f} s, "
        f"{sum(owner.sends.values())} sends, {sum(owner.questions.values())} questions, "
        f"{sum(seen.ledger.values())} effects, {seen.take_overs} take-overs, "
        f"{chaos.kills} kills, {chaos.freezes} freezes, {dict(Counter(seen.statuses.values()))}"
    )
    check(seen, task, chaos)


@pytest.mark.parametrize("name", ["final_by_answer"])
def test_a_fleet_that_is_killed_and_frozen_makes_each_effect_once_at_an_owner_that_says_final(
    processes: Processes, database: Path, name: str
) -> None:
    with FleetOwner(seed=SEED, final=True, faults=FAULTS) as owner:
        go(processes, database, owner, {"final_by": "answer"}, OPERATIONS, name)


@pytest.mark.parametrize("name", ["settles_within"])
def test_a_fleet_that_is_killed_and_frozen_makes_each_effect_once_at_an_owner_that_settles_in_time(
    processes: Processes, database: Path, name: str
) -> None:
    # The owner drops what would land later than half a second; the rest of T is for the machine.
    with FleetOwner(seed=SEED, settles_within_s=0.5, faults=FAULTS) as owner:
        go(processes, database, owner, {"settles_within": "2s"}, max(20, OPERATIONS // 10), name)
