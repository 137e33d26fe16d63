"""in-toto Statements over a record: what is signed (uncertain-effect, "Signed form").

The whole record is the predicate, and its one subject names the operation and the digest of its
arguments. Where the producer says how far its log had come, that stands among the subject's
annotations as ``counterfoilChain``: a place that in-toto gives to producers, inside what is signed
and outside the record.
"""

from __future__ import annotations

from decimal import Decimal
from json import JSONDecoder, dumps

from counterfoil import limits
from counterfoil.errors import BadInput, MalformedRecord
from counterfoil.evidence.reasons import EvidenceRefused, Reason
from counterfoil.record import codec
from counterfoil.record.digests import PREFIX, is_digest
from counterfoil.record.model import CONTRACT_ID
from counterfoil.record.strict_json import WHITE_SPACE, Real, parse_object, pointer_token
from counterfoil.record.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
CHAIN_MEMBER = "counterfoilChain"
WRAPPING_DEPTH = 1  # containers that the Statement puts around the record


class Chain(Value):
    """How far a producer's log had come: the hash there, 64 lower-case hex digits, and how many
    events it then held. Made by ``chain_of``.
    """

    head: str
    events: int


class Statement(Value):
    """An opened Statement: the record's own bytes, as they stand in it, and the chain if stated."""

    record: bytes
    values: Mapping[str, object]
    chain: Chain | None = None


def chain_of(head: object, count: object) -> Chain:
    """Return the chain with this head and count. Raises BadInput for what cannot be one."""
    if not is_digest(f"{PREFIX}{head}") or not isinstance(head, str):
        raise BadInput("a chain's head is 64 lower-case hex digits; copy it from the witness file")
    if type(count) is not int or not 1 <= count <= limits.INTEGER_MAX:
        raise BadInput("a chain's count is the number of its events, 1 or more")
    return Chain(head, count)


# --- to be signed --------------------------------------------------------------------------------


def statement_of(record: bytes, chain: Chain | None = None) -> bytes:
    """Return the RFC 8785 bytes of the Statement over a record's JSON bytes.

    Raises MalformedRecord for what is no record of the contract; BadInput for one that RFC 8785
    would change or cannot carry: a number that is not exactly a double, an integer beyond
    2**53 - 1, one container too deep. Whether the record holds is not asked: a denied one is
    evidence too.
    """
    import rfc8785

    values = parse_object(record)
    if values.get("contractId") != CONTRACT_ID:
        raise MalformedRecord("/contractId", f"must be {CONTRACT_ID}; only such records are signed")
    operation = codec.decode(values).operation
    _refuse_what_changes(values)
    subject: dict[str, object] = {
        "name": operation.id,
        "digest": {"sha256": operation.args_digest.removeprefix(PREFIX)},
    }
    if chain is not None:
        subject["annotations"] = {CHAIN_MEMBER: {"head": chain.head, "count": chain.events}}
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": [subject],
        "predicateType": CONTRACT_ID,
        "predicate": values,
    }
    # The package's type names JSON values only; the strict reading gave no others.
    data: bytes = rfc8785.dumps(statement)  # type: ignore[arg-type]
    return data


def _refuse_what_changes(values: dict[str, object]) -> None:
    """Raise BadInput for a value that RFC 8785 would write as another, or that is too deep.

    A retention of 600.00000000000000001 is compared as written; signed as 600, it would be another
    record.
    """
    stack: list[tuple[str, int, object]] = [("", WRAPPING_DEPTH, values)]
    while stack:
        path, depth, value = stack.pop()
        if isinstance(value, dict | list):
            if depth == limits.RECORD_DEPTH_MAX:
                raise BadInput(f"{path}: too deep to be signed; a Statement adds one container")
            stack += ((f"{path}/{token}", depth + 1, child) for token, child in _children(value))
        elif type(value) is int and abs(value) > limits.INTEGER_MAX:
            raise BadInput(
                f"{path}: an integer beyond 2**53 - 1 cannot be signed; write it as text"
            )
        elif isinstance(value, Real) and not _is_exact(value):
            raise BadInput(f"{path}: signing would round {value.text[:40]}; write fewer digits")


def _children(value: dict[str, object] | list[object]) -> Iterator[tuple[str, object]]:
    if isinstance(value, dict):
        return ((pointer_token(name), child) for name, child in value.items())
    return ((str(index), child) for index, child in enumerate(value))


def _is_exact(number: Real) -> bool:
    """Say whether the shortest decimal of the double is the decimal that was written."""
    if not number:  # a decimal too small for a double; its exponent may be out of all bounds
        return not number.text.lower().partition("e")[0].strip("-0.")
    return Decimal(number.text) == Decimal(float.__repr__(number))


# --- to be read ----------------------------------------------------------------------------------


def open_statement(payload: bytes) -> Statement | EvidenceRefused:
    """Return the record in a Statement's bytes, or the first reason why there is none to judge.

    Of a signed one these are the verified bytes, and none are read again in another form (rule 7):
    the record's bytes are cut out of them. The record's own shape is left to the reader.
    """
    try:
        values = parse_object(payload)
    except MalformedRecord as error:
        return EvidenceRefused(Reason.NOT_A_STATEMENT, f"no JSON object to read: {error}")
    refusal = _refuse_types(values)
    if refusal is not None:
        return refusal
    predicate = values["predicate"]
    assert isinstance(predicate, dict)
    subject = _only_subject(values.get("subject"))
    if isinstance(subject, EvidenceRefused):
        return subject
    if not _is_about(subject, predicate):
        return EvidenceRefused(
            Reason.SUBJECT_OF_ANOTHER_RECORD,
            "the subject's name and digest are not the record's operation id and argsDigest",
        )
    chain = _stated_chain(subject)
    if isinstance(chain, EvidenceRefused):
        return chain
    return Statement(_member_bytes(payload.decode("utf-8"), "predicate"), predicate, chain)


def _refuse_types(values: Mapping[str, object]) -> EvidenceRefused | None:
    """Check the types from the outside inwards (rule 6): ``_type``, predicateType, contractId."""
    if values.get("_type") != STATEMENT_TYPE:
        return EvidenceRefused(Reason.STATEMENT_TYPE_UNKNOWN, f"_type is not {STATEMENT_TYPE}")
    if values.get("predicateType") != CONTRACT_ID:
        return EvidenceRefused(
            Reason.PREDICATE_TYPE_OF_ANOTHER_CONTRACT, f"predicateType is not {CONTRACT_ID}"
        )
    predicate = values.get("predicate")
    if not isinstance(predicate, dict):
        return EvidenceRefused(Reason.NOT_A_STATEMENT, "/predicate must be an object")
    if predicate.get("contractId") != CONTRACT_ID:
        return EvidenceRefused(
            Reason.CONTRACT_ID_DISAGREES, "the record's contractId is not the predicateType"
        )
    return None


def _only_subject(listed: object) -> Mapping[str, object] | EvidenceRefused:
    """Return the one subject, its digest known to be SHA-256 in lower-case hex (rule 9)."""
    if not isinstance(listed, list) or not all(isinstance(item, dict) for item in listed):
        return EvidenceRefused(Reason.NOT_A_STATEMENT, "/subject must be a list of objects")
    if len({dumps(item, sort_keys=True) for item in listed}) != len(listed):
        return EvidenceRefused(Reason.SUBJECT_DUPLICATE, "one subject stands twice")
    if len(listed) != 1:
        return EvidenceRefused(
            Reason.SUBJECT_NOT_ONE, f"{len(listed)} subjects; a record is about one operation"
        )
    subject: dict[str, object] = listed[0]
    digest = subject.get("digest")
    if not isinstance(digest, dict) or set(digest) != {"sha256"}:
        return EvidenceRefused(
            Reason.SUBJECT_DIGEST_UNUSABLE, "the subject's digest must be sha256 and nothing else"
        )
    if not isinstance(digest["sha256"], str) or not is_digest(PREFIX + digest["sha256"]):
        return EvidenceRefused(
            Reason.SUBJECT_DIGEST_UNUSABLE, "the subject's sha256 must be 64 lower-case hex digits"
        )
    return subject


def _is_about(subject: Mapping[str, object], predicate: Mapping[str, object]) -> bool:
    operation, digest = predicate.get("operation"), subject.get("digest")
    if not isinstance(operation, dict) or not isinstance(digest, dict):
        return False
    name = subject.get("name")
    same_name = isinstance(name, str) and name == operation.get("id")
    return same_name and operation.get("argsDigest") == PREFIX + str(digest.get("sha256"))


def _stated_chain(subject: Mapping[str, object]) -> Chain | EvidenceRefused | None:
    annotations = subject.get("annotations")
    if annotations is None:
        return None
    if not isinstance(annotations, dict):
        return EvidenceRefused(Reason.NOT_A_STATEMENT, "the annotations must be an object")
    stated = annotations.get(CHAIN_MEMBER)
    if stated is None:
        return None
    try:
        if not isinstance(stated, dict) or set(stated) != {"head", "count"}:
            raise BadInput("it must have head and count")
        return chain_of(stated["head"], stated["count"])
    except BadInput as error:
        return EvidenceRefused(Reason.CHAIN_UNUSABLE, f"{CHAIN_MEMBER}: {error}")


def _member_bytes(text: str, name: str) -> bytes:
    """Return the bytes of a member's value as written; ``text`` is a JSON object that has it."""
    read = JSONDecoder().raw_decode
    place = _skip(text, text.index("{") + 1)
    while True:
        found, place = read(text, place)
        place = _skip(text, _skip(text, place) + 1)  # the colon
        _, end = read(text, place)
        if found == name:
            return text[place:end].encode("utf-8")
        place = _skip(text, _skip(text, end) + 1)  # the comma


def _skip(text: str, place: int) -> int:
    while text[place] in WHITE_SPACE:
        place += 1
    return place
