"""Evidence in any of its forms, opened: a bare record, a Statement, or a signed envelope.

What comes out says apart who said it (``authentic``), whether it may be all there is
(``complete``), and which bytes the reader judges (``record``). The library that verifies signatures
is imported only for an envelope.
"""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256

from counterfoil.errors import MalformedRecord
from counterfoil.evidence.reasons import EvidenceRefused, Reason
from counterfoil.record import codec
from counterfoil.record.digests import PREFIX
from counterfoil.record.strict_json import parse_object
from counterfoil.record.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from counterfoil.evidence.keyring import Keyring, PublicKey
    from counterfoil.evidence.statement import Chain, Statement
    from counterfoil.record.instants import Instant

RECORD_MARKS = frozenset(("contractId", "operation"))
ENVELOPE_MARKS = frozenset(("payload", "payloadType", "signatures"))
STATEMENT_MARKS = frozenset(("_type", "predicateType", "predicate"))
_MARKS = tuple(f'"{name}"'.encode() for name in ENVELOPE_MARKS | STATEMENT_MARKS)
_UNICODE_ESCAPE = b"\\u"  # what the name of a mark could be hidden in


class Form(StrEnum):
    """What the evidence came in as."""

    RECORD = "record"
    STATEMENT = "statement"
    ENVELOPE = "envelope"


class Completeness(StrEnum):
    """Whether something outside the record shows that nothing was left out of it."""

    CLAIMED = "claimed"
    PROVEN_BY_CHAIN = "proven_by_chain"


class Opened(Value):
    """Evidence that may be judged. ``record`` is the bytes of the record, for the reader.

    ``signers`` are the trusted keys that signed it, empty for what is unsigned; ``validity`` says
    by which times their windows were judged, empty where none has a window; ``payload_digest``, the
    SHA-256 of the signed bytes in hex, is what a piece of signed evidence is known by.
    """

    form: Form
    record: bytes
    signers: tuple[PublicKey, ...] = ()
    validity: str = ""
    payload_digest: str | None = None
    chain: Chain | None = None
    completeness: Completeness = Completeness.CLAIMED

    @property
    def authentic(self) -> str:
        """Who said it, as a phrase: ``unsigned``, or ``signed by`` and the ids of the keys."""
        if not self.signers:
            return "unsigned"
        names = ", ".join(key.key_id for key in self.signers)
        return f"signed by {names}" + (f" ({self.validity})" if self.validity else "")

    @property
    def complete(self) -> str:
        """Whether it is all there is, as a phrase."""
        if self.completeness is Completeness.PROVEN_BY_CHAIN and self.chain is not None:
            return f"proven by the chain's head at event {self.chain.events}"
        if self.chain is not None:
            return f"claimed, as of event {self.chain.events} of the signer's log"
        return "claimed"

    def as_json(self) -> dict[str, object]:
        """Return what stands beside a verdict: who said it, and whether it is all there is.

        ``authentic`` is null for what is unsigned. ``chain`` is there only where it is stated.
        """
        authentic: dict[str, object] | None = None
        if self.signers:
            authentic = {
                "keys": [key.key_id for key in self.signers],
                "validity": self.validity or None,
                "payloadDigest": f"{PREFIX}{self.payload_digest}",
            }
        values: dict[str, object] = {"authentic": authentic, "complete": self.completeness.value}
        if self.chain is None:
            return values
        return {**values, "chain": {"head": self.chain.head, "count": self.chain.events}}


def open_evidence(
    data: bytes,
    keyring: Keyring | None = None,
    *,
    outside_time: Instant | None = None,
    chain: Chain | None = None,
) -> Opened | EvidenceRefused:
    """Open evidence. Total: any bytes get one of the two answers, and none an exception.

    With a keyring only an envelope is opened, and only if enough of its keys signed it: taking the
    envelope off leaves ``unsigned``, which is refused. Without one a bare record or a Statement is
    opened, as unsigned; an envelope never is. Bytes that are none of the three are left to the
    reader as a record, which says what is wrong with them.

    ``outside_time`` is when the caller knows the evidence to have been there: keys with a window
    must have been valid then, and at the last time that the record states (rule 12). ``chain`` is
    the log's head and count as the caller has them from elsewhere: evidence signed with the same is
    complete, and evidence signed with another head at that count is refused (rule 11).
    """
    if keyring is None and not _may_hold_another(data):
        return Opened(Form.RECORD, data)
    try:
        values = parse_object(data)
    except MalformedRecord as error:
        if keyring is None:
            return Opened(Form.RECORD, data)
        return EvidenceRefused(Reason.NOT_AN_ENVELOPE, f"no JSON object to read: {error}")
    form = _form(values)
    if form is Form.ENVELOPE:
        if keyring is None:
            return EvidenceRefused(
                Reason.NO_TRUSTED_KEYS,
                "a signed envelope is opened with trusted keys only; name them with --key",
            )
        return _open_envelope(values, keyring, outside_time, chain)
    if keyring is not None:
        return EvidenceRefused(
            Reason.UNSIGNED, f"a {form} without a signature, where trusted keys are asked for"
        )
    if form is Form.RECORD:
        return Opened(Form.RECORD, data)
    from counterfoil.evidence.statement import open_statement

    statement = open_statement(data)
    if isinstance(statement, EvidenceRefused):
        return statement
    return Opened(Form.STATEMENT, statement.record, chain=statement.chain)


def _may_hold_another(data: bytes) -> bool:
    """Say whether this may be more than a bare record, without parsing it: most evidence is one."""
    return _UNICODE_ESCAPE in data or any(mark in data for mark in _MARKS)


def _form(values: Mapping[str, object]) -> Form:
    """Tell the forms apart by the names of their members; a record may carry any others."""
    names = values.keys()
    if RECORD_MARKS & names:
        return Form.RECORD
    if ENVELOPE_MARKS & names:
        return Form.ENVELOPE
    return Form.STATEMENT if STATEMENT_MARKS & names else Form.RECORD


def _open_envelope(
    values: Mapping[str, object],
    keyring: Keyring,
    outside_time: Instant | None,
    chain: Chain | None,
) -> Opened | EvidenceRefused:
    from counterfoil.evidence.dsse import verify_values
    from counterfoil.evidence.statement import open_statement

    verified = verify_values(values, keyring)
    if isinstance(verified, EvidenceRefused):
        return verified
    statement = open_statement(verified.payload)
    if isinstance(statement, EvidenceRefused):
        return statement
    signers, validity = _within_windows(verified.signers, statement, outside_time)
    if len(signers) < keyring.threshold:
        return EvidenceRefused(
            Reason.KEY_OUTSIDE_VALIDITY,
            f"{len(signers)} of the {keyring.threshold} keys asked for were valid, {validity}",
        )
    completeness = Completeness.CLAIMED
    if chain is not None and statement.chain is not None:
        if statement.chain == chain:
            completeness = Completeness.PROVEN_BY_CHAIN
        elif statement.chain.events == chain.events:
            # Rule 11: two heads with one count. Both are said; which is true is not ours to know.
            return EvidenceRefused(
                Reason.CHAIN_CONTRADICTS,
                f"two heads at event {chain.events}: {statement.chain.head} is signed, "
                f"{chain.head} was given",
            )
    digest = sha256(verified.payload).hexdigest()
    return Opened(
        Form.ENVELOPE, statement.record, signers, validity, digest, statement.chain, completeness
    )


def _within_windows(
    signers: tuple[PublicKey, ...], statement: Statement, outside_time: Instant | None
) -> tuple[tuple[PublicKey, ...], str]:
    """Return the signers that were valid, and by which times that was judged.

    The record's own time is the signer's word; only an outside time is more. A key with a window
    and no time to judge it by does not count.
    """
    if not any(key.has_window for key in signers):
        return signers, ""
    record_time = _last_time(statement)
    moments = [moment for moment in (record_time, outside_time) if moment is not None]
    valid = tuple(
        key
        for key in signers
        if not key.has_window or (moments and all(key.is_valid_at(moment) for moment in moments))
    )
    by = []
    if record_time is not None:
        by.append(f"the record's last time {record_time}")
    if outside_time is not None:
        by.append(f"the outside time {outside_time}")
    return valid, "judged by " + (" and ".join(by) or "no time: none is stated and none was given")


def _last_time(statement: Statement) -> Instant | None:
    """Return the latest time at which the record says that something was done or answered."""
    try:
        record = codec.decode(dict(statement.values))
    except MalformedRecord:
        return None  # the reader will say so
    times = [attempt.dispatched_at for attempt in record.attempts]
    times += [answer.at for answer in record.reconciliations]
    return max(times, default=None)
