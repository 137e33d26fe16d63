"""The ten reasons and the readings that decide between them, each edge from both sides."""

from __future__ import annotations

from typing import Any

import pytest

from counterfoil.reader.verdict import Verdict, judge_bytes

from . import oracle
from .trails import (
    CONTROLS,
    DIGEST,
    KEY,
    ONE_OF_EACH,
    OTHER_DIGEST,
    OTHER_KEY,
    Json,
    Raw,
    attempt,
    control,
    effects,
    expect,
    found,
    full,
    held,
    lost,
    record,
    reserved,
    said,
    with_value,
    without,
)

DEDUPLICATES = {"deduplicatesByKey": True}
HELD = "effect_held"
RETRY = "retry_after_unknown"
BEYOND = "dispatch_beyond_lease"
MALFORMED = oracle.MALFORMED


# --- the controls ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CONTROLS)
def test_a_control_of_the_seed_is_allowed(name: str) -> None:
    expect(control(name), HELD)


def test_a_record_with_every_optional_member_is_allowed() -> None:
    expect(full(), HELD)


def test_an_allowed_record_has_the_one_allow_reason_and_no_member_to_blame() -> None:
    verdict = judge_bytes(said(full()))
    assert isinstance(verdict, Verdict)
    assert (verdict.decision, verdict.reason, verdict.members) == ("allow", HELD, ())


# --- checks 1 to 3 -----------------------------------------------------------------------------


def test_a_record_without_a_contract_id_is_denied() -> None:
    expect(without(full(), "/contractId"), "contract_id_missing")


@pytest.mark.parametrize(
    "other",
    [
        None,
        1,
        Raw("1.5e3"),
        True,
        "",
        [],
        {},
        oracle.URI + "/",
        oracle.URI.upper(),
        " " + oracle.URI,
    ],
    ids=repr,
)
def test_any_other_contract_id_is_unknown(other: Any) -> None:
    expect(with_value(full(), "/contractId", other), "contract_id_unknown")


def test_an_empty_object_lacks_its_contract_id() -> None:
    expect(b"{}", "contract_id_missing")


def test_the_contract_id_is_looked_for_before_any_shape() -> None:
    expect({"operation": 7, "attempts": "none"}, "contract_id_missing")
    expect({"contractId": "another", "operation": 7}, "contract_id_unknown")


def test_an_escaped_name_and_value_are_the_same_contract_id() -> None:
    spelled = said(full()).replace(b'"contractId": "h', b'"contract\\u0049d": "\\u0068')
    assert b"\\u0049" in spelled
    expect(spelled, HELD)


def test_a_contract_id_in_another_case_is_no_contract_id() -> None:
    expect(said(full()).replace(b'"contractId"', b'"contractID"'), "contract_id_missing")


IDENTITIES = [
    f"{holder}/{name}"
    for holder in ("/operation", "/attempts/0", "/attempts/1")
    for name in ("idempotencyKey", "argsDigest")
]


@pytest.mark.parametrize("pointer", IDENTITIES)
@pytest.mark.parametrize("lack", ["absent", None, ""])
def test_a_key_or_digest_that_is_absent_null_or_empty_is_an_identity_missing(
    pointer: str, lack: str | None
) -> None:
    lacking = without(full(), pointer) if lack == "absent" else with_value(full(), pointer, lack)
    expect(lacking, "operation_identity_missing")


@pytest.mark.parametrize("pointer", IDENTITIES)
@pytest.mark.parametrize("value", [0, False, [], {}], ids=repr)
def test_a_key_or_digest_of_another_type_is_malformed_and_not_missing(
    pointer: str, value: Any
) -> None:
    expect(with_value(full(), pointer, value), MALFORMED)


def test_a_key_that_is_only_a_space_is_a_key() -> None:
    spaced = said(full()).replace(KEY.encode(), b" ")
    expect(spaced, HELD)


def test_a_missing_identity_is_named_before_a_bad_shape() -> None:
    lacking = without(full(), "/attempts/1/argsDigest")
    for pointer, value in (("/effectOwner", 3), ("/attempts/0/reply", "lost"), ("/reported", None)):
        expect(with_value(lacking, pointer, value), "operation_identity_missing")


@pytest.mark.parametrize("pointer", ["/operation", "/attempts", "/attempts/1"])
@pytest.mark.parametrize("value", [None, 1, "text", True], ids=repr)
def test_an_operation_or_attempt_that_is_no_object_is_malformed_before_check_3(
    pointer: str, value: Any
) -> None:
    lacking = without(full(), "/attempts/0/argsDigest")
    expect(with_value(lacking, pointer, value), MALFORMED)


def test_an_operation_or_a_list_of_attempts_that_is_missing_is_malformed() -> None:
    expect(without(full(), "/operation"), MALFORMED)
    expect(without(full(), "/attempts"), MALFORMED)


# --- check 4 -----------------------------------------------------------------------------------


def test_the_operations_key_with_another_digest_is_denied() -> None:
    expect(
        with_value(full(), "/attempts/1/argsDigest", OTHER_DIGEST), "idempotency_key_args_changed"
    )


def test_another_key_with_another_digest_passes_check_4() -> None:
    other = attempt(1, 0, "confirmed", idempotencyKey=OTHER_KEY, argsDigest=OTHER_DIGEST)
    expect(record([other], "committed", ownerEffects=effects(1)), HELD)


def test_two_digests_under_a_key_that_is_not_the_operations_pass_check_4() -> None:
    first = attempt(1, 0, "no_effect", idempotencyKey=OTHER_KEY, argsDigest=OTHER_DIGEST)
    second = attempt(2, 5, "no_effect", idempotencyKey=OTHER_KEY)
    expect(record([first, second], "not_run"), HELD)


def test_keys_are_compared_by_code_point_and_never_normalised() -> None:
    composed = with_value(full(), "/operation/idempotencyKey", "caf\u00e9")
    decomposed = attempt(1, 0, "confirmed", idempotencyKey="cafe\u0301", argsDigest=OTHER_DIGEST)
    alone = {**composed, "attempts": [decomposed], "leases": None}
    expect(alone, HELD)
    same = with_value(alone, "/attempts/0/idempotencyKey", "caf\u00e9")
    expect(same, "idempotency_key_args_changed")


# --- check 5 -----------------------------------------------------------------------------------


def leased(second: Any, *leases: Json, worker: Any = "a", token: Any = 1) -> Json:
    sent = attempt(1, second, "confirmed", worker=worker, fencingToken=token)
    return record([sent], "committed", leases=list(leases), ownerEffects=effects(1))


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ("9.999999999", BEYOND),
        ("10", HELD),
        ("10.0000000000000000001", HELD),
        ("20", HELD),
        ("20.000", HELD),
        ("20.0000000000000000001", BEYOND),
        ("21", BEYOND),
    ],
)
def test_a_lease_holds_from_its_first_instant_to_its_last(second: str, reason: str) -> None:
    expect(leased(second, held("a", 1, 10, 20)), reason)


@pytest.mark.parametrize(
    ("granted", "reason"),
    [
        ("14.9999999999", BEYOND),
        ("15", BEYOND),
        ("15.0000000000", BEYOND),
        ("15.0000000001", HELD),
    ],
)
def test_a_higher_token_supersedes_from_the_instant_of_its_grant(granted: str, reason: str) -> None:
    expect(leased(15, held("a", 1, 10, 20), held("b", 2, granted, 30)), reason)


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (held("b", 2, 12, 11), BEYOND),
        (held("b", 2, 1, 2), BEYOND),
        (held("a", 2, 12, 30), BEYOND),
        (held("b", 1, 12, 30), HELD),
        (held("b", 0, 12, 30), HELD),
        (held("b", -2, 12, 30), HELD),
    ],
    ids=[
        "one that ends before it begins",
        "one that is over",
        "the same worker's own",
        "an equal token",
        "a lower token",
        "a negative token",
    ],
)
def test_only_a_higher_token_supersedes_whoever_holds_it(other: Json, reason: str) -> None:
    expect(leased(15, held("a", 1, 10, 20), other), reason)


def test_a_lease_that_ends_before_it_begins_holds_nothing() -> None:
    expect(leased(15, held("a", 1, 16, 14)), BEYOND)
    expect(leased(15, held("a", 1, 15, 15)), HELD)


@pytest.mark.parametrize(
    ("worker", "token"),
    [("b", 1), ("a", 2), ("A", 1), (None, 1), ("a", None), (None, None)],
)
def test_where_leases_are_an_attempt_needs_one_with_its_worker_and_its_token(
    worker: str | None, token: int | None
) -> None:
    expect(leased(15, held("a", 1, 10, 20), worker=worker, token=token), BEYOND)


def test_worker_and_token_must_stand_in_one_lease() -> None:
    expect(leased(15, held("a", 2, 10, 20), held("b", 1, 10, 20)), BEYOND)


def test_each_attempt_needs_its_own_lease() -> None:
    bare = attempt(2, 16, "confirmed")
    one = leased(15, held("a", 1, 10, 20))
    expect({**one, "attempts": [one["attempts"][0], bare]}, BEYOND)


@pytest.mark.parametrize("leases", [None, []], ids=repr)
def test_a_token_without_any_lease_is_beyond_it(leases: Any) -> None:
    expect({**leased(15), "leases": leases}, BEYOND)
    expect(without(leased(15), "/leases"), BEYOND)


@pytest.mark.parametrize("leases", [None, []], ids=repr)
def test_without_a_lease_or_a_token_a_worker_alone_asks_for_nothing(leases: Any) -> None:
    expect({**leased(15, token=None), "leases": leases}, HELD)
    expect(without(leased(15, token=None), "/leases"), HELD)


def test_a_lease_in_a_record_without_attempts_denies_nothing() -> None:
    expect(record([], "not_run", leases=[held("a", 1, 0, 9)]), HELD)


def test_zero_minus_zero_and_the_largest_tokens_are_told_apart_exactly() -> None:
    expect(leased(15, held("a", Raw("0"), 10, 20), token=Raw("-0")), HELD)
    top = 2**53 - 1
    expect(leased(15, held("a", top, 10, 20), token=top), HELD)
    expect(leased(15, held("a", top, 10, 20), token=top - 1), BEYOND)
    expect(leased(15, held("a", top - 1, 10, 20), held("b", top, 15, 20), token=top - 1), BEYOND)


# --- checks 7 and 8 ----------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "reason"), [(0, HELD), (1, HELD), (2, "duplicate_effect")])
def test_the_ledger_holds_at_most_one_effect(count: int, reason: str) -> None:
    expect({**full(), "ownerEffects": effects(count)}, reason)


def test_each_entry_is_an_effect_whatever_is_in_it() -> None:
    expect({**full(), "ownerEffects": [{}]}, HELD)
    expect({**full(), "ownerEffects": [{}, {}]}, "duplicate_effect")
    same = [{"effectId": "e"}, {"effectId": "e"}]
    expect({**full(), "ownerEffects": same}, "duplicate_effect")


def test_an_unknown_outcome_keeps_its_reservation_charged_also_after_it_expired() -> None:
    expect(lost(reserved(charged=True)), HELD)
    expect(lost(reserved(charged=False)), "unknown_released")
    expect(lost(reserved(charged=False, until=0)), "unknown_released")
    expect(lost(reserved(charged=False, units=0)), "unknown_released")
    expect(lost(None), HELD)


@pytest.mark.parametrize("name", CONTROLS)
def test_a_settled_outcome_may_release_its_reservation(name: str) -> None:
    expect({**control(name), "reservation": reserved(charged=False)}, HELD)


# --- the order of the checks -------------------------------------------------------------------


def test_the_first_check_that_fails_is_named() -> None:
    """Break all ten, then mend them one by one from the first."""
    broken = record(
        [
            attempt(1, 0, "timeout", argsDigest=OTHER_DIGEST, fencingToken=1, worker="a"),
            attempt(2, 10, "timeout", argsDigest=""),
        ],
        "committed",
        ownerEffects=effects(2),
        reservation=reserved(charged=False),
    )
    mends: list[Json] = [
        {"contractId": "another"},
        {"contractId": oracle.URI},
        {"attempts": [broken["attempts"][0], attempt(2, 10, "timeout")]},
        {"attempts": [attempt(1, 0, "timeout", fencingToken=1), attempt(2, 10, "timeout")]},
        {"attempts": [attempt(1, 0, "timeout"), attempt(2, 10, "timeout")]},
        {"reconciliations": [found("absent", 5)]},
        {"ownerEffects": []},
        {"reservation": None},
        {"reconciliations": [found("absent", 5), found("absent", 15)]},
        {"reported": {"outcome": "not_run"}},
    ]
    del broken["contractId"]
    for reason, mend in zip(oracle.REASONS, mends, strict=True):
        expect(broken, reason)
        broken = {**broken, **mend}
    expect(broken, HELD)


def test_unknown_members_are_ignored_wherever_they_stand() -> None:
    tempting: Json = {**full(), "decision": "deny", "attempt": 1}
    for pointer in ("/operation/x", "/effectOwner/x", "/attempts/0/at", "/leases/0/x"):
        tempting = with_value(tempting, pointer, {"fencingToken": "high", "deep": [None, 1.5]})
    for pointer in ("/reconciliations/0/x", "/ownerEffects/0/at", "/reservation/x", "/reported/x"):
        tempting = with_value(tempting, pointer, "24:00")
    expect(tempting, HELD)


def test_a_digest_is_hashed_by_nobody() -> None:
    """The record holds no arguments: any digest of the right form is as good as another."""
    expect(said(full()).replace(DIGEST.encode(), b"sha256:" + b"0" * 64), HELD)


@pytest.mark.parametrize("reason", oracle.REASONS)
def test_each_reason_has_a_record_of_its_own(reason: str) -> None:
    expect(ONE_OF_EACH[reason], reason)


@pytest.mark.parametrize("reason", oracle.REASONS[3:])
def test_a_check_that_is_left_out_lets_its_record_go_on_to_the_next(reason: str) -> None:
    next_reason = {"outcome_settled_without_authority": "outcome_disagrees_with_authority"}
    verdict = judge_bytes(said(ONE_OF_EACH[reason]), without=[reason])
    assert isinstance(verdict, Verdict)
    assert verdict.reason == next_reason.get(reason, HELD)
