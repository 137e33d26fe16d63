"""The reader's contract, said a second time, slowly and plainly; shares no code with the reader.

Written from the design page alone. It scans the text instead of parsing cleverly, walks every
pair, and counts time in whole units of the finest fraction that the record holds. Where it and
the reader differ, one of them has misread the page.
"""

from __future__ import annotations

import datetime as dt
import json
import re
from dataclasses import dataclass
from typing import Any

URI = "https://probityai.github.io/agent-evidence-vectors/predicate/v1/uncertain-effect"
DEPTH_MAX = 128
REASONS = (
    "contract_id_missing",
    "contract_id_unknown",
    "operation_identity_missing",
    "idempotency_key_args_changed",
    "dispatch_beyond_lease",
    "retry_after_unknown",
    "duplicate_effect",
    "unknown_released",
    "outcome_settled_without_authority",
    "outcome_disagrees_with_authority",
)
MALFORMED = "malformed"
ANSWERS = ("effect_held", *REASONS, MALFORMED)

STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
SURROGATE = re.compile("[\ud800-\udfff]")
INTEGER = re.compile(r"-?[0-9]+")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)


class NotARecord(Exception):
    """The bytes are malformed."""


@dataclass(frozen=True)
class Answer:
    """``reason`` is one of ANSWERS; ``outcome`` is None where no shape was looked at."""

    reason: str
    outcome: str | None = None

    @property
    def decision(self) -> str:
        return {"effect_held": "allow", MALFORMED: MALFORMED}.get(self.reason, "deny")


@dataclass(frozen=True)
class Number:
    """A number as it was written."""

    token: str


def judge(data: bytes) -> Answer:
    """Return the one answer that the page gives to these bytes."""
    try:
        return judged(parsed(data))
    except NotARecord:
        return Answer(MALFORMED)


# --- bytes to values ---------------------------------------------------------------------------


def parsed(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode("utf-8", "strict")
    except UnicodeDecodeError:
        raise NotARecord("not UTF-8") from None
    if text.startswith("\ufeff"):
        raise NotARecord("a byte order mark")
    if deepest(text) > DEPTH_MAX:
        raise NotARecord("too deep")
    try:
        value = json.loads(
            text,
            object_pairs_hook=without_twins,
            parse_int=finite,
            parse_float=finite,
            parse_constant=refused,
        )
    except ValueError:
        raise NotARecord("not JSON") from None
    look_for_lone_surrogates(value)
    return an_object(value)


def deepest(text: str) -> int:
    """Count brackets outside strings; of a text that is not JSON the answer does not matter."""
    depth = most = 0
    for bracket in re.findall(r"[][{}]", STRING.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        most = max(most, depth)
    return most


def without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        raise NotARecord("a name twice")
    return dict(pairs)


def finite(token: str) -> Number:
    if float(token) in {float("inf"), float("-inf")}:
        raise NotARecord("overflows a double")
    return Number(token)


def refused(token: str) -> None:
    raise NotARecord(token)


def look_for_lone_surrogates(value: Any) -> None:
    if isinstance(value, str):
        need(SURROGATE.search(value) is None, "no lone surrogate")
    elif isinstance(value, list):
        for item in value:
            look_for_lone_surrogates(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            look_for_lone_surrogates(name)
            look_for_lone_surrogates(item)


# --- the order of the answers ------------------------------------------------------------------


def judged(record: dict[str, Any]) -> Answer:
    if "contractId" not in record:
        return Answer("contract_id_missing")
    if record["contractId"] != URI:
        return Answer("contract_id_unknown")
    operation = an_object(record.get("operation"))
    attempts = objects(record.get("attempts"))
    for holder in [operation, *attempts]:
        for name in ("idempotencyKey", "argsDigest"):
            if holder.get(name) is None or holder[name] == "":
                return Answer("operation_identity_missing")
    check_shape(record)
    facts = Facts(record)
    outcome = facts.outcome()
    failed = [
        ("idempotency_key_args_changed", facts.key_with_other_arguments()),
        ("dispatch_beyond_lease", facts.dispatch_beyond_lease()),
        ("retry_after_unknown", facts.retry_after_unknown()),
        ("duplicate_effect", len(record["ownerEffects"]) >= 2),
        ("unknown_released", outcome == "unknown" and facts.charged is False),
        ("outcome_settled_without_authority", outcome == "unknown" != facts.reported),
        ("outcome_disagrees_with_authority", outcome != facts.reported),
    ]
    return Answer(next((reason for reason, is_so in failed if is_so), "effect_held"), outcome)


# --- the shape ---------------------------------------------------------------------------------


def need(is_so: bool, what: str) -> None:
    if not is_so:
        raise NotARecord(what)


def an_object(value: Any) -> dict[str, Any]:
    need(isinstance(value, dict), "an object")
    return dict(value)


def objects(value: Any) -> list[dict[str, Any]]:
    need(isinstance(value, list), "a list")
    return [an_object(item) for item in value]


def text(value: Any) -> None:
    need(isinstance(value, str) and value != "", "a string that is not empty")


def boolean(value: Any) -> None:
    need(value is True or value is False, "a boolean")


def word(value: Any, *words: str) -> None:
    need(isinstance(value, str) and value in words, "one of the words")


def digest(value: Any) -> None:
    need(isinstance(value, str) and DIGEST.fullmatch(value) is not None, "a digest")


def integer(value: Any) -> int:
    need(isinstance(value, Number) and INTEGER.fullmatch(value.token) is not None, "an integer")
    number = whole(value.token)
    need(abs(number) < 2**53, "an integer that every reader keeps")
    return number


def not_negative(value: Any) -> None:
    need(isinstance(value, Number), "a number")
    negative = value.token.startswith("-") and re.search("[1-9]", mantissa(value.token))
    need(not negative, "zero or more")


def mantissa(token: str) -> str:
    return re.split("[eE]", token)[0]


def optional(holder: dict[str, Any], name: str) -> bool:
    return holder.get(name) is not None


def check_shape(record: dict[str, Any]) -> None:
    for name in ("id", "action", "idempotencyKey"):
        text(record["operation"].get(name))
    digest(record["operation"].get("argsDigest"))
    owner = an_object(record.get("effectOwner"))
    text(owner.get("id"))
    boolean(owner.get("deduplicatesByKey"))
    need("keyRetentionSeconds" in owner, "keyRetentionSeconds")
    if owner["keyRetentionSeconds"] is not None:
        not_negative(owner["keyRetentionSeconds"])
    for attempt in record["attempts"]:
        check_attempt(attempt)
    numbers = [integer(attempt["attempt"]) for attempt in record["attempts"]]
    need(len(numbers) == len(set(numbers)), "one number an attempt")
    for lease in objects(record["leases"]) if optional(record, "leases") else []:
        text(lease.get("worker"))
        integer(lease.get("fencingToken"))
        moment(lease.get("acquiredAt"))
        moment(lease.get("expiresAt"))
    for answer in objects(record.get("reconciliations")):
        moment(answer.get("at"))
        text(answer.get("idempotencyKey"))
        word(answer.get("result"), "present", "absent")
        boolean(answer.get("final"))
    objects(record.get("ownerEffects"))
    if optional(record, "notices"):
        objects(record["notices"])
    if optional(record, "reservation"):
        reservation = an_object(record["reservation"])
        not_negative(reservation.get("units"))
        moment(reservation.get("expiresAt"))
        boolean(reservation.get("charged"))
    word(an_object(record.get("reported")).get("outcome"), "committed", "not_run", "unknown")


def check_attempt(attempt: dict[str, Any]) -> None:
    need(integer(attempt.get("attempt")) >= 1, "1 or more")
    text(attempt["idempotencyKey"])
    digest(attempt["argsDigest"])
    moment(attempt.get("dispatchedAt"))
    word(attempt.get("reply"), "confirmed", "no_effect", "timeout", "connection_lost")
    if optional(attempt, "worker"):
        text(attempt["worker"])
    if optional(attempt, "fencingToken"):
        integer(attempt["fencingToken"])


# --- exact times -------------------------------------------------------------------------------


def whole(digits: str) -> int:
    """Read an integer of any length; int() alone stops at a few thousand digits."""
    sign, digits = (-1, digits[1:]) if digits.startswith("-") else (1, digits)
    total = 0
    for start in range(0, len(digits), 4000):
        piece = digits[start : start + 4000]
        total = total * power_of_ten(len(piece)) + int(piece)
    return sign * total


def power_of_ten(exponent: int) -> int:
    """Return 10**exponent, and 1 for what is below 10."""
    return int(10 ** max(exponent, 0))


@dataclass(frozen=True)
class Moment:
    """Seconds since the first day of year 1, and the digits behind the point."""

    seconds: int
    fraction: str

    def units(self, digits: int) -> int:
        """Count units of 10**-digits seconds; ``digits`` is at least the fraction's length."""
        return self.seconds * power_of_ten(digits) + whole(self.fraction.ljust(digits, "0") or "0")


def moment(value: Any) -> Moment:
    need(isinstance(value, str), "a time")
    found = TIME.fullmatch(value)
    if found is None:
        raise NotARecord("a time")
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    fraction, sign, offset_hour, offset_minute = found.groups()[6:]
    need(hour <= 23 and minute <= 59 and second <= 59, "a time of day")
    try:
        days = dt.date(year, month, day).toordinal()
    except ValueError:
        raise NotARecord("a day") from None
    seconds = days * 86400 + hour * 3600 + minute * 60 + second
    if sign is not None:
        need(int(offset_hour) <= 23 and int(offset_minute) <= 59, "an offset")
        shift = int(offset_hour) * 3600 + int(offset_minute) * 60
        seconds += shift if sign == "-" else -shift
    return Moment(seconds, (fraction or "").rstrip("0"))


def at_most(units: int, digits: int, token: str) -> bool:
    """Say whether ``units`` of 10**-digits seconds are at most the decimal in ``token``, >= 0."""
    if units <= 0:
        return True
    parts = re.split("[eE]", token)
    before, _, after = parts[0].lstrip("-").partition(".")
    limit = whole(before + after)
    if limit == 0:
        return False
    exponent = (whole(parts[1].lstrip("+")) if len(parts) == 2 else 0) - len(after)
    if exponent + len(before + after) < -digits:
        return False  # below one unit, and a power that could be too large to write out
    shift = exponent + digits
    return units * power_of_ten(-shift) <= limit * power_of_ten(shift)


# --- checks 4 to 10 ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Sent:
    number: int
    key: str
    digest: str
    at: int
    reply: str
    worker: str | None
    token: int | None

    @property
    def unknown(self) -> bool:
        return self.reply in {"timeout", "connection_lost"}


class Facts:
    """The record with its times as whole numbers of the finest unit in it."""

    def __init__(self, record: dict[str, Any]) -> None:
        attempts, answers = record["attempts"], record["reconciliations"]
        leases = record.get("leases") or []
        written = [moment(one["dispatchedAt"]) for one in attempts]
        written += [moment(one["at"]) for one in answers]
        written += [moment(one[name]) for one in leases for name in ("acquiredAt", "expiresAt")]
        self.digits = max([len(one.fraction) for one in written], default=0)
        self.key = record["operation"]["idempotencyKey"]
        self.digest = record["operation"]["argsDigest"]
        self.deduplicates = record["effectOwner"]["deduplicatesByKey"]
        self.retention = record["effectOwner"]["keyRetentionSeconds"]
        self.sent = [
            Sent(
                integer(one["attempt"]),
                one["idempotencyKey"],
                one["argsDigest"],
                self.read(one["dispatchedAt"]),
                one["reply"],
                one.get("worker"),
                integer(one["fencingToken"]) if optional(one, "fencingToken") else None,
            )
            for one in attempts
        ]
        self.leases = [
            (
                one["worker"],
                integer(one["fencingToken"]),
                self.read(one["acquiredAt"]),
                self.read(one["expiresAt"]),
            )
            for one in leases
        ]
        self.present = [one["idempotencyKey"] for one in answers if one["result"] == "present"]
        self.final_absent = [
            (one["idempotencyKey"], self.read(one["at"]))
            for one in answers
            if one["final"] and one["result"] == "absent"
        ]
        reservation = record.get("reservation")
        self.charged = None if reservation is None else reservation["charged"]
        self.reported = record["reported"]["outcome"]

    def read(self, value: str) -> int:
        return moment(value).units(self.digits)

    def key_with_other_arguments(self) -> bool:
        return any(one.key == self.key and one.digest != self.digest for one in self.sent)

    def dispatch_beyond_lease(self) -> bool:
        if not self.leases and all(one.token is None for one in self.sent):
            return False
        return not all(self.inside_lease(one) for one in self.sent)

    def inside_lease(self, one: Sent) -> bool:
        if one.worker is None or one.token is None:
            return False
        held = any(
            worker == one.worker and token == one.token and start <= one.at <= end
            for worker, token, start, end in self.leases
        )
        superseded = any(
            token > one.token and start <= one.at for _, token, start, _ in self.leases
        )
        return held and not superseded

    def retry_after_unknown(self) -> bool:
        return any(
            first.unknown
            and first is not later
            and (later.at > first.at or later.number > first.number)
            and not self.deduplicated(first, later)
            and not self.found_absent_between(first, later)
            for first in self.sent
            for later in self.sent
        )

    def deduplicated(self, first: Sent, later: Sent) -> bool:
        if not self.deduplicates or first.key != later.key:
            return False
        if self.retention is None:
            return True
        return at_most(later.at - first.at, self.digits, self.retention.token)

    def found_absent_between(self, first: Sent, later: Sent) -> bool:
        return any(key == first.key and first.at < at <= later.at for key, at in self.final_absent)

    def outcome(self) -> str:
        keys = {self.key, *(one.key for one in self.sent)}
        confirmed = any(one.reply == "confirmed" for one in self.sent)
        if confirmed or any(key in keys for key in self.present):
            return "committed"
        unknown = [one for one in self.sent if one.unknown]
        for one in unknown:
            last = max(other.at for other in unknown if other.key == one.key)
            if not any(key == one.key and at > last for key, at in self.final_absent):
                return "unknown"
        return "not_run"
