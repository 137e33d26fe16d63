"""Who may do what: runs and their epochs, the caller's checks, grants and approvals.

``check_authority`` and the approval after it are step 3 of the design page, in its order; the
commands that give and take authority follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from counterfoil.mission.commands import (
    Approval,
    Approve,
    AuthorityCommand,
    Delegate,
    Gate,
    GrantTerms,
    MakeGrant,
    RevokeGrant,
)
from counterfoil.mission.errors import Code, CommandRejected
from counterfoil.mission.persistent import PersistentMap
from counterfoil.mission.state import Admission, Grant, LastWord, Names, Run, Words
from counterfoil.mission.vocabulary import Decision, Policy, RunStatus

if TYPE_CHECKING:
    from counterfoil.mission.amounts import Amount
    from counterfoil.mission.draft import Draft
    from counterfoil.mission.parsing import FrozenJson


def check_run(draft: Draft, run_id: str, epoch: int | None) -> Run:
    """Return an open run if the epoch is its own."""
    run = open_run(draft, run_id)
    if epoch is None and run.epoch != 1:
        raise CommandRejected(
            Code.EPOCH_REQUIRED, f"run {run_id!r} was claimed; say under which epoch"
        )
    if epoch is not None and epoch != run.epoch:
        raise CommandRejected(
            Code.STALE_EPOCH, f"run {run_id!r} is at epoch {run.epoch}; claim it first"
        )
    return run


def open_run(draft: Draft, run_id: str) -> Run:
    """Return a run that is known and open."""
    run = draft.runs.get(run_id)
    if run is None:
        raise CommandRejected(Code.RUN_UNKNOWN, f"no run {run_id!r}; start it first")
    if run.status is not RunStatus.OPEN:
        raise CommandRejected(Code.RUN_CLOSED, f"run {run_id!r} is {run.status.value}")
    return run


def check_deadline(draft: Draft) -> None:
    """Refuse from the deadline on."""
    if draft.now_ms >= draft.contract.deadline_ms:
        raise CommandRejected(
            Code.DEADLINE_PASSED, f"the contract ended at {draft.contract.deadline_ms}"
        )


def check_authority(
    draft: Draft, admission: Admission, gate: Gate | None, epoch: int | None
) -> None:
    """Run the checks of step 3 up to the approval. ``gate`` is None for a redelivery."""
    check_run(draft, admission.run_id, epoch)
    check_deadline(draft)
    if gate is not None:
        _check_gate(draft, gate)
    _check_grant(draft, admission)


def _check_gate(draft: Draft, gate: Gate) -> None:
    if gate.policy is Policy.DENY:
        raise CommandRejected(Code.POLICY_DENIED, "the policy said DENY")
    if not gate.mandatory_checks_ok:
        raise CommandRejected(Code.MANDATORY_CHECKS_FAILED, "a mandatory check failed")
    age_ms = draft.now_ms - gate.checked_at_ms
    if age_ms > draft.contract.authorization_age_max_ms:
        raise CommandRejected(
            Code.AUTHORIZATION_STALE, f"authorization was checked {age_ms} ms ago; check it again"
        )
    if age_ms < 0:
        raise CommandRejected(
            Code.AUTHORIZATION_IN_FUTURE, f"authorization was checked {-age_ms} ms from now"
        )


def _check_grant(draft: Draft, admission: Admission) -> None:
    grant = draft.grants.get(admission.grant_id)
    if grant is None:
        raise CommandRejected(Code.GRANT_UNKNOWN, f"no grant {admission.grant_id!r}")
    terms = grant.terms
    if grant.revoked:
        raise CommandRejected(Code.GRANT_REVOKED, f"grant {terms.id!r} was revoked")
    if draft.now_ms < terms.not_before_ms:
        raise CommandRejected(
            Code.GRANT_NOT_YET_VALID, f"grant {terms.id!r} begins at {terms.not_before_ms}"
        )
    if draft.now_ms >= terms.expires_at_ms:
        raise CommandRejected(
            Code.GRANT_EXPIRED, f"grant {terms.id!r} ended at {terms.expires_at_ms}"
        )
    if admission.subject != terms.subject:
        raise CommandRejected(Code.SUBJECT_MISMATCH, f"grant {terms.id!r} is for {terms.subject!r}")
    action, contract = admission.action, draft.contract
    if action.capability not in contract.actions:
        raise _not_allowed(Code.ACTION_NOT_ALLOWED, "the contract", action.capability)
    if action.capability not in terms.actions:
        raise _not_allowed(Code.ACTION_NOT_ALLOWED, "the grant", action.capability)
    if action.resource not in contract.resources:
        raise _not_allowed(Code.RESOURCE_NOT_ALLOWED, "the contract", action.resource)
    if action.resource not in terms.resources:
        raise _not_allowed(Code.RESOURCE_NOT_ALLOWED, "the grant", action.resource)


def _not_allowed(code: Code, where: str, name: str) -> CommandRejected:
    return CommandRejected(code, f"{where} does not allow {name!r}")


def carrying_approval(
    draft: Draft, operation_id: str, admission: Admission, amount: Amount
) -> str | None:
    """Return the id of the approval that carries a new operation; None where none is required."""
    words = draft.words.get(operation_id)
    if not draft.contract.requires_approval:
        _check_not_rejected(words, admission.subject)
        return None
    said = None if words is None else words.by_digest.get(admission.action.digest)
    if said is None:
        raise CommandRejected(
            Code.APPROVAL_MISSING,
            f"nobody approved operation {operation_id!r} with digest "
            f"{admission.action.digest}; have it approved",
        )
    approval = said.not_by(admission.subject)
    if approval is None:
        raise CommandRejected(
            Code.APPROVAL_SELF, f"only {admission.subject!r} approved; somebody else must"
        )
    _check_not_rejected(words, admission.subject)
    _check_carries(draft, approval, amount)
    return approval.id


def check_approval(draft: Draft, operation_id: str, admission: Admission, amount: Amount) -> None:
    """Ask again for an admitted operation: the approval that carried it, and the last word."""
    _check_not_rejected(draft.words.get(operation_id), admission.subject)
    if admission.approval_id is not None:
        _check_carries(draft, draft.approvals[admission.approval_id], amount)


def _check_not_rejected(words: Words | None, subject: str) -> None:
    # The last word on the operation's id counts whatever action it was about.
    word = None if words is None else words.last.not_by(subject)
    if word is not None and word.decision is Decision.REJECTED:
        raise CommandRejected(
            Code.APPROVAL_REJECTED, f"{word.approver!r} rejected it; have it approved again"
        )


def _check_carries(draft: Draft, approval: Approval, amount: Amount) -> None:
    if approval.decision is Decision.REJECTED:
        raise CommandRejected(
            Code.APPROVAL_REJECTED, f"{approval.approver!r} rejected this very action"
        )
    if draft.now_ms >= approval.expires_at_ms:
        raise CommandRejected(
            Code.APPROVAL_EXPIRED, f"approval {approval.id!r} ended at {approval.expires_at_ms}"
        )
    if amount > approval.amount_max:
        raise CommandRejected(
            Code.APPROVAL_AMOUNT_EXCEEDED, f"approval {approval.id!r} covers less; ask for less"
        )


# --- giving and taking authority -----------------------------------------------------------------


def apply(draft: Draft, command: AuthorityCommand) -> None:
    """Give, hand on, take back or approve; CommandRejected where it may not be."""
    match command:
        case MakeGrant(terms):
            _check_new_grant(draft, terms)
            draft.grants = draft.grants.set(terms.id, Grant(terms))
        case Delegate():
            _delegate(draft, command)
        case RevokeGrant():
            _revoke(draft, command)
        case Approve(approval):
            _approve(draft, approval)
        case _:
            assert_never(command)


def _check_new_grant(draft: Draft, terms: GrantTerms) -> None:
    if terms.id in draft.grants:
        raise CommandRejected(Code.GRANT_EXISTS, f"grant {terms.id!r} exists; use another id")


def _known_grant(draft: Draft, grant_id: str) -> Grant:
    grant = draft.grants.get(grant_id)
    if grant is None:
        raise CommandRejected(Code.GRANT_UNKNOWN, f"no grant {grant_id!r}")
    return grant


def _delegate(draft: Draft, command: Delegate) -> None:
    parent = _known_grant(draft, command.parent_grant_id)
    child, above = command.terms, parent.terms
    _check_new_grant(draft, child)
    if parent.revoked:
        raise CommandRejected(Code.GRANT_REVOKED, f"grant {above.id!r} was revoked")
    if draft.now_ms >= above.expires_at_ms:
        raise CommandRejected(
            Code.GRANT_EXPIRED, f"grant {above.id!r} ended at {above.expires_at_ms}"
        )
    if not above.can_delegate or above.depth == 0:
        raise CommandRejected(
            Code.DELEGATION_NOT_ALLOWED, f"grant {above.id!r} may not be handed on"
        )
    within = {
        "actions": set(child.actions) <= set(above.actions),
        "resources": set(child.resources) <= set(above.resources),
        "notBefore": child.not_before_ms >= above.not_before_ms,
        "expiresAt": child.expires_at_ms <= above.expires_at_ms,
        "limit": child.limit <= above.limit,
        "depth": child.depth <= above.depth - 1,
    }
    wide = [member for member, holds in within.items() if not holds]
    if wide:
        raise CommandRejected(
            Code.DELEGATION_TOO_WIDE,
            f"{', '.join(wide)} of grant {child.id!r} reach beyond grant {above.id!r}",
        )
    draft.grants = draft.grants.set(
        above.id, parent._replace(children=parent.children.set(child.id, None))
    ).set(child.id, Grant(child, parent_id=above.id))


def _revoke(draft: Draft, command: RevokeGrant) -> None:
    grant = _known_grant(draft, command.grant_id)
    if grant.revoked:
        raise CommandRejected(Code.GRANT_REVOKED, f"grant {command.grant_id!r} was revoked before")
    _revoke_below(draft, command.grant_id, command.reason)


def _revoke_below(draft: Draft, grant_id: str, reason: FrozenJson) -> None:
    waiting = [grant_id]
    while waiting:
        name = waiting.pop()
        grant = draft.grants[name]
        # One that was revoked earlier keeps its reason; all below it was revoked with it.
        if not grant.revoked:
            draft.grants = draft.grants.set(name, grant._replace(revoked=True, reason=reason))
            waiting.extend(grant.children)


def _approve(draft: Draft, given: Approval) -> None:
    if draft.approval(given.id) is not None:
        raise CommandRejected(Code.APPROVAL_EXISTS, f"approval {given.id!r} exists; use another id")
    draft.operation(given.operation_id)  # brings back what was said of it, if it had left
    approval = Approval(
        given.id,
        given.operation_id,
        given.action_digest,
        given.amount_max,
        given.approver,
        given.decision,
        given.expires_at_ms,
        seq=draft.events + 1,
    )
    draft.approvals = draft.approvals.set(approval.id, approval)
    words = with_word(draft.words.get(approval.operation_id), approval)
    draft.words = draft.words.set(approval.operation_id, words)


def with_word(words: Words | None, approval: Approval) -> Words:
    """Return what was said of an operation id, with one word more."""
    first = LastWord(approval, None)
    if words is None:
        by_digest: PersistentMap[LastWord] = PersistentMap()
        words = Words(first, by_digest.set(approval.action_digest, first), Names())
    else:
        said = words.by_digest.get(approval.action_digest)
        then = first if said is None else said.then(approval)
        words = words._replace(
            last=words.last.then(approval),
            by_digest=words.by_digest.set(approval.action_digest, then),
        )
    return words._replace(approval_ids=words.approval_ids.set(approval.id, None))
