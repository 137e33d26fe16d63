"""A walk over every state of two operations with two attempts each: every command type is tried
in each of them, and is either a transition or a refusal with a name."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from mission_desk import CONTRACT, check_derived, command_of

from counterfoil.mission import (
    COMMAND_TYPES,
    Code,
    CommandRejected,
    create_mission,
    parse_command,
    parse_contract,
    reduce,
)
from counterfoil.mission.transitions import ATTEMPTS, BLOCKS, DISPOSITIONS, RETRY
from counterfoil.mission.vocabulary import AttemptStatus, Disposition

if TYPE_CHECKING:
    from counterfoil.mission import Command, State

NOT_APPLIED = {"effect": "CONFIRMED_NOT_APPLIED", "actualCost": "0"}
UNKNOWN = {"effect": "UNKNOWN", "actualCost": "0"}


def steps() -> list[dict[str, Any]]:
    """Return the commands that lead from state to state."""
    found = [
        command_of("admit", attemptId="a1"),
        command_of("admit", operationId="p", attemptId="b1"),
        command_of("compensate", operationId="p", attemptId="b1"),
        command_of("retry", attemptId="a2"),
        command_of("retry", operationId="p", attemptId="b2"),
        command_of("finishRun"),
        command_of("finishRun", status="FAILED"),
        command_of("stopMission"),
    ]
    for attempt in ("a1", "a2", "b1", "b2"):
        at = {"attemptId": attempt}
        found += [
            command_of("dispatch", **at),
            command_of("release", **at),
            command_of("settle", **at),
            command_of("settle", **at, **NOT_APPLIED),
            command_of("settle", **at, **UNKNOWN),
            command_of("correct", **at, **NOT_APPLIED),
            command_of("correct", **at, effect="CONFIRMED_APPLIED", actualCost="3"),
        ]
    return found


def others() -> list[dict[str, Any]]:
    """Return commands of the types that are tried in every state and not followed."""
    about_attempts = {"dispatch": "a1", "redeliver": "b1", "settle": "b2", "review": "a2"}
    found = [
        command_of(kind, **({"attemptId": about_attempts[kind]} if kind in about_attempts else {}))
        for kind in COMMAND_TYPES
    ]
    return [*found, command_of("retry", attemptId="a3"), command_of("redeliver", attemptId="a2")]


def key(state: State) -> tuple[object, ...]:
    """Return what tells two states apart: all but money, which follows, and what was said when."""
    parts = state.parts
    return (
        parts.stopped is not None,
        parts.runs["r"].status,
        *(
            (
                name,
                operation.admission.compensates,
                tuple((a.id, a.status, a.effect) for a in operation.attempts),
            )
            for name, operation in parts.operations.items()
        ),
    )


def begin() -> State:
    state = create_mission(parse_contract(CONTRACT))
    for kind in ("startRun", "grant"):
        state = reduce(state, parse_command(command_of(kind)), 10)
    return state


def tried(state: State, command: Command) -> State | Code:
    try:
        return reduce(state, command, 10)
    except CommandRejected as refusal:
        return Code(refusal.code)


def test_every_command_in_every_reachable_state_is_a_transition_or_a_named_refusal() -> None:
    follow = [parse_command(command) for command in steps()]
    probe = [parse_command(command) for command in others()]
    start = begin()
    seen = {key(start)}
    waiting = [start]
    refusals: Counter[Code] = Counter()
    accepted = 0
    while waiting:
        state = waiting.pop()
        if len(seen) % 16 == 0:
            check_derived(state)
        for command in follow:
            then = tried(state, command)
            if isinstance(then, Code):
                refusals[then] += 1
                continue
            accepted += 1
            if key(then) not in seen:
                seen.add(key(then))
                waiting.append(then)
        for command in probe:
            outcome = tried(state, command)
            if isinstance(outcome, Code):
                refusals[outcome] += 1
            else:
                accepted += 1
    print(f"{len(seen)} states, {accepted} transitions, {sum(refusals.values())} refusals")
    assert len(seen) > 1000
    assert {Code.ALREADY_COMPENSATED, Code.ATTEMPTS_EXHAUSTED, Code.RUN_CLOSED} <= set(refusals)


def test_the_tables_are_complete() -> None:
    assert set(RETRY) == set(Disposition)
    assert {status for status, _ in ATTEMPTS} == set(AttemptStatus) - {AttemptStatus.RELEASED}
    # Whatever was applied was settled; an UNKNOWN operation has no prepared attempt.
    assert len(DISPOSITIONS) == 8 - 2
    assert len(BLOCKS) == 8 - 1
