"""The fold: a state, a command and a time give the next state, or a refusal that changes nothing.

Order (design page, "Checks and codes"): the feature, the time, the ids, the stop, then each
command's own checks. No clock, no I/O, no randomness: equal commands give equal bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.mission import authority, effects, nodes, runs
from counterfoil.mission import commands as c
from counterfoil.mission.amounts import AMOUNT_CHARACTERS_MAX
from counterfoil.mission.draft import Draft, Lookup, Retired
from counterfoil.mission.errors import Code, CommandError, CommandRejected
from counterfoil.mission.parsing import parse_count
from counterfoil.mission.transitions import RULES

if TYPE_CHECKING:
    from counterfoil.mission.commands import Command
    from counterfoil.mission.state import Operation, State

_NOW_END = 10**AMOUNT_CHARACTERS_MAX
_ABOUT_AN_ATTEMPT = (c.Dispatch, c.Settle, c.Redeliver, c.Review, c.Correct, c.Release)


def reduce(state: State, command: Command, now: int | str, lookup: Lookup | None = None) -> State:
    """Return the state after ``command`` at ``now`` (milliseconds, int or decimal string).

    ``state`` stays as it was. ``lookup`` finds operations that ``retire`` took out of it. Raises
    CommandRejected with a code if the command may not happen now, CommandError at ``/now`` for a
    time that is none.
    """
    now_ms = read_now(now)
    rule = RULES.get(type(command))
    if rule is None:
        raise CommandError("", "is no command; read it with parse_command")
    draft = Draft(state, lookup)
    if rule.feature is not None and rule.feature not in draft.contract.features:
        raise CommandRejected(
            Code.FEATURE_DISABLED, f"the contract does not have the feature {rule.feature.value}"
        )
    if now_ms > draft.now_ms:
        draft.now_ms = now_ms
    elif rule.widens and now_ms < draft.now_ms:
        raise CommandRejected(
            Code.TIME_WENT_BACK, f"{now_ms} is before {draft.now_ms}, the last time seen"
        )
    _check_ids(draft, command)
    if draft.stopped is not None and not rule.after_stop:
        raise CommandRejected(
            Code.MISSION_STOPPED, f"the mission was stopped at {draft.stopped.at_ms}"
        )
    _apply(draft, command)
    draft.events += 1
    return draft.close()


def read_now(now: int | str, path: str = "/now") -> int:
    """Return a time in milliseconds; CommandError at ``path`` if it is none."""
    if type(now) is int:
        if not 0 <= now < _NOW_END:
            raise CommandError(path, f"must be 0 or more, in {AMOUNT_CHARACTERS_MAX} digits")
        return now
    if not isinstance(now, str):
        raise CommandError(path, "must be an integer decimal string of milliseconds")
    try:
        return parse_count(now)
    except ValueError as error:
        raise CommandError(path, str(error)) from None


def _check_ids(draft: Draft, command: Command) -> None:
    if isinstance(command, c.Admit):
        _check_new(draft, command.operation_id, command.attempt_id)
    elif isinstance(command, _ABOUT_AN_ATTEMPT):
        if draft.holder(command.attempt_id) is None:
            raise CommandRejected(Code.ATTEMPT_UNKNOWN, f"no attempt {command.attempt_id!r}")
    elif isinstance(command, c.Retry):
        _check_known(draft, command.operation_id)
        _check_new(draft, None, command.attempt_id)
    elif isinstance(command, c.Compensate):
        _check_known(draft, command.original_operation_id)
        _check_new(draft, command.admit.operation_id, command.admit.attempt_id)


def _check_known(draft: Draft, operation_id: str) -> None:
    if draft.operation(operation_id) is None:
        raise CommandRejected(Code.OPERATION_UNKNOWN, f"no operation {operation_id!r}")


def _check_new(draft: Draft, operation_id: str | None, attempt_id: str) -> None:
    if operation_id is not None and draft.operation(operation_id) is not None:
        raise CommandRejected(
            Code.OPERATION_EXISTS, f"operation {operation_id!r} exists; use another id"
        )
    if draft.holder(attempt_id) is not None:
        raise CommandRejected(Code.ATTEMPT_EXISTS, f"attempt {attempt_id!r} exists; use another id")


def _apply(draft: Draft, command: Command) -> None:
    if isinstance(command, c.EffectCommand):
        effects.apply(draft, command)
    elif isinstance(command, c.AuthorityCommand):
        authority.apply(draft, command)
    elif isinstance(command, c.GraphCommand):
        nodes.apply(draft, command)
    else:
        runs.apply(draft, command)


def find_operation(
    state: State, operation_id: str, lookup: Lookup | None = None
) -> Operation | None:
    """Return an operation of the live state or of the lookup; None where neither has it."""
    found = state.parts.operations.get(operation_id)
    if found is None and lookup is not None:
        retired = lookup.operation(operation_id)
        found = None if retired is None else retired.operation
    return found


def retire_settled(state: State) -> tuple[State, list[Retired]]:
    """Take every operation at rest out of the live state, in the order of their ids."""
    left = []
    for operation_id, operation in state.parts.operations.items():
        if operation.dispatched or operation.prepared:
            continue
        state, retired = retire(state, operation_id)
        left.append(retired)
    return state, left


def retire(state: State, operation_id: str) -> tuple[State, Retired]:
    """Take a settled operation out of the live state: give it to the ``lookup`` of ``reduce``.

    No check comes out otherwise with it gone, as long as the lookup has it. Its money, its run
    and its nodes stay. Raises CommandRejected: ``operation_unknown``, or ``effect_unknown`` and
    ``attempt_open`` while one of its attempts holds a reservation.
    """
    draft = Draft(state, None)
    operation = draft.operations.get(operation_id)
    if operation is None:
        raise CommandRejected(Code.OPERATION_UNKNOWN, f"no operation {operation_id!r}")
    _check_at_rest(operation_id, operation)
    words = draft.words.get(operation_id)
    ids = () if words is None else tuple(words.approval_ids)
    retired = Retired(
        operation_id,
        operation,
        tuple(draft.approvals[name] for name in ids),
        words,
    )
    draft.operations = draft.operations.without(operation_id)
    for attempt in operation.attempts:
        draft.attempts = draft.attempts.without(attempt.id)
    for name in ids:
        draft.approvals = draft.approvals.without(name)
    if words is not None:
        draft.words = draft.words.without(operation_id)
    return draft.close(), retired


def _check_at_rest(operation_id: str, operation: Operation) -> None:
    if operation.dispatched:
        raise CommandRejected(
            Code.EFFECT_UNKNOWN, f"operation {operation_id!r} is UNKNOWN; settle it first"
        )
    if operation.prepared:
        raise CommandRejected(
            Code.ATTEMPT_OPEN, f"operation {operation_id!r} has a prepared attempt"
        )
