"""Operations and their attempts: from admission to the answer, and what follows from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, assert_never

from counterfoil.mission.authority import (
    carrying_approval,
    check_approval,
    check_authority,
)
from counterfoil.mission.budget import check_money, move
from counterfoil.mission.commands import (
    Admit,
    Compensate,
    Correct,
    Dispatch,
    EffectCommand,
    Redeliver,
    Release,
    Retry,
    Review,
    Settle,
)
from counterfoil.mission.errors import Code, CommandRejected
from counterfoil.mission.nodes import check_node
from counterfoil.mission.state import (
    NO_LINKS,
    Admission,
    Attempt,
    Correction,
    Links,
    Operation,
    ReviewEntry,
)
from counterfoil.mission.transitions import RETRY, Step, step
from counterfoil.mission.vocabulary import AttemptStatus, Effect, Finding

if TYPE_CHECKING:
    from counterfoil.mission.amounts import Amount
    from counterfoil.mission.draft import Draft
    from counterfoil.mission.parsing import FrozenJson

_FOUND: dict[Finding, Effect] = {
    Finding.APPLIED: Effect.CONFIRMED_APPLIED,
    Finding.NOT_APPLIED: Effect.CONFIRMED_NOT_APPLIED,
    Finding.STILL_UNKNOWN: Effect.UNKNOWN,
}


def apply(draft: Draft, command: EffectCommand) -> None:
    """Take one step of an operation; CommandRejected where it may not be."""
    match command:
        case Admit():
            _admit(draft, command, None)
        case Dispatch():
            _dispatch(draft, command)
        case Settle():
            _settle(draft, command)
        case Retry():
            _retry(draft, command)
        case Release():
            release(draft, command.attempt_id)
        case Redeliver():
            _redeliver(draft, command)
        case Review():
            _review(draft, command)
        case Correct():
            _correct(draft, command)
        case Compensate():
            _admit(draft, command.admit, command.original_operation_id)
        case _:
            assert_never(command)


class Held(NamedTuple):
    """An attempt that step 2 found, its place, and its operation."""

    operation_id: str
    operation: Operation
    at: int
    attempt: Attempt


def _held(draft: Draft, attempt_id: str) -> Held:
    operation_id = draft.attempts[attempt_id]
    operation = draft.operations[operation_id]
    at = operation.place(attempt_id)
    return Held(operation_id, operation, at, operation.attempts[at])


def _admit(draft: Draft, command: Admit, original_id: str | None) -> None:
    admission = Admission(
        command.run_id, command.grant_id, command.subject, command.action, None, original_id
    )
    check_authority(draft, admission, command.gate, command.epoch)
    approval_id = carrying_approval(draft, command.operation_id, admission, command.amount)
    links = NO_LINKS
    if original_id is not None:
        _check_original(draft, original_id, itself_blocks=False)
        links = Links(undoes=original_id)
    check_money(draft, command.grant_id, command.amount)
    if approval_id is not None:
        admission = admission._replace(approval_id=approval_id)
    attempt = _prepare(draft, command.operation_id, admission, command.attempt_id, command.amount)
    draft.put(command.operation_id, None, Operation(admission, (attempt,), links))


def _prepare(
    draft: Draft, operation_id: str, admission: Admission, attempt_id: str, amount: Amount
) -> Attempt:
    move(draft, admission.grant_id, reserved=amount)
    draft.attempts = draft.attempts.set(attempt_id, operation_id)
    return Attempt(attempt_id, amount, AttemptStatus.PREPARED)


def _check_original(draft: Draft, original_id: str, *, itself_blocks: bool) -> None:
    original = draft.operation(original_id)
    assert original is not None, "step 2, or the admission, found it"
    if not original.applied:
        raise CommandRejected(
            Code.ORIGINAL_NOT_APPLIED, f"operation {original_id!r} was not applied"
        )
    if original.links.blocking > itself_blocks:
        raise CommandRejected(
            Code.ALREADY_COMPENSATED, f"another operation compensates {original_id!r}"
        )
    if original.dispatched:
        raise CommandRejected(
            Code.ORIGINAL_UNSETTLED, f"an attempt of {original_id!r} is unsettled; settle it first"
        )


def _retry(draft: Draft, command: Retry) -> None:
    operation_id = command.operation_id
    operation = draft.operations[operation_id]
    admission = operation.admission
    check_authority(draft, admission, command.gate, command.epoch)
    check_approval(draft, operation_id, admission, command.amount)
    refusal = RETRY[operation.disposition]
    if refusal is not None:
        raise CommandRejected(
            refusal, f"operation {operation_id!r} is {operation.disposition.value}"
        )
    if operation.prepared:
        raise CommandRejected(
            Code.ATTEMPT_OPEN, f"operation {operation_id!r} has a prepared attempt"
        )
    tried = len(operation.attempts) - operation.released
    if tried >= draft.contract.attempts_max:
        raise CommandRejected(
            Code.ATTEMPTS_EXHAUSTED,
            f"operation {operation_id!r} had {tried} of {draft.contract.attempts_max}",
        )
    if operation.links.undoes is not None:
        _check_original(draft, operation.links.undoes, itself_blocks=operation.blocks)
    check_money(draft, admission.grant_id, command.amount)
    attempt = _prepare(draft, operation_id, admission, command.attempt_id, command.amount)
    draft.put(operation_id, operation, operation._replace(attempts=(*operation.attempts, attempt)))


def _dispatch(draft: Draft, command: Dispatch) -> None:
    operation_id, operation, at, attempt = _held(draft, command.attempt_id)
    admission, links = operation.admission, operation.links
    check_authority(draft, admission, command.gate, command.epoch)
    check_approval(draft, operation_id, admission, attempt.amount)
    status = step(attempt.status, Step.DISPATCH, attempt.id)
    if operation.applied:
        raise CommandRejected(
            Code.ALREADY_APPLIED, f"operation {operation_id!r} was applied; release the attempt"
        )
    if links.undoes is not None:
        _check_original(draft, links.undoes, itself_blocks=operation.blocks)
    check_money(draft, admission.grant_id)
    run = draft.runs[admission.run_id]
    sent = operation.moved(
        at, Attempt(attempt.id, attempt.amount, status, run.epoch, command.node_id)
    )
    if command.node_id is not None or run.graph_id is not None:
        node_id, node = check_node(draft, run, command.node_id)
        if node_id not in links.nodes:
            sent = sent._replace(links=links._replace(nodes=(*links.nodes, node_id)))
        nodes = run.nodes.set(node_id, node._replace(operation_id=operation_id))
        draft.put_run(admission.run_id, run._replace(nodes=nodes))
    draft.put(operation_id, operation, sent)


def _redeliver(draft: Draft, command: Redeliver) -> None:
    operation_id, operation, _, attempt = _held(draft, command.attempt_id)
    check_authority(draft, operation.admission, None, command.epoch)
    check_approval(draft, operation_id, operation.admission, attempt.amount)
    step(attempt.status, Step.REDELIVER, attempt.id)
    if operation.under_review:
        raise CommandRejected(
            Code.UNDER_REVIEW, f"attempt {attempt.id!r} waits for a person's answer"
        )


def release(draft: Draft, attempt_id: str) -> None:
    """Give a prepared attempt's reservation back."""
    operation_id, operation, at, attempt = _held(draft, attempt_id)
    status = step(attempt.status, Step.RELEASE, attempt_id)
    move(draft, operation.admission.grant_id, reserved=-attempt.amount)
    released = operation.moved(at, attempt._replace(status=status), released=1)
    draft.put(operation_id, operation, released)


# --- facts ---------------------------------------------------------------------------------------


def _settle(draft: Draft, command: Settle) -> None:
    held = _held(draft, command.attempt_id)
    attempt = held.attempt
    step(attempt.status, Step.ANSWER, attempt.id)
    # Fencing protects new effects; it does not suppress facts: the epoch of the dispatch is good.
    epoch = 1 if command.epoch is None else command.epoch
    run = draft.runs[held.operation.admission.run_id]
    if epoch not in (run.epoch, attempt.epoch):
        raise CommandRejected(
            Code.STALE_EPOCH,
            f"the run is at epoch {run.epoch}, the attempt was dispatched at {attempt.epoch}",
        )
    if _is_said_again(attempt, command.effect, command.actual_cost):
        return
    evidence = attempt.evidence if command.evidence is None else command.evidence
    if command.effect is Effect.UNKNOWN:
        _stay_unknown(draft, held, evidence, attempt.reviews)
    else:
        _answer(draft, held, command.effect, command.actual_cost, evidence, attempt.reviews)


def _is_said_again(attempt: Attempt, effect: Effect, cost: Amount) -> bool:
    """Say whether this answer was given before; refuse one that contradicts a settlement."""
    if attempt.status is not AttemptStatus.SETTLED:
        return effect is Effect.UNKNOWN and attempt.effect is Effect.UNKNOWN
    said = [(attempt.effect, attempt.actual_cost)]
    said += [(old.effect, old.actual_cost) for old in attempt.corrections]
    if (effect, cost) not in said:
        raise CommandRejected(
            Code.INCONSISTENT_SETTLEMENT,
            f"attempt {attempt.id!r} was settled otherwise; correct it if that was wrong",
        )
    return True


def _stay_unknown(
    draft: Draft,
    held: Held,
    evidence: FrozenJson | None,
    reviews: tuple[ReviewEntry, ...],
) -> None:
    operation_id, operation, at, attempt = held
    unknown = attempt._replace(
        status=step(attempt.status, Step.STAY_UNKNOWN, attempt.id),
        effect=Effect.UNKNOWN,
        evidence=evidence,
        reviews=reviews,
    )
    draft.put(operation_id, operation, operation.moved(at, unknown))


def _answer(
    draft: Draft,
    held: Held,
    effect: Effect,
    cost: Amount,
    evidence: FrozenJson | None,
    reviews: tuple[ReviewEntry, ...],
) -> None:
    operation_id, operation, at, attempt = held
    move(draft, operation.admission.grant_id, reserved=-attempt.amount, spent=cost)
    settled = Attempt(
        attempt.id,
        attempt.amount,
        step(attempt.status, Step.ANSWER, attempt.id),
        attempt.epoch,
        attempt.node_id,
        effect,
        cost,
        evidence,
        reviews,
    )
    applied = effect is Effect.CONFIRMED_APPLIED
    draft.put(operation_id, operation, operation.moved(at, settled, applied=applied, settled=1))


def _review(draft: Draft, command: Review) -> None:
    held = _held(draft, command.attempt_id)
    attempt = held.attempt
    step(attempt.status, Step.ANSWER, attempt.id)
    effect = _FOUND[command.decision]
    if attempt.status is AttemptStatus.SETTLED:
        _is_said_again(attempt, effect, command.actual_cost)
        return
    entry = ReviewEntry(
        command.reviewer, command.decision, command.actual_cost, command.evidence, draft.now_ms
    )
    reviews = (*attempt.reviews, entry)
    if effect is Effect.UNKNOWN:
        _stay_unknown(draft, held, attempt.evidence, reviews)
    else:
        _answer(draft, held, effect, command.actual_cost, attempt.evidence, reviews)


def _correct(draft: Draft, command: Correct) -> None:
    operation_id, operation, at, attempt = _held(draft, command.attempt_id)
    status = step(attempt.status, Step.CORRECT, attempt.id)
    old_effect, old_cost = attempt.effect, attempt.actual_cost
    assert old_effect is not None, "a settled attempt has one"
    assert old_cost is not None, "a settled attempt has one"
    replaced = Correction(old_effect, old_cost, command.by, command.evidence, draft.now_ms)
    move(draft, operation.admission.grant_id, spent=command.actual_cost - old_cost)
    corrected = attempt._replace(
        status=status,
        effect=command.effect,
        actual_cost=command.actual_cost,
        corrections=(*attempt.corrections, replaced),
    )
    was_applied = old_effect is Effect.CONFIRMED_APPLIED
    is_applied = command.effect is Effect.CONFIRMED_APPLIED
    draft.put(
        operation_id,
        operation,
        operation.moved(at, corrected, applied=is_applied - was_applied),
    )
