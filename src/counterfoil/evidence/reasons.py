"""Why evidence is not opened, as a closed set of codes. The codes are stable, the texts are not."""

from __future__ import annotations

from enum import StrEnum

from counterfoil.record.value import Value


class Reason(StrEnum):
    """The first thing that is wrong with a piece of evidence, from the outside inwards."""

    # the envelope
    NOT_AN_ENVELOPE = "not_an_envelope"
    NO_SIGNATURES = "no_signatures"
    TOO_MANY_SIGNATURES = "too_many_signatures"
    BAD_BASE64 = "bad_base64"
    NOT_SIGNED_BY_TRUSTED_KEYS = "not_signed_by_trusted_keys"
    THRESHOLD = "threshold"
    WRONG_PAYLOAD_TYPE = "wrong_payload_type"
    # what the caller asked for
    UNSIGNED = "unsigned"
    NO_TRUSTED_KEYS = "no_trusted_keys"
    KEY_OUTSIDE_VALIDITY = "key_outside_validity"
    CHAIN_CONTRADICTS = "chain_contradicts"
    # the Statement
    NOT_A_STATEMENT = "not_a_statement"
    STATEMENT_TYPE_UNKNOWN = "statement_type_unknown"
    PREDICATE_TYPE_OF_ANOTHER_CONTRACT = "predicate_type_of_another_contract"
    CONTRACT_ID_DISAGREES = "contract_id_disagrees"
    SUBJECT_DUPLICATE = "subject_duplicate"
    SUBJECT_NOT_ONE = "subject_not_one"
    SUBJECT_DIGEST_UNUSABLE = "subject_digest_unusable"
    SUBJECT_OF_ANOTHER_RECORD = "subject_of_another_record"
    CHAIN_UNUSABLE = "chain_unusable"


class EvidenceRefused(Value):
    """Evidence that was not opened, so that no record in it was judged. ``detail`` is one line."""

    reason: Reason
    detail: str

    def as_json(self) -> dict[str, object]:
        """Return the answer as JSON values. It has no decision: nothing was judged."""
        return {"error": self.reason.value, "detail": self.detail}
