"""Statements over records: what is signed, and each disagreement with its own reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from envelopes import DIGEST, RECORD, data, reason, record, statement

from counterfoil.errors import BadInput, MalformedRecord
from counterfoil.evidence.reasons import Reason
from counterfoil.evidence.statement import (
    STATEMENT_TYPE,
    Statement,
    chain_of,
    open_statement,
    statement_of,
)
from counterfoil.reader.verdict import Verdict, judge_bytes
from counterfoil.record.model import CONTRACT_ID

HEAD = "cd" * 32


def subject(**changes: object) -> dict[str, Any]:
    (only,) = statement()["subject"]
    return {**only, **changes}


def opened(values: object) -> Statement:
    found = open_statement(data(values))
    assert isinstance(found, Statement), found
    return found


def refusal(values: object) -> Reason | None:
    return reason(open_statement(data(values)))


# --- made ----------------------------------------------------------------------------------------


def test_the_whole_record_is_the_predicate_and_the_subject_is_its_operation() -> None:
    assert json.loads(statement_of(RECORD)) == {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "op-1", "digest": {"sha256": DIGEST}}],
        "predicateType": CONTRACT_ID,
        "predicate": record(),
    }


def test_the_payload_is_the_rfc_8785_bytes_whatever_the_records_spelling() -> None:
    respelled = json.dumps(dict(reversed(record().items())), indent=2, ensure_ascii=False).encode()
    assert statement_of(respelled) == statement_of(RECORD)
    expected = json.dumps(statement(), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert statement_of(RECORD) == expected.encode()


def test_a_record_out_of_its_statement_is_judged_as_the_record_is() -> None:
    found = open_statement(statement_of(RECORD))
    assert isinstance(found, Statement)
    verdict, bare = judge_bytes(found.record), judge_bytes(RECORD)
    assert isinstance(verdict, Verdict)
    assert verdict == bare
    assert verdict.reason == "effect_held"


def test_a_chain_stands_beside_the_record_and_not_in_it() -> None:
    payload = statement_of(RECORD, chain_of(HEAD, 7))
    values = json.loads(payload)
    assert values["predicate"] == record()
    assert values["subject"][0]["annotations"] == {"counterfoilChain": {"head": HEAD, "count": 7}}
    found = open_statement(payload)
    assert isinstance(found, Statement)
    assert found.chain == chain_of(HEAD, 7)


@pytest.mark.parametrize(
    ("head", "count"),
    [(HEAD.upper(), 1), (HEAD[1:], 1), ("", 1), (None, 1), (HEAD, 0), (HEAD, True), (HEAD, 2**53)],
)
def test_what_cannot_be_a_chain_is_refused(head: object, count: object) -> None:
    with pytest.raises(BadInput):
        chain_of(head, count)


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"contractId": CONTRACT_ID + "/"}, "/contractId"),
        ({"contractId": None}, "/contractId"),
        ({"operation": None}, "/operation"),
        ({"attempts": [{}]}, "/attempts/0/attempt"),
        ({"attempts": [{**record()["attempts"][0], "attempt": 1.0}]}, "/attempts/0/attempt"),
        ({"reported": {"outcome": "done"}}, "/reported/outcome"),
    ],
)
def test_what_is_no_record_is_not_signed(change: dict[str, object], path: str) -> None:
    with pytest.raises(MalformedRecord) as refused:
        statement_of(data(record(**change)))
    assert refused.value.path == path


def test_a_record_with_a_member_twice_is_not_signed() -> None:
    with pytest.raises(MalformedRecord):
        statement_of(RECORD[:-1] + b', "note": 1}')


def test_a_record_that_is_denied_is_evidence_too() -> None:
    denied = record(reported={"outcome": "not_run"})
    assert json.loads(statement_of(data(denied)))["predicate"] == denied


@pytest.mark.parametrize(
    "number",
    ["9007199254740992", "0.1000000000000000055", "1e-400", "600.00000000000000000001"],
)
def test_a_number_that_signing_would_change_is_refused(number: str) -> None:
    raw = RECORD.replace(b'"note": ', b'"x/y": [' + number.encode() + b'], "note": ')
    with pytest.raises(BadInput) as refused:
        statement_of(raw)
    assert str(refused.value).startswith("/x~1y/0: ")


@pytest.mark.parametrize(
    ("number", "written"),
    [
        ("1.0", "1"),
        ("-0.0", "0"),
        ("-0", "0"),
        ("0e99999999999999999999", "0"),
        ("1E+2", "100"),
        ("1e-000000000000000000000000001", "0.1"),
        ("9007199254740991", "9007199254740991"),
        ("1e21", "1e+21"),
        ("5e-324", "5e-324"),
    ],
)
def test_a_number_in_another_spelling_is_the_same_number(number: str, written: str) -> None:
    payload = statement_of(RECORD.replace(b'"note": ', b'"x": ' + number.encode() + b', "note": '))
    assert f'"x":{written}}}'.encode() in payload


def test_a_record_is_signed_as_deep_as_its_statement_can_be_read() -> None:
    deepest = record(note=json.loads("[" * 126 + "]" * 126))
    assert isinstance(open_statement(statement_of(data(deepest))), Statement)
    with pytest.raises(BadInput, match="too deep"):
        statement_of(data(record(note=[deepest["note"]])))


# --- opened --------------------------------------------------------------------------------------


def test_the_records_bytes_are_cut_out_as_they_stand() -> None:
    written = b'{ "contractId" : "%s", "operation": {"id": "op-1", "argsDigest": "sha256:%s"}, ' % (
        CONTRACT_ID.encode(),
        DIGEST.encode(),
    )
    written += b'"units": 600.00000000000000000001, "caf\xc3\xa9": "\\u00e9}]" }'
    payload = json.dumps({**statement(), "predicate": 0}).encode()
    assert payload.endswith(b'"predicate": 0}') or b'"predicate": 0,' in payload
    for name in (b'"predicate": ', b'"predic\\u0061te"\n:\t'):
        spelled = payload.replace(b'"predicate": 0', name + written)
        found = open_statement(spelled)
        assert isinstance(found, Statement), found
        assert found.record == written


@pytest.mark.parametrize(
    "kind", [None, 1, "https://in-toto.io/Statement/v0.1", STATEMENT_TYPE + "/"]
)
def test_a_statement_of_an_unknown_type_is_refused(kind: object) -> None:
    assert refusal(statement(_type=kind)) is Reason.STATEMENT_TYPE_UNKNOWN


@pytest.mark.parametrize("kind", [None, [], "https://slsa.dev/provenance/v1", CONTRACT_ID + "#"])
def test_a_predicate_type_of_another_contract_is_refused(kind: object) -> None:
    found = refusal(statement(predicateType=kind))
    assert found is Reason.PREDICATE_TYPE_OF_ANOTHER_CONTRACT


@pytest.mark.parametrize("contract", [None, "https://slsa.dev/provenance/v1", CONTRACT_ID.upper()])
def test_a_record_of_another_contract_than_its_statement_is_refused(contract: object) -> None:
    values = statement(predicate=record(contractId=contract))
    assert refusal(values) is Reason.CONTRACT_ID_DISAGREES


@pytest.mark.parametrize("change", [{"name": "op-2"}, {"digest": {"sha256": "0" * 64}}])
def test_a_subject_of_another_record_is_refused(change: dict[str, object]) -> None:
    values = statement(subject=[subject(**change)])
    assert refusal(values) is Reason.SUBJECT_OF_ANOTHER_RECORD


@pytest.mark.parametrize("operation", [None, [], {}, {"id": "op-1", "argsDigest": DIGEST}])
def test_a_record_that_names_no_operation_has_no_subject(operation: object) -> None:
    values = statement(predicate=record(operation=operation))
    assert refusal(values) is Reason.SUBJECT_OF_ANOTHER_RECORD


def test_a_subject_without_a_name_is_not_the_operation() -> None:
    values = statement(subject=[{"digest": {"sha256": DIGEST}}])
    assert refusal(values) is Reason.SUBJECT_OF_ANOTHER_RECORD


@pytest.mark.parametrize(
    "digest",
    [
        None,
        {},
        {"sha512": "ab" * 64},
        {"sha256": DIGEST, "sha512": "ab" * 64},
        {"sha256": DIGEST.upper()},
        {"sha256": f"sha256:{DIGEST}"},
        {"sha256": DIGEST[:-2]},
        {"sha256": DIGEST[:-1] + " "},
        {"sha256": None},
        {"SHA256": DIGEST},
    ],
)
def test_a_digest_that_is_not_lower_case_sha256_is_refused(digest: object) -> None:
    values = statement(subject=[subject(digest=digest)])
    assert refusal(values) is Reason.SUBJECT_DIGEST_UNUSABLE


def test_no_subject_and_two_subjects_are_refused() -> None:
    assert refusal(statement(subject=[])) is Reason.SUBJECT_NOT_ONE
    two = [subject(), subject(name="op-2")]
    assert refusal(statement(subject=two)) is Reason.SUBJECT_NOT_ONE


def test_one_subject_twice_is_refused() -> None:
    found = refusal(statement(subject=[subject(), dict(reversed(subject().items()))]))
    assert found is Reason.SUBJECT_DUPLICATE


@pytest.mark.parametrize(
    "change",
    [{"subject": None}, {"subject": {}}, {"subject": ["op-1"]}, {"predicate": []}],
)
def test_what_has_another_shape_is_no_statement(change: dict[str, object]) -> None:
    assert refusal(statement(**change)) is Reason.NOT_A_STATEMENT


@pytest.mark.parametrize("raw", [b"", b"[]", b"\xff", b"{", b"[" * 100_000, b'{"a": NaN}'])
def test_bytes_that_are_no_strict_json_object_are_no_statement(raw: bytes) -> None:
    assert reason(open_statement(raw)) is Reason.NOT_A_STATEMENT


@pytest.mark.parametrize("name", ["_type", "predicate", "subject"])
def test_a_member_twice_makes_no_statement(name: str) -> None:
    raw = statement_of(RECORD)
    doubled = raw[:-1] + f',"{name}":{json.dumps(statement()[name])}}}'.encode()
    assert reason(open_statement(doubled)) is Reason.NOT_A_STATEMENT


def test_a_member_twice_deep_in_the_record_makes_no_statement() -> None:
    raw = statement_of(RECORD).replace(b'"action":', b'"acti\\u006fn":"x","action":')
    assert reason(open_statement(raw)) is Reason.NOT_A_STATEMENT


@pytest.mark.parametrize(
    "stated",
    [
        1,
        {},
        {"head": HEAD},
        {"head": HEAD.upper(), "count": 1},
        {"head": HEAD, "count": 0},
        {"head": HEAD, "count": 1.0},
        {"head": HEAD, "count": 1, "more": 1},
    ],
)
def test_a_chain_that_cannot_be_read_is_refused(stated: object) -> None:
    values = statement(subject=[subject(annotations={"counterfoilChain": stated})])
    assert refusal(values) is Reason.CHAIN_UNUSABLE


def test_annotations_of_others_do_not_matter() -> None:
    assert opened(statement(subject=[subject(annotations={"more": 1})])).chain is None
    assert opened(statement(subject=[subject(annotations=None)])).chain is None
    values = statement(subject=[subject(annotations=[])])
    assert refusal(values) is Reason.NOT_A_STATEMENT


def test_members_that_nobody_knows_do_not_matter() -> None:
    assert opened({"more": [1, {"predicate": 2}], **statement()}).values == record()
