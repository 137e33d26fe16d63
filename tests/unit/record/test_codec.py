"""Values to a record and back, and every member out of shape."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from counterfoil.errors import BadInput, MalformedRecord
from counterfoil.record.codec import decode, encode
from counterfoil.record.instants import from_unix_us, parse
from counterfoil.record.model import (
    CONTRACT_ID,
    NO_EXTRA,
    Attempt,
    EffectOwner,
    Lease,
    Operation,
    Outcome,
    Reconciliation,
    Record,
    Reply,
    Reported,
    Reservation,
    Result,
)
from counterfoil.record.strict_json import Real, parse_object

DIGEST = "sha256:" + "0f" * 32
TIME = "2026-03-01T10:00:00Z"


def full() -> dict[str, Any]:
    return {
        "contractId": CONTRACT_ID,
        "operation": {
            "id": "op-1",
            "action": "refund",
            "idempotencyKey": "k",
            "argsDigest": DIGEST,
            "tenant": "t",
        },
        "effectOwner": {
            "id": "payments",
            "deduplicatesByKey": True,
            "keyRetentionSeconds": 86400,
            "region": "eu",
        },
        "attempts": [
            {
                "attempt": 1,
                "idempotencyKey": "k",
                "argsDigest": DIGEST,
                "dispatchedAt": TIME,
                "reply": "timeout",
                "worker": "w",
                "fencingToken": -3,
                "sentAt": TIME,
            },
            {
                "attempt": 2,
                "idempotencyKey": "k",
                "argsDigest": DIGEST,
                "dispatchedAt": "2026-03-01T10:01:00.5Z",
                "reply": "confirmed",
            },
        ],
        "leases": [
            {
                "worker": "w",
                "fencingToken": -3,
                "acquiredAt": TIME,
                "expiresAt": "2026-03-01T10:01:00Z",
                "host": "h",
            }
        ],
        "reconciliations": [
            {"at": TIME, "idempotencyKey": "k", "result": "absent", "final": False, "by": "w"}
        ],
        "ownerEffects": [{"id": "e", "any": [1]}],
        "reservation": {"units": 2, "expiresAt": TIME, "charged": True, "of": "budget"},
        "notices": [{"from": "billing"}],
        "reported": {"outcome": "committed", "by": "runtime"},
        "note": {"kept": True},
    }


def at(values: Any, path: str) -> Any:
    for token in path.split("/")[1:]:
        values = values[int(token)] if isinstance(values, list) else values[token]
    return values


def changed(path: str, value: Any) -> dict[str, Any]:
    values = full()
    parent, _, name = path.rpartition("/")
    at(values, parent)[name] = value
    return values


def refused(values: dict[str, Any]) -> MalformedRecord:
    with pytest.raises(MalformedRecord) as caught:
        decode(values)
    return caught.value


def test_a_record_survives_the_way_there_and_back_with_what_it_does_not_name() -> None:
    assert encode(decode(full())) == full()


def test_decoding_leaves_the_values_as_they_were() -> None:
    values = full()
    decode(values)
    assert values == full()


def test_the_parts_have_the_types_of_the_model() -> None:
    record = decode(full())
    assert record.operation == Operation("op-1", "refund", "k", DIGEST, {"tenant": "t"})
    assert record.effect_owner == EffectOwner("payments", True, 86400, {"region": "eu"})
    assert record.attempts[1] == Attempt(
        2, "k", DIGEST, parse("2026-03-01T10:01:00.5Z"), Reply.CONFIRMED
    )
    assert record.attempts[0].extra == {"sentAt": TIME}
    assert record.attempts[1].extra is NO_EXTRA
    assert record.leases[0].extra == {"host": "h"}
    assert record.reconciliations[0].result is Result.ABSENT
    assert record.reservation == Reservation(2, parse(TIME), True, {"of": "budget"})
    assert record.reported == Reported(Outcome.COMMITTED, {"by": "runtime"})
    assert record.extra == {"note": {"kept": True}}


def test_a_record_is_made_by_keyword_and_written_with_the_contracts_names() -> None:
    now = from_unix_us(1_772_359_200_000_000)
    record = Record(
        operation=Operation(id="op", action="a", idempotency_key="k", args_digest=DIGEST),
        effect_owner=EffectOwner(id="o", deduplicates_by_key=False, key_retention_s=None),
        attempts=(
            Attempt(
                number=1,
                idempotency_key="k",
                args_digest=DIGEST,
                dispatched_at=now,
                reply=Reply.TIMEOUT,
                worker="w",
                fencing_token=1,
                extra={"sentAt": str(now), "detail": "cut"},
            ),
        ),
        leases=(Lease(worker="w", fencing_token=1, acquired_at=now, expires_at=now),),
        reconciliations=(
            Reconciliation(at=now, idempotency_key="k", result=Result.ABSENT, final=True),
        ),
        owner_effects=(),
        reported=Reported(outcome=Outcome.UNKNOWN),
    )
    values = encode(record)
    assert json.loads(json.dumps(values)) == values
    assert decode(values) == record
    assert list(values) == [
        "contractId",
        "operation",
        "effectOwner",
        "attempts",
        "leases",
        "reconciliations",
        "ownerEffects",
        "reported",
    ]
    assert at(values, "/attempts/0/sentAt") == TIME


@pytest.mark.parametrize("name", ["leases", "reservation", "notices"])
def test_null_for_an_optional_member_is_leaving_it_out(name: str) -> None:
    without = full()
    del without[name]
    assert decode(changed("/" + name, None)) == decode(without)


@pytest.mark.parametrize("name", ["worker", "fencingToken"])
def test_null_for_an_attempts_optional_member_is_leaving_it_out(name: str) -> None:
    record = decode(changed("/attempts/0/" + name, None))
    assert name not in encode(record)["attempts"][0]  # type: ignore[index]


def test_extra_that_holds_a_name_of_the_contract_is_refused() -> None:
    record = decode(full())
    with pytest.raises(BadInput, match="notices"):
        encode(record._replace(extra={"notices": []}))


REQUIRED = [
    *(f"/operation/{name}" for name in ("id", "action", "idempotencyKey", "argsDigest")),
    *(f"/effectOwner/{name}" for name in ("id", "deduplicatesByKey", "keyRetentionSeconds")),
    *(f"/attempts/1/{n}" for n in ("attempt", "idempotencyKey", "argsDigest", "dispatchedAt")),
    "/attempts/1/reply",
    *(f"/leases/0/{name}" for name in ("worker", "fencingToken", "acquiredAt", "expiresAt")),
    *(f"/reconciliations/0/{name}" for name in ("at", "idempotencyKey", "result", "final")),
    *(f"/reservation/{name}" for name in ("units", "expiresAt", "charged")),
    *("/operation", "/effectOwner", "/attempts", "/reconciliations", "/ownerEffects"),
    *("/reported", "/reported/outcome"),
]


@pytest.mark.parametrize("path", REQUIRED)
def test_a_missing_member_is_named_by_its_path(path: str) -> None:
    values = full()
    parent, _, name = path.rpartition("/")
    del at(values, parent)[name]
    error = refused(values)
    assert error.path == path
    assert error.detail.startswith("is missing; it must be ")


TEXTS = ["/operation/id", "/operation/action", "/operation/idempotencyKey", "/effectOwner/id"]
TEXTS += ["/attempts/1/idempotencyKey", "/reconciliations/0/idempotencyKey", "/leases/0/worker"]
DIGESTS = ["/operation/argsDigest", "/attempts/0/argsDigest"]
BOOLEANS = ["/effectOwner/deduplicatesByKey", "/reconciliations/0/final", "/reservation/charged"]
TIMES = ["/attempts/1/dispatchedAt", "/leases/0/acquiredAt", "/leases/0/expiresAt"]
TIMES += ["/reconciliations/0/at", "/reservation/expiresAt"]
WORDS = ["/attempts/0/reply", "/reconciliations/0/result", "/reported/outcome"]
INTEGERS = ["/leases/0/fencingToken", "/attempts/0/fencingToken", "/attempts/1/attempt"]
AMOUNTS = ["/effectOwner/keyRetentionSeconds", "/reservation/units"]
OBJECTS = ["/operation", "/effectOwner", "/reservation", "/reported", "/attempts/1", "/leases/0"]
OBJECTS += ["/reconciliations/0", "/ownerEffects/0", "/notices/0"]
LISTS = ["/attempts", "/leases", "/reconciliations", "/ownerEffects", "/notices"]
EACH_OPTIONAL = ["/attempts/0/worker"]

OUT_OF_SHAPE = [
    *((path, bad) for path in TEXTS + EACH_OPTIONAL for bad in ("", 5, True, [], {})),
    *((path, bad) for path in DIGESTS for bad in ("sha256:x", DIGEST.upper(), 5, [], None)),
    *((path, bad) for path in BOOLEANS for bad in (0, 1, "true", None, [])),
    *((path, bad) for path in TIMES for bad in (None, 5, "now", TIME[:-1], [], {})),
    *((path, bad) for path in WORDS for bad in ("", "Timeout", "maybe", None, 5, [], {})),
    *((path, bad) for path in INTEGERS for bad in (True, 1.0, Real("1e0"), "1", [], 2**53)),
    *(("/attempts/1/attempt", bad) for bad in (0, -1, None)),
    ("/leases/0/fencingToken", -(2**53)),
    *((path, bad) for path in AMOUNTS for bad in (-1, True, "5", [], float("inf"), float("nan"))),
    *((path, Real(bad)) for path in AMOUNTS for bad in ("-0.1", "-1e-400", "-1e5")),
    ("/reservation/units", None),
    *((path, bad) for path in OBJECTS for bad in ([], "x", 5, True)),
    *((path, bad) for path in LISTS for bad in ({}, "x", 5, False)),
]


@pytest.mark.parametrize(("path", "bad"), OUT_OF_SHAPE)
def test_a_member_out_of_shape_is_named_by_its_path(path: str, bad: object) -> None:
    values = full()
    parent, _, name = path.rpartition("/")
    part = at(values, parent)
    part[int(name) if isinstance(part, list) else name] = bad
    error = refused(values)
    assert error.path == path
    assert error.detail.startswith("must be ")


IN_SHAPE = [
    ("/attempts/1/attempt", 2**53 - 1),
    ("/leases/0/fencingToken", 1 - 2**53),
    ("/effectOwner/keyRetentionSeconds", None),
    ("/effectOwner/keyRetentionSeconds", 0),
    ("/effectOwner/keyRetentionSeconds", Real("0.5")),
    ("/reservation/units", Real("-0")),
    ("/reservation/units", Real("-0.00e-7")),
    ("/reservation/units", Real("1e-400")),
    ("/reservation/units", 2**70),
    ("/attempts", []),
    ("/leases", []),
    ("/reconciliations", []),
    ("/ownerEffects", []),
    ("/attempts/0/argsDigest", "sha256:" + "9" * 64),
]


@pytest.mark.parametrize(("path", "value"), IN_SHAPE)
def test_a_value_at_the_edge_of_its_shape_is_kept(path: str, value: object) -> None:
    record = decode(changed(path, value))
    if value != []:
        assert at(encode(record), path) == value


def test_minus_zero_as_an_integer_is_zero() -> None:
    text = json.dumps(full()).replace('"units": 2', '"units": -0')
    assert decode(parse_object(text.encode())).reservation is not None


def test_no_two_attempts_have_one_number() -> None:
    error = refused(changed("/attempts/1/attempt", 1))
    assert (error.path, error.detail) == ("/attempts/1/attempt", "a second attempt 1")


def test_values_are_frozen_and_survive_a_copy() -> None:
    record = decode(full())
    with pytest.raises(AttributeError):
        record.operation.id = "other"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        record.operation.other = 1  # type: ignore[attr-defined]
    assert copy.copy(record) == record
    part = record.attempts[0]._replace(extra={})
    assert pickle.loads(pickle.dumps(part)) == part


def test_a_value_says_what_it_holds_and_what_it_needs() -> None:
    assert repr(Reported(Outcome.UNKNOWN, {})) == (
        "Reported(outcome=<Outcome.UNKNOWN: 'unknown'>, extra={})"
    )
    with pytest.raises(TypeError, match="Reported needs outcome"):
        Reported()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="'outcome'"):
        Reported(Outcome.UNKNOWN, outcome=Outcome.UNKNOWN)  # type: ignore[misc]
    with pytest.raises(TypeError, match="2 members"):
        Reported(Outcome.UNKNOWN, {}, 5)  # type: ignore[call-arg]
