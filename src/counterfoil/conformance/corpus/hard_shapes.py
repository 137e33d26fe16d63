"""Hard cases of shape: what a member may be, and what is judged before any shape is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.conformance.corpus.building import drop, each, put, put_raw, swap, whole
from counterfoil.conformance.corpus.trails import DIGEST, OTHER_DIGEST
from counterfoil.limits import INTEGER_MAX
from counterfoil.record.model import CONTRACT_ID

if TYPE_CHECKING:
    from counterfoil.conformance.corpus.building import Case, Controls, Edit

RETENTION = "/effectOwner/keyRetentionSeconds"
OPERATION_DIGEST = "/operation/argsDigest"
MISSING, UNKNOWN = "contract_id_missing", "contract_id_unknown"
IDENTITY = "operation_identity_missing"


def cases(controls: Controls) -> list[Case]:
    """Return the cases: allowed, denied before their shape matters, and malformed."""
    made = [controls.allow(*row) for row in ALLOWED]
    made += [controls.deny(*row) for row in DENIED]
    return made + [controls.malformed(*row) for row in MISSHAPEN]


ALLOWED: tuple[tuple[str, str, str, Edit], ...] = (
    (
        "optional-members-null",
        "confirmed",
        "leases, reservation and notices are null, which leaves them out",
        each(("/leases", None), ("/reservation", None), ("/notices", None)),
    ),
    ("worker-null", "confirmed", "the attempt's worker is null", put("/attempts/0/worker", None)),
    ("retention-null", "deduplicated", "keys are kept without limit", put(RETENTION, None)),
    ("retention-minus-zero", "confirmed", "keys are kept for -0.0 s", put_raw(RETENTION, "-0.0")),
    ("units-with-an-exponent", "unknown", "4e1 units", put_raw("/reservation/units", "4e1")),
    ("effect-without-members", "confirmed", "the effect says nothing", put("/ownerEffects/0", {})),
    (
        "numbers-with-gaps",
        "resent",
        "the attempts are numbered 3 and 8",
        each(("/attempts/0/attempt", 3), ("/attempts/1/attempt", 8)),
    ),
    (
        "members-that-nobody-knows",
        "leased",
        "unknown members stand beside the known ones",
        each(
            ("/operation/priority", 1),
            ("/effectOwner/region", None),
            ("/attempts/0/final", True),
            ("/leases/0/result", "absent"),
            ("/reported/reason", ""),
        ),
    ),
    (
        "never-attempted",
        "absent",
        "no attempt was made and no answer given; reported not run",
        each(("/attempts", []), ("/reconciliations", [])),
    ),
    (
        "largest-token",
        "leased",
        "the second token is the largest integer that JSON carries",
        each(
            ("/attempts/1/fencingToken", INTEGER_MAX),
            ("/leases/1/fencingToken", INTEGER_MAX),
        ),
    ),
    (
        "token-zero",
        "leased",
        "the first token is 0",
        each(("/attempts/0/fencingToken", 0), ("/leases/0/fencingToken", 0)),
    ),
)

DENIED: tuple[tuple[str, str, str, str, Edit], ...] = (
    (
        "never-attempted-and-reported-unknown",
        "absent",
        "outcome_disagrees_with_authority",
        "no attempt was made; reported unknown",
        each(("/attempts", []), ("/reconciliations", []), ("/reported/outcome", "unknown")),
    ),
    ("empty-object", "confirmed", MISSING, "the record is {}", whole(lambda _: b"{}\n")),
    (
        "no-contract-and-no-shape",
        "confirmed",
        MISSING,
        "no contract is named, and attempts is no list",
        swap(f'"contractId": "{CONTRACT_ID}"', '"attempt": 1'),
    ),
    (
        "contract-alone-of-another",
        "confirmed",
        UNKNOWN,
        "another contract is named, and nothing else",
        whole(lambda _: b'{"contractId": "urn:example:other"}\n'),
    ),
    ("contract-null", "confirmed", UNKNOWN, "the contract is null", put("/contractId", None)),
    ("contract-a-number", "confirmed", UNKNOWN, "the contract is 7", put("/contractId", 7)),
    (
        "contract-with-a-slash",
        "confirmed",
        UNKNOWN,
        "the contract's name ends in a slash",
        put("/contractId", CONTRACT_ID + "/"),
    ),
    (
        "contract-in-capitals",
        "confirmed",
        UNKNOWN,
        "the contract's scheme is in capitals",
        put("/contractId", CONTRACT_ID.replace("https", "HTTPS")),
    ),
    (
        "contract-in-another-member",
        "confirmed",
        MISSING,
        "the member is spelled contractID",
        swap('"contractId"', '"contractID"'),
    ),
    ("key-null", "resent", IDENTITY, "a key is null", put("/attempts/1/idempotencyKey", None)),
    ("key-empty", "confirmed", IDENTITY, "the key is empty", put("/operation/idempotencyKey", "")),
    ("digest-null", "confirmed", IDENTITY, "a digest is null", put("/attempts/0/argsDigest", None)),
    ("digest-empty", "absent", IDENTITY, "the digest is empty", put(OPERATION_DIGEST, "")),
    (
        "key-missing-beside-a-bad-time",
        "resent",
        IDENTITY,
        "a key is empty, and another attempt's time is none",
        each(("/attempts/1/idempotencyKey", ""), ("/attempts/0/dispatchedAt", "soon")),
    ),
)

MISSHAPEN: tuple[tuple[str, str, str, Edit], ...] = (
    (
        "contract-of-another-and-a-name-twice",
        "confirmed",
        "another contract is named, and a name stands there twice",
        whole(lambda _: b'{"contractId": "urn:example:other", "a": 1, "a": 1}\n'),
    ),
    ("operation-a-list", "confirmed", "operation is a list", put("/operation", [])),
    ("attempts-an-object", "confirmed", "attempts is an object", put("/attempts", {})),
    ("attempt-a-text", "confirmed", "an attempt is text", put("/attempts/0", "confirmed")),
    ("key-a-number", "confirmed", "the key is 7", put("/operation/idempotencyKey", 7)),
    ("action-missing", "confirmed", "no action is named", drop("/operation/action")),
    ("owner-missing", "confirmed", "no effect owner is there", drop("/effectOwner")),
    ("retention-missing", "confirmed", "no retention is given", drop(RETENTION)),
    ("retention-text", "deduplicated", "the retention is text", put(RETENTION, "3600")),
    (
        "retention-negative",
        "confirmed",
        "below zero by 1e-400",
        put_raw(RETENTION, "-1e-400"),
    ),
    (
        "deduplicates-1",
        "deduplicated",
        "whether the owner deduplicates is said by 1",
        put("/effectOwner/deduplicatesByKey", 1),
    ),
    (
        "digest-in-capitals",
        "confirmed",
        "the digest's hex digits are capitals",
        put(OPERATION_DIGEST, "sha256:" + DIGEST[7:].upper()),
    ),
    (
        "digest-without-its-prefix",
        "confirmed",
        "the digest is bare hex",
        put(OPERATION_DIGEST, DIGEST[7:]),
    ),
    (
        "digest-of-another-kind",
        "confirmed",
        "the digest names another algorithm",
        put(OPERATION_DIGEST, "sha512:" + DIGEST[7:] + OTHER_DIGEST[7:]),
    ),
    (
        "digest-too-short",
        "confirmed",
        "the digest has 63 hex digits",
        put(OPERATION_DIGEST, DIGEST[:-1]),
    ),
    (
        "number-of-attempt-with-a-fraction",
        "confirmed",
        "the attempt's number is 1.0",
        put_raw("/attempts/0/attempt", "1.0"),
    ),
    ("number-of-attempt-0", "confirmed", "attempts begin at 1", put("/attempts/0/attempt", 0)),
    ("number-of-attempt-true", "confirmed", "true is not 1", put("/attempts/0/attempt", True)),
    (
        "number-of-attempt-twice",
        "resent",
        "two are numbered 1",
        put("/attempts/1/attempt", 1),
    ),
    (
        "reply-unknown",
        "confirmed",
        "the reply is none of the four words",
        put("/attempts/0/reply", "lost"),
    ),
    ("worker-empty", "leased", "a worker's name is empty", put("/attempts/0/worker", "")),
    (
        "token-beyond-the-largest",
        "leased",
        "a lease's token is 2**53",
        put("/leases/1/fencingToken", INTEGER_MAX + 1),
    ),
    ("token-text", "leased", "a token is text", put("/attempts/1/fencingToken", "8")),
    (
        "token-with-a-fraction",
        "leased",
        "a token is 8.0",
        put_raw("/attempts/1/fencingToken", "8.0"),
    ),
    ("lease-without-an-end", "leased", "a lease has no end", drop("/leases/0/expiresAt")),
    ("final-text", "resent", "final is text", put("/reconciliations/0/final", "true")),
    (
        "result-unknown",
        "absent",
        "the result is neither word",
        put("/reconciliations/0/result", "missing"),
    ),
    ("answers-missing", "confirmed", "there is no list of answers", drop("/reconciliations")),
    ("effect-a-number", "confirmed", "an effect is a number", put("/ownerEffects/0", 1)),
    ("charged-1", "unknown", "whether it is charged is said by 1", put("/reservation/charged", 1)),
    ("units-negative", "unknown", "less than no units are held", put("/reservation/units", -1)),
    ("notice-a-text", "confirmed", "a notice is text", put("/notices/0", "invoice")),
    (
        "outcome-unknown-word",
        "confirmed",
        "the outcome is none of the three words",
        put("/reported/outcome", "done"),
    ),
)
