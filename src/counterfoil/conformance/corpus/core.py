"""``vectors-uncertain-effect``: what the contract settles in words.

Controls first; then denials, each one edit away from a control and denied by the check it names
first. No case stands where an honest reader may choose otherwise: at the ends of a lease or of a
retention window, at equal times, at answers under another key than the one in doubt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.conformance.corpus.building import Controls, Corpus, append, drop, put
from counterfoil.conformance.corpus.readmes import CORE
from counterfoil.conformance.corpus.trails import (
    COMMITTED,
    CONFIRMED,
    FIRST,
    LOST,
    NO_EFFECT,
    NOT_RUN,
    OTHER_DIGEST,
    OTHER_KEY,
    SECOND,
    TIMEOUT,
    UNKNOWN,
    absent,
    at,
    attempt,
    effect,
    held,
    invoice,
    lease,
    present,
    reservation,
    trail,
)

if TYPE_CHECKING:
    from counterfoil.conformance.corpus.building import Case

NAME = "vectors-uncertain-effect"
SISTER_CONTRACT = "https://probityai.github.io/agent-evidence-observer/contract/"


def corpus() -> Corpus:
    """Return the corpus, controls first and then the denials in the order of the checks."""
    controls = _controls()
    denials = (
        *_contract(controls),
        *_identity(controls),
        *_leases(controls),
        *_resends_unanswered(controls),
        *_resends_beyond_deduplication(controls),
        *_effects_and_reservations(controls),
        *_reports(controls),
    )
    return Corpus(NAME, CORE, (*controls.cases, *denials))


def _controls() -> Controls:
    controls = Controls()
    _add_seed_controls(controls)
    _add_single_attempts(controls)
    _add_windows_notices_and_leases(controls)
    return controls


def _add_seed_controls(controls: Controls) -> None:
    """Add the safe controls that the contract lists by name."""
    controls.add(
        "timeout-reconciled-as-absent",
        "lost-before-commit",
        "a time-out; the owner's final answer is absent; reported not run",
        trail([attempt(1, "09:00:00", TIMEOUT)], NOT_RUN, answers=[absent("09:02:00")]),
    )
    controls.add(
        "resend-after-a-final-absent-answer",
        "lost-before-commit",
        "a time-out, a final absent answer, and only then a second attempt",
        trail(
            [attempt(1, "09:00:00", TIMEOUT), attempt(2, "09:05:00", CONFIRMED)],
            COMMITTED,
            answers=[absent("09:02:00")],
            effects=1,
        ),
    )
    controls.add(
        "resend-under-the-same-key-deduplicated",
        "commit-then-lost-reply-deduplicating",
        "a lost reply and a resend under the same key; the owner deduplicates without limit",
        trail(
            [attempt(1, "09:00:00", LOST), attempt(2, "09:01:00", CONFIRMED)],
            COMMITTED,
            effects=1,
            deduplicates=True,
        ),
    )
    controls.add(
        "lease-handed-over-and-reconciled",
        "lease-lost-after-lost-reply",
        "a lost reply; the lease passes on; the new holder asks, hears absent, and sends",
        trail(
            [
                held(1, "09:00:00", LOST, FIRST, 7),
                held(2, "09:20:00", CONFIRMED, SECOND, 8),
            ],
            COMMITTED,
            answers=[absent("09:15:00")],
            effects=1,
            leases=[
                lease(FIRST, 7, "08:55:00", "09:05:00"),
                lease(SECOND, 8, "09:10:00", "09:40:00"),
            ],
        ),
    )
    controls.add(
        "late-commit-waited-for",
        "late-commit-after-missed-lookup",
        "an answer that is not final misses the effect; a later one finds it; nothing is resent",
        trail(
            [attempt(1, "09:00:00", LOST)],
            COMMITTED,
            answers=[absent("09:01:00", final=False), present("09:10:00")],
            effects=1,
        ),
    )


def _add_single_attempts(controls: Controls) -> None:
    controls.add(
        "confirmed-at-once",
        "confirmed",
        "one attempt, confirmed",
        trail([attempt(1, "09:00:00", CONFIRMED)], COMMITTED, effects=1),
    )
    controls.add(
        "refused-definitely",
        "definite-no-effect",
        "one attempt that is known to have had no effect; reported not run",
        trail([attempt(1, "09:00:00", NO_EFFECT)], NOT_RUN),
    )
    controls.add(
        "lost-reply-found-present",
        "commit-then-lost-reply",
        "a lost reply; the owner is asked and holds the effect",
        trail([attempt(1, "09:00:00", LOST)], COMMITTED, answers=[present("09:02:00")], effects=1),
    )
    controls.add(
        "unknown-and-still-charged",
        "owner-unreachable-after-lost-reply",
        "a lost reply and no answer; reported unknown, the capacity still charged",
        trail(
            [attempt(1, "09:00:00", LOST)],
            UNKNOWN,
            effects=1,
            reservation=reservation("23:00:00"),
        ),
    )
    controls.add(
        "unknown-past-expiry-and-still-charged",
        "late-commit-after-missed-lookup",
        "an absent answer that is not final, after the reservation expired; still charged",
        trail(
            [attempt(1, "09:00:00", TIMEOUT)],
            UNKNOWN,
            answers=[absent("10:30:00", final=False)],
            reservation=reservation("10:00:00"),
        ),
    )


def _add_windows_notices_and_leases(controls: Controls) -> None:
    controls.add(
        "resend-inside-the-retention-window",
        "commit-then-lost-reply-deduplicating",
        "a resend under the same key ten minutes later; the owner remembers keys for an hour",
        trail(
            [attempt(1, "09:00:00", TIMEOUT), attempt(2, "09:10:00", CONFIRMED)],
            COMMITTED,
            effects=1,
            deduplicates=True,
            retention_s=3600,
        ),
    )
    controls.add(
        "invoice-after-a-lost-reply",
        "owner-unreachable-after-lost-reply",
        "billing sends a final invoice after a lost reply; the outcome stays unknown",
        trail(
            [attempt(1, "09:00:00", LOST)],
            UNKNOWN,
            reservation=reservation("23:00:00"),
            notices=[invoice("09:30:00")],
        ),
    )
    controls.add(
        "lease-held-throughout",
        "confirmed",
        "one worker, one lease, one confirmed attempt inside it",
        trail(
            [held(1, "09:00:00", CONFIRMED, FIRST, 7)],
            COMMITTED,
            effects=1,
            leases=[lease(FIRST, 7, "08:55:00", "09:25:00")],
        ),
    )


# --- denials, in the order of the checks ---------------------------------------------------------


def _contract(controls: Controls) -> tuple[Case, ...]:
    missing, unknown = "contract_id_missing", "contract_id_unknown"
    sister, version = SISTER_CONTRACT + "authority-at-dispatch/v1", "/predicate/v2/uncertain-effect"
    return (
        controls.deny(
            "no-contract-confirmed",
            "confirmed-at-once",
            missing,
            "the record names no contract",
            drop("/contractId"),
        ),
        controls.deny(
            "no-contract-not-run",
            "timeout-reconciled-as-absent",
            missing,
            "the record names no contract",
            drop("/contractId"),
        ),
        controls.deny(
            "contract-of-a-sister",
            "refused-definitely",
            unknown,
            "the record names the contract of another kind of record",
            put("/contractId", sister),
        ),
        controls.deny(
            "contract-of-another-version",
            "lease-held-throughout",
            unknown,
            "the record names another version of the contract",
            put("/contractId", "https://probityai.github.io/agent-evidence-vectors" + version),
        ),
    )


def _identity(controls: Controls) -> tuple[Case, ...]:
    missing, changed = "operation_identity_missing", "idempotency_key_args_changed"
    deduplicated = "resend-under-the-same-key-deduplicated"
    return (
        controls.deny(
            "operation-without-a-key",
            "confirmed-at-once",
            missing,
            "the operation carries no idempotency key",
            drop("/operation/idempotencyKey"),
        ),
        controls.deny(
            "operation-without-a-digest",
            "refused-definitely",
            missing,
            "the operation carries no digest of its arguments",
            drop("/operation/argsDigest"),
        ),
        controls.deny(
            "resend-without-a-key",
            deduplicated,
            missing,
            "the second attempt carries no idempotency key",
            drop("/attempts/1/idempotencyKey"),
        ),
        controls.deny(
            "attempt-without-a-digest",
            "lost-reply-found-present",
            missing,
            "the attempt carries no digest of its arguments",
            drop("/attempts/0/argsDigest"),
        ),
        controls.deny(
            "resend-with-other-arguments-deduplicated",
            deduplicated,
            changed,
            "the resend carries other arguments under the same key",
            put("/attempts/1/argsDigest", OTHER_DIGEST),
        ),
        controls.deny(
            "resend-with-other-arguments-after-absent",
            "resend-after-a-final-absent-answer",
            changed,
            "the second attempt carries other arguments under the same key",
            put("/attempts/1/argsDigest", OTHER_DIGEST),
        ),
        controls.deny(
            "only-attempt-with-other-arguments",
            "confirmed-at-once",
            changed,
            "the only attempt carries other arguments than the operation",
            put("/attempts/0/argsDigest", OTHER_DIGEST),
        ),
    )


def _leases(controls: Controls) -> tuple[Case, ...]:
    reason, handed = "dispatch_beyond_lease", "lease-handed-over-and-reconciled"
    return (
        controls.deny(
            "new-holder-with-the-old-token",
            handed,
            reason,
            "the new holder sends under the token of the lease that passed on",
            put("/attempts/1/fencingToken", 7),
        ),
        controls.deny(
            "sent-after-the-lease-ended",
            handed,
            reason,
            "the new holder's lease ended before it sent",
            put("/leases/1/expiresAt", at("09:12:00")),
        ),
        controls.deny(
            "sent-before-the-lease-began",
            "lease-held-throughout",
            reason,
            "the lease begins after the attempt was sent",
            put("/leases/0/acquiredAt", at("09:05:00")),
        ),
        controls.deny(
            "sent-under-a-superseded-token",
            "lease-held-throughout",
            reason,
            "another worker was granted a higher token before the attempt was sent",
            append("/leases", lease(SECOND, 8, "08:58:00", "09:28:00")),
        ),
        controls.deny(
            "sent-by-a-worker-without-a-lease",
            "lease-held-throughout",
            reason,
            "the attempt was sent by another worker than the one that held the lease",
            put("/attempts/0/worker", SECOND),
        ),
    )


def _resends_unanswered(controls: Controls) -> tuple[Case, ...]:
    reason = "retry_after_unknown"
    after_absent = "resend-after-a-final-absent-answer"
    return (
        controls.deny(
            "resend-without-an-answer",
            after_absent,
            reason,
            "nobody asked the owner before the second attempt",
            drop("/reconciliations/0"),
        ),
        controls.deny(
            "resend-after-an-answer-that-is-not-final",
            after_absent,
            reason,
            "the absent answer before the second attempt is not final",
            put("/reconciliations/0/final", False),
        ),
        controls.deny(
            "resend-before-the-answer",
            after_absent,
            reason,
            "the final absent answer came after the second attempt",
            put("/reconciliations/0/at", at("09:08:00")),
        ),
        controls.deny(
            "resend-after-a-present-answer",
            after_absent,
            reason,
            "the answer before the second attempt found the effect",
            put("/reconciliations/0/result", "present"),
        ),
        controls.deny(
            "resend-on-the-strength-of-an-invoice",
            "invoice-after-a-lost-reply",
            reason,
            "a second attempt follows the invoice, which is no answer of the owner",
            append("/attempts", attempt(2, "09:45:00", TIMEOUT)),
        ),
        controls.deny(
            "resend-by-the-new-holder-without-an-answer",
            "lease-handed-over-and-reconciled",
            reason,
            "the new holder sends without asking",
            drop("/reconciliations/0"),
        ),
    )


def _resends_beyond_deduplication(controls: Controls) -> tuple[Case, ...]:
    reason, deduplicated = "retry_after_unknown", "resend-under-the-same-key-deduplicated"
    return (
        controls.deny(
            "resend-to-an-owner-that-does-not-deduplicate",
            deduplicated,
            reason,
            "the owner does not deduplicate",
            put("/effectOwner/deduplicatesByKey", False),
        ),
        controls.deny(
            "resend-under-another-key",
            deduplicated,
            reason,
            "the resend carries another key, so the owner cannot deduplicate it",
            put("/attempts/1/idempotencyKey", OTHER_KEY),
        ),
        controls.deny(
            "resend-after-the-retention-window",
            "resend-inside-the-retention-window",
            reason,
            "the resend was sent two hours later, when the key may be forgotten",
            put("/attempts/1/dispatchedAt", at("11:00:00")),
        ),
    )


def _effects_and_reservations(controls: Controls) -> tuple[Case, ...]:
    duplicate, released = "duplicate_effect", "unknown_released"
    return (
        controls.deny(
            "two-effects-though-confirmed",
            "confirmed-at-once",
            duplicate,
            "the owner's ledger holds a second effect",
            append("/ownerEffects", effect(2)),
        ),
        controls.deny(
            "two-effects-though-answered-absent",
            "resend-after-a-final-absent-answer",
            duplicate,
            "the owner's ledger holds a second effect",
            append("/ownerEffects", effect(2)),
        ),
        controls.deny(
            "two-effects-though-deduplicated",
            "resend-inside-the-retention-window",
            duplicate,
            "the owner's ledger holds a second effect",
            append("/ownerEffects", effect(2)),
        ),
        controls.deny(
            "released-while-unknown",
            "unknown-and-still-charged",
            released,
            "the capacity is no longer charged",
            put("/reservation/charged", False),
        ),
        controls.deny(
            "released-at-expiry-while-unknown",
            "unknown-past-expiry-and-still-charged",
            released,
            "the capacity was released when the reservation expired",
            put("/reservation/charged", False),
        ),
        controls.deny(
            "released-on-the-strength-of-an-invoice",
            "invoice-after-a-lost-reply",
            released,
            "the capacity is no longer charged, and an invoice is no answer of the owner",
            put("/reservation/charged", False),
        ),
    )


def _reports(controls: Controls) -> tuple[Case, ...]:
    settled, disagrees = "outcome_settled_without_authority", "outcome_disagrees_with_authority"
    cases = (
        ("unknown-reported-as-committed", "unknown-and-still-charged", settled, COMMITTED),
        ("unknown-reported-as-not-run", "unknown-and-still-charged", settled, NOT_RUN),
        (
            "answer-not-final-reported-as-not-run",
            "unknown-past-expiry-and-still-charged",
            settled,
            NOT_RUN,
        ),
        ("invoice-reported-as-committed", "invoice-after-a-lost-reply", settled, COMMITTED),
        ("confirmed-reported-as-not-run", "confirmed-at-once", disagrees, NOT_RUN),
        ("present-reported-as-unknown", "late-commit-waited-for", disagrees, UNKNOWN),
        ("absent-reported-as-committed", "timeout-reconciled-as-absent", disagrees, COMMITTED),
        ("refused-reported-as-unknown", "refused-definitely", disagrees, UNKNOWN),
    )
    return tuple(
        controls.deny(
            case_id,
            parent,
            reason,
            f"the runtime reported {outcome}",
            put("/reported/outcome", outcome),
        )
        for case_id, parent, reason, outcome in cases
    )
