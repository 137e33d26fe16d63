"""Runs, criteria, triggers, and the stop of the whole mission."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from counterfoil.mission.authority import check_deadline, check_run, open_run
from counterfoil.mission.commands import (
    ClaimRun,
    FinishRun,
    FireTrigger,
    RecordCriterion,
    RegisterTrigger,
    RunCommand,
    StartRun,
    StopMission,
)
from counterfoil.mission.effects import release
from counterfoil.mission.errors import Code, CommandRejected
from counterfoil.mission.nodes import graph_done
from counterfoil.mission.persistent import PersistentMap
from counterfoil.mission.state import Criterion, Run, Stop, Trigger
from counterfoil.mission.vocabulary import RunStatus

if TYPE_CHECKING:
    from counterfoil.mission.draft import Draft


def apply(draft: Draft, command: RunCommand) -> None:
    """Begin, claim, judge or end a run, or the mission; CommandRejected where it may not be."""
    match command:
        case StartRun(run_id):
            _start(draft, run_id)
        case ClaimRun():
            _claim(draft, command)
        case FinishRun():
            _finish(draft, command)
        case RecordCriterion():
            _record(draft, command)
        case RegisterTrigger(trigger_id):
            if trigger_id in draft.triggers:
                raise CommandRejected(
                    Code.TRIGGER_EXISTS, f"trigger {trigger_id!r} exists; use another id"
                )
            draft.triggers = draft.triggers.set(trigger_id, Trigger())
        case FireTrigger():
            _fire(draft, command)
        case StopMission():
            draft.stopped = Stop(command.reason, command.by, draft.now_ms)
        case _:
            assert_never(command)


def _start(draft: Draft, run_id: str) -> None:
    if run_id in draft.runs:
        raise CommandRejected(Code.RUN_EXISTS, f"run {run_id!r} exists; use another id")
    check_deadline(draft)
    criteria: PersistentMap[Criterion] = PersistentMap()
    for name in draft.contract.criteria:
        criteria = criteria.set(name, Criterion())
    draft.put_run(run_id, Run(criteria))


def _claim(draft: Draft, command: ClaimRun) -> None:
    run = open_run(draft, command.run_id)
    if command.epoch != run.epoch + 1:
        raise CommandRejected(
            Code.STALE_EPOCH, f"run {command.run_id!r} is at epoch {run.epoch}; claim the next one"
        )
    draft.put_run(command.run_id, run._replace(epoch=command.epoch, owner=command.owner))


def _finish(draft: Draft, command: FinishRun) -> None:
    run = check_run(draft, command.run_id, command.epoch)
    if run.unknown:
        raise CommandRejected(
            Code.EFFECT_UNKNOWN, f"{run.unknown} operations are UNKNOWN; settle them first"
        )
    if command.status is RunStatus.COMPLETED:
        _check_complete(draft, run)
    else:
        for attempt_id in run.prepared:
            release(draft, attempt_id)
    draft.put_run(command.run_id, draft.runs[command.run_id]._replace(status=command.status))


def _check_complete(draft: Draft, run: Run) -> None:
    if run.prepared:
        raise CommandRejected(
            Code.ATTEMPT_OPEN, f"{len(run.prepared)} attempts are prepared; release them first"
        )
    unmet = [name for name, criterion in run.criteria.items() if not criterion.met]
    if unmet:
        raise CommandRejected(Code.CRITERIA_NOT_MET, f"not met: {', '.join(map(repr, unmet))}")
    if not graph_done(draft, run):
        raise CommandRejected(Code.GRAPH_NOT_DONE, "nodes that END waits for are not done")


def _record(draft: Draft, command: RecordCriterion) -> None:
    run = check_run(draft, command.run_id, command.epoch)
    if command.criterion not in run.criteria:
        raise CommandRejected(
            Code.CRITERION_UNKNOWN, f"the contract has no criterion {command.criterion!r}"
        )
    judged = Criterion(command.met, command.evidence)
    draft.put_run(
        command.run_id, run._replace(criteria=run.criteria.set(command.criterion, judged))
    )


def _fire(draft: Draft, command: FireTrigger) -> None:
    trigger = draft.triggers.get(command.trigger_id)
    if trigger is None:
        raise CommandRejected(
            Code.TRIGGER_UNKNOWN, f"no trigger {command.trigger_id!r}; register it first"
        )
    started = trigger.firings.get(command.firing_id)
    if started is not None:
        if started != command.run_id:
            raise CommandRejected(
                Code.FIRING_EXISTS, f"firing {command.firing_id!r} started run {started!r}"
            )
        return
    _start(draft, command.run_id)
    draft.triggers = draft.triggers.set(
        command.trigger_id,
        trigger._replace(firings=trigger.firings.set(command.firing_id, command.run_id)),
    )
