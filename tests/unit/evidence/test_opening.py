"""One door for all evidence: what is signed is said to be, and nothing else is."""

from __future__ import annotations

import json
import subprocess
import sys
from hashlib import sha256

import pytest
from envelopes import ANN, BOB, RECORD, data, reason, record, signed, statement, trust

from counterfoil import limits
from counterfoil.evidence.keyring import Keyring, SigningKey, keyring_of, public_key
from counterfoil.evidence.opening import Completeness, Form, Opened, open_evidence
from counterfoil.evidence.reasons import EvidenceRefused, Reason
from counterfoil.evidence.statement import Chain, chain_of, statement_of
from counterfoil.reader.verdict import Malformed, judge_bytes
from counterfoil.record.instants import Instant, parse

STATEMENT = statement_of(RECORD)
ENVELOPE = data(signed(STATEMENT))
HEAD, OTHER_HEAD = "cd" * 32, "ef" * 32


def opened(
    raw: bytes,
    keyring: Keyring | None = None,
    outside_time: Instant | None = None,
    chain: Chain | None = None,
) -> Opened:
    found = open_evidence(raw, keyring, outside_time=outside_time, chain=chain)
    assert isinstance(found, Opened), found
    return found


# --- forms ---------------------------------------------------------------------------------------


def test_a_bare_record_is_itself_and_unsigned() -> None:
    assert opened(RECORD) == Opened(Form.RECORD, RECORD)
    assert (opened(RECORD).authentic, opened(RECORD).complete) == ("unsigned", "claimed")


def test_a_statement_by_itself_is_unsigned() -> None:
    found = opened(STATEMENT)
    assert (found.form, found.authentic) == (Form.STATEMENT, "unsigned")
    assert judge_bytes(found.record) == judge_bytes(RECORD)


def test_a_signed_record_is_said_to_be_signed_and_by_whom() -> None:
    found = opened(ENVELOPE, trust())
    assert found.authentic == f"signed by {ANN.public.key_id}"
    assert (found.form, found.signers) == (Form.ENVELOPE, (ANN.public,))
    assert judge_bytes(found.record) == judge_bytes(RECORD)


def test_signed_evidence_is_known_by_its_payload_and_not_by_its_envelope() -> None:
    respelled = json.dumps(signed(STATEMENT, BOB, ANN), indent=1).encode()
    digests = {opened(raw, trust()).payload_digest for raw in (ENVELOPE, respelled)}
    assert digests == {sha256(STATEMENT).hexdigest()}


@pytest.mark.parametrize("raw", [RECORD, STATEMENT], ids=["record", "statement"])
def test_unsigned_evidence_is_refused_where_keys_are_named(raw: bytes) -> None:
    assert reason(open_evidence(raw, trust())) is Reason.UNSIGNED


@pytest.mark.parametrize("extra", [b'"signedBy": "ann"', b'"signatures": [{"sig": ""}]'])
def test_a_record_that_says_it_is_signed_is_not(extra: bytes) -> None:
    raw = RECORD[:-1] + b", " + extra + b"}"
    assert opened(raw).authentic == "unsigned"
    assert reason(open_evidence(raw, trust())) is Reason.UNSIGNED


def test_an_envelope_is_not_opened_without_keys() -> None:
    assert reason(open_evidence(ENVELOPE)) is Reason.NO_TRUSTED_KEYS


def test_an_envelope_is_found_under_any_spelling_of_its_names() -> None:
    hidden = ENVELOPE.replace(b'"payload', b'"p\\u0061yload').replace(b'"sign', b'"\\u0073ign')
    assert reason(open_evidence(hidden)) is Reason.NO_TRUSTED_KEYS
    assert opened(hidden, trust()).signers == (ANN.public,)


@pytest.mark.parametrize("name", ["payload", "payloadType", "signatures"])
def test_half_an_envelope_is_refused_as_one(name: str) -> None:
    values = signed()
    del values[name]
    assert reason(open_evidence(data(values), trust())) is Reason.NOT_AN_ENVELOPE


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b"\xff", b"{", b'{"payload": 1, "payload": 2}'])
def test_bytes_that_are_nothing_are_left_to_the_reader(raw: bytes) -> None:
    assert opened(raw).record == raw
    assert isinstance(open_evidence(raw, trust()), EvidenceRefused)


def test_bytes_longer_than_the_limit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RECORD_BYTES_MAX", len(ENVELOPE) - 1)
    assert isinstance(judge_bytes(opened(ENVELOPE).record), Malformed)
    assert reason(open_evidence(ENVELOPE, trust())) is Reason.NOT_AN_ENVELOPE


# --- from the outside inwards --------------------------------------------------------------------


def test_nothing_inside_is_looked_at_before_the_signature() -> None:
    spoiled = data(signed(b"no JSON at all", BOB))
    assert reason(open_evidence(spoiled, trust())) is Reason.NOT_SIGNED_BY_TRUSTED_KEYS


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"no JSON at all", Reason.NOT_A_STATEMENT),
        (STATEMENT[:-1] + b',"_type":1}', Reason.NOT_A_STATEMENT),
        (RECORD, Reason.STATEMENT_TYPE_UNKNOWN),
        (data(statement(predicateType="other")), Reason.PREDICATE_TYPE_OF_ANOTHER_CONTRACT),
        (STATEMENT.replace(b'"name":"op-1"', b'"name":"op-2"'), Reason.SUBJECT_OF_ANOTHER_RECORD),
    ],
)
def test_a_signature_makes_no_statement_out_of_what_is_none(
    payload: bytes, expected: Reason
) -> None:
    assert reason(open_evidence(data(signed(payload)), trust())) is expected


def test_a_signature_does_not_make_a_malformed_record_a_good_one() -> None:
    payload = data(statement(predicate=record(reported={})))
    found = opened(data(signed(payload)), trust())
    assert isinstance(judge_bytes(found.record), Malformed)


def test_a_refusal_is_one_line_with_a_code() -> None:
    found = open_evidence(ENVELOPE)
    assert isinstance(found, EvidenceRefused)
    assert found.as_json() == {"error": "no_trusted_keys", "detail": found.detail}
    assert "\n" not in found.detail


# --- windows -------------------------------------------------------------------------------------

LAST_TIME = "2025-03-01T10:05:00Z"  # of the record: when the owner answered


def windowed(start: str | None, end: str | None, key: SigningKey = ANN) -> Keyring:
    window = (None if start is None else parse(start), None if end is None else parse(end))
    return keyring_of([public_key(key.public.raw, *window)])


@pytest.mark.parametrize(
    ("start", "end"), [(LAST_TIME, LAST_TIME), (LAST_TIME, None), (None, LAST_TIME)]
)
def test_a_key_that_was_valid_at_the_records_last_time_counts(
    start: str | None, end: str | None
) -> None:
    found = opened(ENVELOPE, windowed(start, end))
    assert found.validity == f"judged by the record's last time {LAST_TIME}"
    assert found.authentic.endswith(f" (judged by the record's last time {LAST_TIME})")


@pytest.mark.parametrize(
    ("start", "end"), [("2025-03-01T10:05:00.001Z", None), (None, "2025-03-01T10:04:59.999Z")]
)
def test_a_key_that_was_not_valid_then_does_not_count(start: str | None, end: str | None) -> None:
    found = open_evidence(ENVELOPE, windowed(start, end))
    assert isinstance(found, EvidenceRefused)
    assert found.reason is Reason.KEY_OUTSIDE_VALIDITY
    assert LAST_TIME in found.detail


def test_an_outside_time_counts_beside_the_records_own() -> None:
    keyring = windowed("2025-01-01T00:00:00Z", "2025-06-01T00:00:00Z")
    inside, outside = parse("2025-05-01T00:00:00Z"), parse("2025-07-01T00:00:00Z")
    found = opened(ENVELOPE, keyring, inside)
    assert found.validity == (
        f"judged by the record's last time {LAST_TIME} and the outside time 2025-05-01T00:00:00Z"
    )
    refused = open_evidence(ENVELOPE, keyring, outside_time=outside)
    assert reason(refused) is Reason.KEY_OUTSIDE_VALIDITY


def test_a_window_needs_a_time_to_be_judged_by() -> None:
    untimed = record(attempts=[], reconciliations=[], reported={"outcome": "not_run"})
    envelope = data(signed(statement_of(data(untimed))))
    keyring = windowed("2025-01-01T00:00:00Z", None)
    assert reason(open_evidence(envelope, keyring)) is Reason.KEY_OUTSIDE_VALIDITY
    assert opened(envelope, keyring, parse("2025-02-01T00:00:00Z")).signers == keyring.keys


def test_a_key_outside_its_window_does_not_help_to_the_threshold() -> None:
    old = public_key(BOB.public.raw, None, parse("2024-01-01T00:00:00Z"))
    envelope = data(signed(STATEMENT, ANN, BOB))
    both = open_evidence(envelope, keyring_of([ANN.public, old], 2))
    assert reason(both) is Reason.KEY_OUTSIDE_VALIDITY
    assert opened(envelope, keyring_of([ANN.public, old], 1)).signers == (ANN.public,)


def test_without_a_window_no_time_is_asked_for() -> None:
    assert opened(ENVELOPE, trust(), parse("1999-01-01T00:00:00Z")).validity == ""


# --- completeness --------------------------------------------------------------------------------

CHAINED = data(signed(statement_of(RECORD, chain_of(HEAD, 7))))


def test_a_signed_chain_that_the_caller_has_too_proves_completeness() -> None:
    found = opened(CHAINED, trust(), chain=chain_of(HEAD, 7))
    assert found.completeness is Completeness.PROVEN_BY_CHAIN
    assert found.complete == "proven by the chain's head at event 7"


@pytest.mark.parametrize("chain", [None, chain_of(HEAD, 8), chain_of(OTHER_HEAD, 8)])
def test_a_signed_chain_alone_is_a_claim(chain: Chain | None) -> None:
    found = opened(CHAINED, trust(), chain=chain)
    assert found.completeness is Completeness.CLAIMED
    assert found.complete == "claimed, as of event 7 of the signer's log"


def test_two_heads_at_one_count_are_both_said() -> None:
    found = open_evidence(CHAINED, trust(), chain=chain_of(OTHER_HEAD, 7))
    assert isinstance(found, EvidenceRefused)
    assert found.reason is Reason.CHAIN_CONTRADICTS
    assert HEAD in found.detail
    assert OTHER_HEAD in found.detail


def test_a_chain_that_nobody_signed_proves_nothing() -> None:
    found = opened(statement_of(RECORD, chain_of(HEAD, 7)), chain=chain_of(HEAD, 7))
    assert found.completeness is Completeness.CLAIMED


def test_evidence_without_a_chain_is_claimed_to_be_complete() -> None:
    assert opened(ENVELOPE, trust(), chain=chain_of(HEAD, 7)).complete == "claimed"


# --- cost ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("raw", [RECORD, STATEMENT], ids=["record", "statement"])
def test_what_is_not_signed_is_opened_without_the_library_of_signatures(raw: bytes) -> None:
    program = (
        "import sys; from counterfoil.evidence.opening import open_evidence; "
        "open_evidence(sys.stdin.buffer.read()); "
        "print([name for name in ('cryptography', 'rfc8785') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], input=raw, capture_output=True, check=True, timeout=60
    )
    assert done.stdout.split() == [b"[]"]
