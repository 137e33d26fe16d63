"""T9 with real processes: a worker is frozen before its first byte, and the store is put back.

The copy is from before the operation, or from the middle of it; the dispatch of the frozen worker
is in neither. Whoever carries on from the copy must not leave two effects, and can find out that
something is forgotten from the witness alone.
"""

from __future__ import annotations

import shutil
import signal
from typing import TYPE_CHECKING

import pytest
from fleet_clock import JumpingClock, open_on
from fleet_ends import ENDS, LEASE_S, PAST_THE_LEASE_S, PROMISES, STUCK
from fleet_owner import Faults, FleetOwner
from fleet_worker import Task, declare

from counterfoil.coordinator.export import lines
from counterfoil.operation import protocol
from counterfoil.reader.verdict import judge_bytes
from counterfoil.store.witness import Witness

if TYPE_CHECKING:
    from pathlib import Path

    from fleet_process import Processes

    import counterfoil as cf

BEFORE, IN_THE_MIDDLE = "before_the_operation", "in_the_middle_of_it"

every_copy = pytest.mark.parametrize("copied", [BEFORE, IN_THE_MIDDLE])


def ends_of(fences: str, kind: str) -> tuple[str, str]:
    """How it ends while the frozen worker can still send, and once it cannot.

    Which token of the owner's own lease it holds is forgotten too, so that lease is no fence here.
    """
    return ENDS["no" if fences == "by_lease" else fences, kind]


def can_be(fences: str, kind: str, copied: str) -> bool:
    """Whether a worker gets to a dispatch from there.

    In the middle of an operation it needs an answer that is believed at once, or none at all.
    """
    believed = kind == "final_by_answer" or (fences in {"on_ask", "by_call"} and kind == "neither")
    return copied == BEFORE or believed or kind == "deduplicates"


class Gap:
    """A database whose copy knows nothing of the worker that is frozen in its call."""

    def __init__(self, database: Path, processes: Processes, fences: str, kind: str) -> None:
        self.database, self.processes = database, processes
        self.clock = JumpingClock()
        self.promises: dict[str, object] = {**PROMISES[kind], "fences": fences}
        self.owner = FleetOwner(
            final=kind == "final_by_answer",
            settles_within_s=4.0 if kind == "settles_within" else None,
            fences=fences,
            deduplicates=kind == "deduplicates",
            clock=self.clock.monotonic_s,
        )
        self.effect: cf.Effect[..., object] | None = None

    def open(self) -> cf.Book:
        """Open the database beside its witness, on a clock that jumps."""
        witness = Witness(self.database.with_name(self.database.name + ".witness"))
        return open_on(self.database, self.clock, lease_s=LEASE_S, witness=witness)

    def freeze_and_forget(self, copied: str, *, unconnected: bool = False) -> int:
        """Return the pid of the frozen worker, whose dispatch the restored copy does not have."""
        self.effect = declare(self.owner.url, self.promises, deadline_s=30.0)
        backup = self.database.with_name("backup")
        if copied == IN_THE_MIDDLE:
            self.owner.faults = Faults(dropped=1.0, unanswered=1.0)
            with self.open() as book:
                assert book.perform(self.effect, "o-1", amount="1", patience="1ms").attempts == 1
            self.owner.faults = Faults()
        shutil.copy(self.database, backup)
        task = Task(
            database=str(self.database),
            url=self.owner.url,
            report=str(self.database.with_name("report")),
            operations=("o-1",),
            promises=self.promises,
            deadline_s=30.0,
            lease_s=LEASE_S,
            patience_s=10.0,
            disturb=signal.SIGSTOP,
            unconnected=unconnected,
            witness="each",
        )
        pid = self.processes.start(task)
        self.processes.wait_until_stopped(pid)
        for end in ("", "-wal", "-shm"):
            self.database.with_name(self.database.name + end).unlink(missing_ok=True)
        shutil.copy(backup, self.database)
        self.clock.skipped_s += PAST_THE_LEASE_S
        self.owner.move_lease()
        return pid

    def carry_on(self, book: cf.Book) -> str:
        """Perform the operation: "committed", or the code that says why it is not known."""
        assert self.effect is not None
        outcome = book.perform(self.effect, "o-1", amount="1")
        return str(outcome.status if outcome.status == "committed" else outcome.why.code)

    def sends_when_it_wakes(self, pid: int) -> None:
        """Let the frozen worker go on to its end, whatever that is on a database that is gone."""
        self.processes.thaw(pid)
        self.processes.wait(pid)
        self.owner.settle()


@pytest.mark.parametrize(
    ("fences", "kind", "copied"),
    [
        (fences, kind, copied)
        for fences, kind in ENDS
        for copied in (BEFORE, IN_THE_MIDDLE)
        if can_be(fences, kind, copied)
    ],
)
def test_a_forgotten_dispatch_that_is_sent_after_all_makes_no_second_effect(
    processes: Processes, database: Path, fences: str, kind: str, copied: str
) -> None:
    gap = Gap(database, processes, fences, kind)
    with gap.owner:
        pid = gap.freeze_and_forget(copied)
        with gap.open() as book:
            assert book.store.suspect is not None
            sent = sum(gap.owner.sends.values())
            ended = gap.carry_on(book)
            assert ended == ends_of(fences, kind)[0]
            assert sum(gap.owner.sends.values()) == sent + (ended == "committed")
            gap.sends_when_it_wakes(pid)
            landed = gap.owner.count
            assert landed <= 1
            ended = gap.carry_on(book)
            assert ended == ("committed" if landed else ends_of(fences, kind)[1])
            assert gap.owner.count == (ended == "committed")
            (text,) = lines(book.store, "default", None, ())
            judged = judge_bytes(text.encode())
            assert getattr(judged, "decision", None) == "allow", judged


@every_copy
@pytest.mark.parametrize(("fences", "kind"), [("no", "final_by_answer")])
def test_once_the_forgotten_worker_is_dead_the_owner_is_believed(
    processes: Processes, database: Path, fences: str, kind: str, copied: str
) -> None:
    gap = Gap(database, processes, fences, kind)
    with gap.owner:
        pid = gap.freeze_and_forget(copied)
        with gap.open() as book:
            assert gap.carry_on(book) == STUCK
            processes.kill(pid)
            assert gap.carry_on(book) == "committed"
            assert gap.owner.count == 1


@every_copy
def test_without_the_rule_there_are_two_effects(
    processes: Processes, database: Path, copied: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opens_only(carrier: protocol._Carrier) -> list[object]:
        return [carrier.task.opened] if carrier.opening else []

    gap = Gap(database, processes, "no", "final_by_answer")
    with gap.owner:
        pid = gap.freeze_and_forget(copied, unconnected=True)
        monkeypatch.setattr(protocol._Carrier, "first_bodies", opens_only)
        with gap.open() as book:
            assert gap.carry_on(book) == "committed"
        gap.sends_when_it_wakes(pid)
        assert gap.owner.count == 2
