"""One worker dispatched and sends nothing more, or not yet; another takes over, or must not.

The first worker stands after its last look and before its first byte: dead, dead on a host where
nothing proves it, or frozen; or it hangs in its call. The owner holds nothing when it is asked.
"""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from fleet_clock import JumpingClock, open_on
from fleet_ends import ENDS, LEASE_S, PAST_THE_LEASE_S, PROMISES, STUCK
from fleet_owner import Faults, FleetOwner
from fleet_worker import Task, declare

import counterfoil as cf
from counterfoil.cli import ops
from counterfoil.coordinator.audit import audit
from counterfoil.coordinator.export import lines
from counterfoil.reader.verdict import judge_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from fleet_process import Processes

    from counterfoil.operation.identity import StreamId

every_owner = pytest.mark.parametrize(("fences", "kind"), ENDS)
stuck_owners = pytest.mark.parametrize(
    ("fences", "kind"),
    [owner for owner, (while_it_may, _) in ENDS.items() if while_it_may == STUCK],
)


@dataclass
class Scene:
    """One owner, one database, the second worker's book, and its clock."""

    owner: FleetOwner
    database: Path
    clock: JumpingClock
    book: cf.Book
    promises: dict[str, object]
    effect: cf.Effect[..., object]

    def task(self, disturb: int, *, host: str = "") -> Task:
        """Return what the first worker does. Its deadline is long, so that it sends on waking."""
        return Task(
            database=str(self.database),
            url=self.owner.url,
            report=str(self.database.with_name("report")),
            operations=("o-1",),
            promises=self.promises,
            deadline_s=30.0,
            lease_s=LEASE_S,
            patience_s=5.0,
            disturb=disturb,
            host=host,
        )

    def told(self) -> list[str]:
        """Return the outcomes that the first worker's caller was given."""
        said = self.database.with_name("report").read_text().splitlines()
        return [each["status"] for each in map(json.loads, said) if "status" in each]

    def lose_the_lease(self) -> None:
        """Let the first worker's lease run out, ours and the owner's."""
        self.clock.skipped_s += PAST_THE_LEASE_S
        self.owner.move_lease()

    def take_over(self) -> str:
        """Perform the operation here: "committed", or the code that says why it is not known."""
        outcome = self.book.perform(self.effect, "o-1", amount="1")
        return str(outcome.status if outcome.status == "committed" else outcome.why.code)

    def stream(self) -> StreamId:
        return self.book.stream("o-1", "default")

    def first_worker(self) -> str:
        """Return the id of the worker that made the first attempt."""
        history = self.book.store.load(self.stream())
        assert history is not None
        return history.attempts[0].worker

    def check(self, effects: int) -> None:
        """The owner made so many effects, and the trail is lawful."""
        self.owner.settle()
        assert self.owner.count == effects
        (text,) = lines(self.book.store, "default", None, ())
        judged = judge_bytes(text.encode())
        assert getattr(judged, "decision", None) == "allow", judged
        assert list(audit(self.book.store)) == []


@pytest.fixture
def scene(database: Path, fences: str, kind: str) -> Iterator[Scene]:
    clock = JumpingClock()
    promises = {**PROMISES[kind], "fences": fences}
    with (
        FleetOwner(
            final=kind == "final_by_answer",
            settles_within_s=4.0 if kind == "settles_within" else None,
            fences=fences,
            deduplicates=kind == "deduplicates",
            clock=clock.monotonic_s,
        ) as owner,
        open_on(database, clock, lease_s=LEASE_S) as book,
    ):
        effect = declare(owner.url, promises, deadline_s=30.0)
        yield Scene(owner, database, clock, book, promises, effect)


# --- dead ----------------------------------------------------------------------------------------


@every_owner
def test_a_dead_workers_operation_is_taken_over_without_waiting_for_its_lease(
    processes: Processes, scene: Scene, fences: str, kind: str
) -> None:
    assert processes.wait(processes.start(scene.task(signal.SIGKILL))) == -signal.SIGKILL
    scene.owner.move_lease()
    began_s = scene.clock.monotonic_s()
    ended = scene.take_over()
    assert ended == ENDS[fences, kind][1]
    scene.check(1 if ended == "committed" else 0)
    if ended == "committed":
        assert scene.clock.monotonic_s() - began_s < LEASE_S / 2
        assert sum(scene.owner.sends.values()) == 1


@every_owner
def test_a_worker_that_died_on_another_host_is_taken_over_once_a_person_says_that_it_is_dead(
    processes: Processes, scene: Scene, fences: str, kind: str
) -> None:
    task = scene.task(signal.SIGKILL, host="another-host")
    assert processes.wait(processes.start(task)) == -signal.SIGKILL
    scene.lose_the_lease()
    before, after = ENDS[fences, kind]
    assert scene.take_over() == before
    if before != "committed":
        assert not scene.owner.sends
        words = ["--by", "ops@example.com", "--evidence", "powered off, INC-204"]
        done = CliRunner().invoke(
            ops.command, ["worker-dead", str(scene.database), scene.first_worker(), *words]
        )
        assert done.exit_code == 0, done.output
        assert "'o-1' can be carried on" in done.output
        assert scene.take_over() == after
    scene.check(1 if after == "committed" else 0)


# --- frozen --------------------------------------------------------------------------------------


@every_owner
def test_a_frozen_worker_that_wakes_after_another_took_over_makes_no_second_effect(
    processes: Processes, scene: Scene, fences: str, kind: str
) -> None:
    pid = processes.start(scene.task(signal.SIGSTOP))
    processes.wait_until_stopped(pid)
    assert scene.take_over() == "in_flight"
    assert not scene.owner.sends + scene.owner.questions
    scene.lose_the_lease()
    ended = scene.take_over()
    assert ended == ENDS[fences, kind][0]
    assert sum(scene.owner.sends.values()) == (1 if ended == "committed" else 0)
    processes.thaw(pid)
    assert processes.wait(pid) == 0
    assert scene.take_over() == "committed"
    assert scene.told() == ["committed"]
    scene.check(1)


@stuck_owners
def test_a_frozen_worker_is_taken_over_as_soon_as_its_process_is_ended(
    processes: Processes, scene: Scene, fences: str, kind: str
) -> None:
    pid = processes.start(scene.task(signal.SIGSTOP))
    processes.wait_until_stopped(pid)
    scene.lose_the_lease()
    assert scene.take_over() == STUCK
    processes.kill(pid)
    ended = scene.take_over()
    assert ended == ENDS[fences, kind][1]
    scene.check(1 if ended == "committed" else 0)


@pytest.mark.parametrize(("fences", "kind"), [("by_lease", "neither")])
def test_an_owners_lease_that_has_not_moved_fences_nothing(
    processes: Processes, scene: Scene, fences: str, kind: str
) -> None:
    pid = processes.start(scene.task(signal.SIGSTOP))
    processes.wait_until_stopped(pid)
    scene.clock.skipped_s += PAST_THE_LEASE_S
    assert scene.take_over() == STUCK
    assert not scene.owner.sends
    scene.owner.move_lease()
    assert scene.take_over() == "committed"
    processes.thaw(pid)
    assert processes.wait(pid) == 0
    scene.check(1)


# --- hung ----------------------------------------------------------------------------------------


class UnboundedOwner(cf.HttpOwner):
    """Does not hold the effect's deadline by itself, as a plain function does not."""

    bounds_calls = False


@every_owner
def test_a_call_that_hangs_past_its_deadline_makes_no_second_effect_when_it_goes_on(
    scene: Scene, fences: str, kind: str
) -> None:
    owner = scene.owner
    promised = cf.Owner("fleet-owner", **scene.promises)  # type: ignore[arg-type]
    hanging = cf.effect("hang", owner=promised, deadline="50ms")(
        UnboundedOwner(owner.url, deadline=30.0, sends_token=fences != "no")
    )
    scene.effect = hanging
    with cf.open(scene.database, lease=LEASE_S, patience=0.2) as first:
        owner.hold_calls, owner.faults = True, Faults(unanswered=1.0)
        outcome = first.perform(hanging, "o-1", amount="1")
        assert (outcome.status, outcome.why.code) == ("unknown", "call_still_running")
        owner.wait_until_held()
        owner.hold_calls, owner.faults = False, Faults()
        scene.lose_the_lease()
        ended = scene.take_over()
        assert ended == ENDS[fences, kind][0]
        assert sum(owner.sends.values()) == (2 if ended == "committed" else 1)
        owner.release()
        owner.settle()
        assert scene.take_over() == "committed"
        assert first.perform(hanging, "o-1", amount="1").status == "committed"
    scene.check(1)


# --- the worker's own record ---------------------------------------------------------------------


@pytest.mark.parametrize(("fences", "kind"), [("no", "final_by_answer")])
def test_a_worker_whose_first_append_lost_a_race_is_known_to_the_store(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, fences: str, kind: str
) -> None:
    with cf.open(scene.database) as loser:
        load = loser.store.load

        def load_and_lose(stream: StreamId) -> object:
            found = load(stream)
            monkeypatch.undo()
            assert scene.take_over() == "committed"
            return found

        monkeypatch.setattr(loser.store, "load", load_and_lose)
        assert loser.perform(scene.effect, "o-1", amount="1").replayed
        assert loser.perform(scene.effect, "o-2", amount="1").status == "committed"
        assert scene.book.store.worker(loser.worker_id) == loser.worker_record
