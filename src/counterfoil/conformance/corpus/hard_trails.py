"""Hard cases of the trail itself: order, keys, answers, notices, leases, several faults at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.conformance.corpus.building import append, drop, each, put, put_raw
from counterfoil.conformance.corpus.trails import (
    COMMITTED,
    CONFIRMED,
    FIRST,
    KEY,
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
)
from counterfoil.limits import INTEGER_MAX

if TYPE_CHECKING:
    from counterfoil.conformance.corpus.building import Case, Controls, Edit

ATTEMPTS, ANSWERS, NOTICES = "/attempts", "/reconciliations", "/notices"
OUTCOME, SECOND_KEY = "/reported/outcome", "/attempts/1/idempotencyKey"
RETRY, BEYOND = "retry_after_unknown", "dispatch_beyond_lease"
SETTLED, DISAGREES = "outcome_settled_without_authority", "outcome_disagrees_with_authority"


def cases(controls: Controls) -> list[Case]:
    """Return the cases, allowed and denied."""
    made = [controls.allow(*row) for row in (*ORDERED_WELL, *KEYED_WELL, *LEASED_WELL)]
    denied = (*ORDERED_BADLY, *KEYED_BADLY, *TEMPTED, *LEASED_BADLY, *SEVERAL_FAULTS)
    return made + [controls.deny(*row) for row in denied]


_Allowed = tuple[tuple[str, str, str, "Edit"], ...]
_Denied = tuple[tuple[str, str, str, str, "Edit"], ...]

ORDERED_WELL: _Allowed = (
    (
        "attempts-listed-backwards",
        "resent",
        "the list begins with the later attempt",
        each((ATTEMPTS, [attempt(2, "09:05:00", CONFIRMED), attempt(1, "09:00:00", LOST)])),
    ),
    (
        "three-attempts-each-answered",
        "resent",
        "a second unknown attempt, a second final absent answer, and a third attempt",
        each(
            (
                ATTEMPTS,
                [
                    attempt(1, "09:00:00", LOST),
                    attempt(2, "09:05:00", TIMEOUT),
                    attempt(3, "09:10:00", CONFIRMED),
                ],
            ),
            (ANSWERS, [absent("09:07:00"), absent("09:02:00")]),
        ),
    ),
    (
        "two-deduplicated-and-then-answered",
        "deduplicated",
        "two unknown attempts under one key, one final absent answer, and a third attempt",
        each(
            (
                ATTEMPTS,
                [
                    attempt(1, "09:00:00", LOST),
                    attempt(2, "09:01:00", TIMEOUT),
                    attempt(3, "09:10:00", CONFIRMED),
                ],
            ),
            (ANSWERS, [absent("09:05:00")]),
        ),
    ),
    (
        "unknown-after-confirmed",
        "confirmed",
        "a second attempt after a confirmed one is left unknown; no check forbids it",
        append(ATTEMPTS, attempt(2, "09:05:00", TIMEOUT)),
    ),
    (
        "refused-and-sent-again",
        "confirmed",
        "the first attempt had no effect, so the second follows nothing unknown",
        each(
            (ATTEMPTS, [attempt(1, "09:00:00", NO_EFFECT), attempt(2, "09:05:00", CONFIRMED)]),
        ),
    ),
    (
        "last-attempt-unknown-and-reported-so",
        "absent",
        "a second attempt after the final absent answer is left unknown; reported unknown",
        each(
            (ATTEMPTS, [attempt(1, "09:00:00", LOST), attempt(2, "09:40:00", TIMEOUT)]),
            (OUTCOME, UNKNOWN),
        ),
    ),
)

ORDERED_BADLY: _Denied = (
    (
        "attempts-listed-backwards-without-an-answer",
        "resent",
        RETRY,
        "the list begins with the later attempt, and nobody asked in between",
        each(
            (ATTEMPTS, [attempt(2, "09:05:00", CONFIRMED), attempt(1, "09:00:00", LOST)]),
            (ANSWERS, []),
        ),
    ),
    (
        "third-attempt-without-an-answer",
        "resent",
        RETRY,
        "the second attempt is unknown too, and a third follows it unasked",
        each(
            (
                ATTEMPTS,
                [
                    attempt(1, "09:00:00", LOST),
                    attempt(2, "09:05:00", TIMEOUT),
                    attempt(3, "09:10:00", CONFIRMED),
                ],
            ),
        ),
    ),
    (
        "refused-resend-without-an-answer",
        "absent",
        RETRY,
        "the resend had no effect, but nobody asked before it was sent",
        append(ATTEMPTS, attempt(2, "09:05:00", NO_EFFECT)),
    ),
    (
        "last-attempt-unknown-and-reported-not-run",
        "absent",
        SETTLED,
        "a second attempt after the final absent answer is left unknown; reported not run",
        append(ATTEMPTS, attempt(2, "09:40:00", TIMEOUT)),
    ),
)

KEYED_WELL: _Allowed = (
    (
        "key-spelled-with-an-escape",
        "deduplicated",
        "the resend's key is the same, its first letter written as an escape",
        put_raw(SECOND_KEY, f'"\\u{ord(KEY[0]):04x}{KEY[1:]}"'),
    ),
    (
        "other-arguments-under-another-key",
        "confirmed",
        "a refused attempt, and then another key and other arguments",
        each(
            (
                ATTEMPTS,
                [
                    attempt(1, "09:00:00", NO_EFFECT),
                    attempt(
                        2,
                        "09:05:00",
                        CONFIRMED,
                        idempotencyKey=OTHER_KEY,
                        argsDigest=OTHER_DIGEST,
                    ),
                ],
            ),
        ),
    ),
    (
        "found-under-the-second-key",
        "confirmed",
        "a refused attempt, a lost one under another key, and the effect found under that key",
        each(
            (
                ATTEMPTS,
                [
                    attempt(1, "09:00:00", NO_EFFECT),
                    attempt(2, "09:05:00", LOST, idempotencyKey=OTHER_KEY),
                ],
            ),
            (ANSWERS, [present("09:10:00", key=OTHER_KEY)]),
        ),
    ),
    (
        "absent-under-both-keys",
        "absent",
        "two keys, a final absent answer before the second attempt, and one for each at the end",
        each(
            (
                ATTEMPTS,
                [
                    attempt(1, "09:00:00", LOST),
                    attempt(2, "09:10:00", TIMEOUT, idempotencyKey=OTHER_KEY),
                ],
            ),
            (
                ANSWERS,
                [absent("09:05:00"), absent("09:20:00"), absent("09:21:00", key=OTHER_KEY)],
            ),
        ),
    ),
)

KEYED_BADLY: _Denied = (
    (
        "keys-that-differ-by-case",
        "deduplicated",
        RETRY,
        "the resend's key is the same in capitals: another key",
        put(SECOND_KEY, KEY.upper()),
    ),
    (
        "keys-that-differ-by-a-space",
        "deduplicated",
        RETRY,
        "the resend's key ends in a space: another key",
        put(SECOND_KEY, KEY + " "),
    ),
    (
        "keys-that-differ-by-normal-form",
        "deduplicated",
        RETRY,
        "one key is composed and the other decomposed: they look alike and are two",
        each(
            ("/operation/idempotencyKey", KEY + "\u00e9"),
            ("/attempts/0/idempotencyKey", KEY + "\u00e9"),
            (SECOND_KEY, KEY + "e\u0301"),
        ),
    ),
    (
        "keys-that-differ-by-a-mark-of-no-width",
        "deduplicated",
        RETRY,
        "the resend's key holds a zero-width space: another key",
        put(SECOND_KEY, KEY[:4] + "\u200b" + KEY[4:]),
    ),
    (
        "found-under-a-key-that-nobody-used",
        "unknown",
        SETTLED,
        "a present answer under a stranger's key; reported committed",
        each((ANSWERS, [present("09:10:00", key=OTHER_KEY)]), (OUTCOME, COMMITTED)),
    ),
    (
        "found-under-the-second-key-and-reported-unknown",
        "confirmed",
        DISAGREES,
        "the effect was found under the second attempt's key; reported unknown",
        each(
            (
                ATTEMPTS,
                [
                    attempt(1, "09:00:00", NO_EFFECT),
                    attempt(2, "09:05:00", LOST, idempotencyKey=OTHER_KEY),
                ],
            ),
            (ANSWERS, [present("09:10:00", key=OTHER_KEY)]),
            (OUTCOME, UNKNOWN),
        ),
    ),
)

_LIKE_AN_ANSWER = {"from": "owner-17", "kind": "status", **absent("09:02:00")}

TEMPTED: _Denied = (
    (
        "notice-that-looks-like-an-answer",
        "resent",
        RETRY,
        "what permits the resend is a notice in the shape of a final absent answer",
        each((ANSWERS, []), (NOTICES, [_LIKE_AN_ANSWER])),
    ),
    (
        "answers-under-a-misspelled-name",
        "resent",
        RETRY,
        "what permits the resend stands in Reconciliations, which no check reads",
        each((ANSWERS, []), ("/Reconciliations", [absent("09:02:00")])),
    ),
    (
        "invoice-of-nothing-reported-as-not-run",
        "unknown",
        SETTLED,
        "a final invoice of zero units; reported not run",
        each((NOTICES, [invoice("09:30:00", units=0)]), (OUTCOME, NOT_RUN)),
    ),
    (
        "monitor-reported-as-committed",
        "unknown",
        SETTLED,
        "a monitor says that the effect is present; reported committed",
        each(
            (NOTICES, [{"from": "monitor", "kind": "sighting", **present("09:30:00")}]),
            (OUTCOME, COMMITTED),
        ),
    ),
    (
        "ledger-reported-as-committed",
        "unknown",
        SETTLED,
        "the owner's ledger lists an effect, and no answer found it; reported committed",
        each(("/ownerEffects", [effect(1)]), (OUTCOME, COMMITTED)),
    ),
    (
        "released-after-an-invoice-of-nothing",
        "unknown",
        "unknown_released",
        "a final invoice of zero units; the capacity is no longer charged",
        each((NOTICES, [invoice("09:30:00", units=0)]), ("/reservation/charged", False)),
    ),
)

LEASED_WELL: _Allowed = (
    (
        "lease-renewed",
        "leased",
        "the second worker's lease was renewed under its token before it sent",
        append("/leases", lease(SECOND, 8, "09:18:00", "10:00:00")),
    ),
    (
        "lower-token-granted-later",
        "leased",
        "a lease with a lower token begins before the second dispatch and supersedes nothing",
        append("/leases", lease(FIRST, 6, "09:16:00", "09:50:00")),
    ),
    (
        "higher-token-granted-after",
        "leased",
        "a lease with a higher token begins after the second dispatch",
        append("/leases", lease(FIRST, 9, "09:30:00", "09:50:00")),
    ),
    (
        "leases-listed-backwards",
        "leased",
        "the list begins with the later lease",
        each(
            (
                "/leases",
                [
                    lease(SECOND, 8, "09:10:00", "09:40:00"),
                    lease(FIRST, 7, "08:55:00", "09:05:00"),
                ],
            ),
        ),
    ),
)

LEASED_BADLY: _Denied = (
    (
        "superseded-by-the-largest-token",
        "leased",
        BEYOND,
        "the worker's token is one below the largest, which was granted before it sent",
        each(
            ("/leases/0", lease(FIRST, INTEGER_MAX, "09:11:00", "09:50:00")),
            ("/leases/1/fencingToken", INTEGER_MAX - 1),
            (ATTEMPTS, [held(2, "09:20:00", CONFIRMED, SECOND, INTEGER_MAX - 1)]),
        ),
    ),
    ("token-without-a-lease", "leased", BEYOND, "the record holds no lease", drop("/leases")),
    (
        "lease-without-a-token",
        "leased",
        BEYOND,
        "the second attempt carries no token",
        drop("/attempts/1/fencingToken"),
    ),
    (
        "lease-without-a-worker",
        "leased",
        BEYOND,
        "the second attempt names no worker",
        drop("/attempts/1/worker"),
    ),
    (
        "workers-that-differ-by-case",
        "leased",
        BEYOND,
        "the second attempt's worker is written in capitals: another worker",
        put("/attempts/1/worker", SECOND.upper()),
    ),
    (
        "renewal-that-began-too-late",
        "leased",
        BEYOND,
        "the lease ended before the second dispatch, and its renewal began after it",
        each(
            ("/leases/1/expiresAt", at("09:18:00")),
            ("/leases/0", lease(SECOND, 8, "09:22:00", "09:50:00")),
            (ATTEMPTS, [held(2, "09:20:00", CONFIRMED, SECOND, 8)]),
        ),
    ),
)

SEVERAL_FAULTS: _Denied = (
    (
        "two-effects-after-a-bare-resend",
        "resent",
        RETRY,
        "nobody asked before the resend, and the ledger holds two effects",
        each((ANSWERS, []), ("/ownerEffects", [effect(1), effect(2)])),
    ),
    (
        "other-arguments-outside-the-lease",
        "leased",
        "idempotency_key_args_changed",
        "other arguments under the operation's key, sent under the old token",
        each(("/attempts/1/argsDigest", OTHER_DIGEST), ("/attempts/1/fencingToken", 7)),
    ),
    (
        "stale-token-and-nobody-asked",
        "leased",
        BEYOND,
        "the second attempt carries the old token, and nobody asked before it",
        each(("/attempts/1/fencingToken", 7), (ANSWERS, [])),
    ),
    (
        "released-and-reported-as-not-run",
        "unknown",
        "unknown_released",
        "the capacity is no longer charged, and the outcome was reported as not run",
        each(("/reservation/charged", False), (OUTCOME, NOT_RUN)),
    ),
    (
        "two-effects-and-released",
        "unknown",
        "duplicate_effect",
        "the ledger holds two effects, and the capacity is no longer charged",
        each(("/ownerEffects", [effect(1), effect(2)]), ("/reservation/charged", False)),
    ),
)
