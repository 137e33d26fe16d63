"""The reader over anything: one answer to any bytes, and the answer that a slow restatement gives.

The restatement below follows the page pair by pair, in quadratic time and with fractions for times;
it shares nothing with the reader but the words.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from counterfoil.reader.checks import HELD, REASONS
from counterfoil.reader.verdict import Malformed, Verdict, judge_briefly, judge_bytes, judge_record
from counterfoil.record.codec import decode, encode
from counterfoil.record.strict_json import Real, parse

CONTRACT = "https://probityai.github.io/agent-evidence-vectors/predicate/v1/uncertain-effect"
BEGIN = datetime(2026, 3, 1, 10, tzinfo=UTC)
DIGESTS = ["sha256:" + "a1" * 32, "sha256:" + "b2" * 32]
UNKNOWN = ("timeout", "connection_lost")

Values = dict[str, Any]
QUICK = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def answers_to(data: bytes) -> Verdict | Malformed:
    """Return the one answer; see that it is one, and that the quick way gives the same."""
    answer = judge_bytes(data)
    brief = judge_briefly(data)
    assert brief.as_json() == answer.as_json()
    if isinstance(answer, Malformed):
        assert answer.path == "" or answer.path.startswith("/")
        assert answer.detail != "out of shape"
    else:
        assert answer.reason in {*REASONS, HELD}
        assert (answer.reason == HELD) == (answer.decision.value == "allow")
    text = json.dumps(answer.as_json())
    assert text.isascii()
    assert parse(text.encode()) is not None
    return answer


# --- a small world, so that edges meet -----------------------------------------------------------


def written(half_seconds: int, style: int) -> str:
    moment = BEGIN + timedelta(seconds=half_seconds / 2)
    if style == 1:
        moment = moment.replace(tzinfo=None) + timedelta(hours=5, minutes=30)
        return moment.isoformat() + "+05:30"
    text = moment.isoformat().replace("+00:00", "Z")
    return text.lower() if style == 2 else text


times = st.builds(written, st.integers(0, 8), st.sampled_from([0, 0, 0, 0, 1, 2]))
keys = st.sampled_from(["k", "k", "k", "other"])
tokens = st.integers(1, 3)
workers = st.sampled_from(["w1", "w2"])

attempts = st.fixed_dictionaries(
    {
        "idempotencyKey": keys,
        "argsDigest": st.sampled_from([DIGESTS[0]] * 5 + [DIGESTS[1]]),
        "dispatchedAt": times,
        "reply": st.sampled_from(["confirmed", "no_effect", *UNKNOWN]),
    },
    optional={"worker": workers, "fencingToken": tokens},
)
leases = st.fixed_dictionaries(
    {"worker": workers, "fencingToken": tokens, "acquiredAt": times, "expiresAt": times}
)
answers = st.fixed_dictionaries(
    {
        "at": times,
        "idempotencyKey": keys,
        "result": st.sampled_from(["absent", "absent", "present"]),
        "final": st.booleans(),
    }
)
reservations = st.fixed_dictionaries(
    {"units": st.sampled_from([0, 1, 2.5]), "expiresAt": times, "charged": st.booleans()}
)


@st.composite
def records(draw: st.DrawFn) -> Values:
    listed: list[Values] = draw(st.lists(attempts, max_size=4))
    plain = draw(st.booleans())
    if plain:
        for attempt in listed:
            attempt.pop("worker", None)
            attempt.pop("fencingToken", None)
        listed.sort(key=lambda attempt: _at(attempt["dispatchedAt"]))
    numbers = draw(st.permutations(range(1, len(listed) + 1)))
    for number, attempt in zip(sorted(numbers) if plain else numbers, listed, strict=True):
        attempt["attempt"] = number
    answered: list[Values] = draw(st.lists(answers, max_size=3))
    values: Values = {
        "contractId": CONTRACT,
        "operation": {"id": "o", "action": "a", "idempotencyKey": "k", "argsDigest": DIGESTS[0]},
        "effectOwner": {
            "id": "owner",
            "deduplicatesByKey": draw(st.booleans()),
            "keyRetentionSeconds": draw(st.sampled_from([None, None, 0, 1, 1.5, 4])),
        },
        "attempts": listed,
        "reconciliations": answered,
        "ownerEffects": [{}] * draw(st.sampled_from([0, 1, 1, 1, 2])),
        "reported": {"outcome": draw(st.sampled_from(["committed", "not_run", "unknown"]))},
    }
    if not plain:
        values["leases"] = draw(st.lists(leases, max_size=4))
    if draw(st.booleans()):
        values["reservation"] = draw(reservations)
    if draw(st.booleans()):
        # Most trails report what their answers say; without this, few would pass check 10.
        values["reported"]["outcome"] = slow_outcome(values)
    return values


# --- the slow restatement ------------------------------------------------------------------------


def _at(text: str) -> Fraction:
    moment = datetime.fromisoformat(text.upper())
    return Fraction((moment - BEGIN) // timedelta(microseconds=1), 10**6)


def _after(later: Values, earlier: Values) -> bool:
    return later is not earlier and (
        _at(later["dispatchedAt"]) > _at(earlier["dispatchedAt"])
        or later["attempt"] > earlier["attempt"]
    )


def _deduplicated(values: Values, earlier: Values, later: Values) -> bool:
    owner = values["effectOwner"]
    if not owner["deduplicatesByKey"] or earlier["idempotencyKey"] != later["idempotencyKey"]:
        return False
    apart = _at(later["dispatchedAt"]) - _at(earlier["dispatchedAt"])
    window = owner["keyRetentionSeconds"]
    return window is None or apart <= Fraction(str(window))


def slow_outcome(values: Values) -> str:
    used = {a["idempotencyKey"] for a in values["attempts"]} | {"k"}
    heard = [r for r in values["reconciliations"] if r["idempotencyKey"] in used]
    unknown = [a for a in values["attempts"] if a["reply"] in UNKNOWN]
    if any(a["reply"] == "confirmed" for a in values["attempts"]):
        return "committed"
    if any(r["result"] == "present" for r in heard):
        return "committed"
    for attempt in unknown:
        alike = [a for a in unknown if a["idempotencyKey"] == attempt["idempotencyKey"]]
        if not any(
            r["result"] == "absent"
            and r["final"]
            and r["idempotencyKey"] == attempt["idempotencyKey"]
            and all(_at(r["at"]) > _at(a["dispatchedAt"]) for a in alike)
            for r in heard
        ):
            return "unknown"
    return "not_run"


def _leased(values: Values, attempt: Values) -> bool:
    at, token = _at(attempt["dispatchedAt"]), attempt.get("fencingToken")
    held = any(
        lease["worker"] == attempt.get("worker")
        and lease["fencingToken"] == token
        and _at(lease["acquiredAt"]) <= at <= _at(lease["expiresAt"])
        for lease in values["leases"]
    )
    return held and not any(
        lease["fencingToken"] > token and _at(lease["acquiredAt"]) <= at
        for lease in values["leases"]
    )


def _bare_pairs(values: Values) -> list[tuple[int, int]]:
    pairs = []
    for i, u in enumerate(values["attempts"]):
        for j, v in enumerate(values["attempts"]):
            if u["reply"] not in UNKNOWN or not _after(v, u) or _deduplicated(values, u, v):
                continue
            if not any(
                r["result"] == "absent"
                and r["final"]
                and r["idempotencyKey"] == u["idempotencyKey"]
                and _at(u["dispatchedAt"]) < _at(r["at"]) <= _at(v["dispatchedAt"])
                for r in values["reconciliations"]
            ):
                pairs.append((i, j))
    return pairs


def slow_reason(values: Values) -> str:
    listed, outcome = values["attempts"], slow_outcome(values)
    reported = values["reported"]["outcome"]
    if any(a["idempotencyKey"] == "k" and a["argsDigest"] != DIGESTS[0] for a in listed):
        return "idempotency_key_args_changed"
    if values.get("leases") or any("fencingToken" in a for a in listed):
        values = {"leases": [], **values}
        if not all(_leased(values, a) for a in listed):
            return "dispatch_beyond_lease"
    if _bare_pairs(values):
        return "retry_after_unknown"
    if len(values["ownerEffects"]) > 1:
        return "duplicate_effect"
    if outcome == "unknown" and not values.get("reservation", {"charged": True})["charged"]:
        return "unknown_released"
    if outcome == "unknown" and reported != "unknown":
        return "outcome_settled_without_authority"
    return HELD if reported == outcome else "outcome_disagrees_with_authority"


# --- the properties ------------------------------------------------------------------------------


@QUICK
@given(st.binary(max_size=200))
def test_any_bytes_get_one_answer(data: bytes) -> None:
    assert answers_to(data).as_json().get("decision") != "allow"


scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
    | st.sampled_from(["k", "timeout", DIGESTS[0], CONTRACT, "2026-03-01T10:00:00Z"])
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(QUICK, max_examples=100)
@given(records(), st.data())
def test_a_record_with_anything_anywhere_gets_one_answer(
    values: Values, data: st.DataObject
) -> None:
    part: Any = values
    while True:
        places = list(part) if isinstance(part, dict) else list(range(len(part)))
        if not places:
            break
        place = data.draw(st.sampled_from(places))
        if not isinstance(part[place], dict | list) or data.draw(st.integers(0, 3)) == 0:
            part[place] = data.draw(anything)
            break
        part = part[place]
    answers_to(json.dumps(values).encode())


@settings(QUICK, max_examples=80)
@given(records(), st.data())
def test_a_record_with_bytes_cut_or_changed_gets_one_answer(
    values: Values, data: st.DataObject
) -> None:
    text = bytearray(json.dumps(values).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text) - 1))
        change = data.draw(st.sampled_from(["cut", "put", "swap"]))
        if change == "cut":
            del text[place : place + data.draw(st.integers(1, 9))]
        else:
            text[place : place + (change == "swap")] = data.draw(
                st.sampled_from([b'"', b"\\", b"{", b"]", b"1", b"\xff", b",", b"\\ud800", b"\x00"])
            )
        if not text:
            break
    answers_to(bytes(text))


@settings(QUICK, max_examples=200)
@given(records())
def test_the_reader_decides_as_the_slow_restatement_does(values: Values) -> None:
    verdict = answers_to(json.dumps(values).encode())
    assert isinstance(verdict, Verdict)
    assert verdict.reason == slow_reason(values)
    assert verdict.outcome is not None
    assert verdict.outcome.value == slow_outcome(values)


@settings(QUICK, max_examples=100)
@given(records())
def test_check_6_names_the_first_bare_pair(values: Values) -> None:
    verdict = answers_to(json.dumps(values).encode())
    assert isinstance(verdict, Verdict)
    if verdict.reason == "retry_after_unknown":
        u, v = _bare_pairs(values)[0]
        assert verdict.members == (f"/attempts/{v}", f"/attempts/{u}")


@settings(QUICK, max_examples=100)
@given(records())
def test_a_resend_after_a_confirmation_is_advised_of_as_pair_by_pair(values: Values) -> None:
    values["reconciliations"] = [r for r in values["reconciliations"] if r["result"] == "absent"]
    verdict = answers_to(json.dumps(values).encode())
    assert isinstance(verdict, Verdict)
    expected = any(
        u["reply"] == "confirmed" and _after(v, u) and not _deduplicated(values, u, v)
        for u in values["attempts"]
        for v in values["attempts"]
    )
    codes = [advisory.code for advisory in verdict.advisories]
    assert ("resend_after_committed" in codes) == expected


@settings(QUICK, max_examples=60)
@given(records(), st.data())
def test_the_order_of_lists_decides_nothing(values: Values, data: st.DataObject) -> None:
    before = answers_to(json.dumps(values).encode())
    for name in ("attempts", "leases", "reconciliations"):
        values[name] = data.draw(st.permutations(values.get(name, [])))
    after = answers_to(json.dumps(values).encode())
    assert isinstance(before, Verdict)
    assert isinstance(after, Verdict)
    assert (after.reason, after.outcome) == (before.reason, before.outcome)
    assert [a.code for a in after.advisories] == [a.code for a in before.advisories]


@settings(QUICK, max_examples=60)
@given(records())
def test_a_record_decoded_and_encoded_is_judged_the_same(values: Values) -> None:
    record = decode(parse(json.dumps(values).encode()))  # type: ignore[arg-type]
    assert decode(encode(record)) == record
    assert judge_record(record) == judge_bytes(json.dumps(values).encode())


@QUICK
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_keeps_its_text_and_its_value(number: float) -> None:
    value = parse(repr(number).encode())
    assert isinstance(value, Real)
    assert (value, value.text) == (number, repr(number))


@QUICK
@given(anything)
def test_strict_json_reads_what_the_standard_library_writes(value: object) -> None:
    text = json.dumps(value)
    assert parse(text.encode()) == json.loads(text)
