"""Makes records out of choices: likely ones, broken ones, and bytes that are none.

Each function takes a ``random.Random`` for its choices. A seeded one makes thousands of records
quickly; Hypothesis's own makes fewer and shrinks what fails.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from . import oracle
from .trails import (
    DIGEST,
    OTHER_DIGEST,
    Json,
    Raw,
    found,
    place,
    reserved,
    with_value,
    without,
    written,
)

if TYPE_CHECKING:
    from random import Random

KEYS = ["key-1"] * 5 + ["key-2", "key-3"]
DIGESTS = [DIGEST] * 12 + [OTHER_DIGEST]
OUTCOMES = ["committed", "not_run", "unknown"]
REPLIES = ["timeout", "timeout", "connection_lost", "no_effect", "confirmed"]

# One small stretch of time, so that edges are met; each instant in several spellings.
FRACTIONS = ["", "", "", ".0", ".5", ".50", ".500000000000000000001", ".499999999999999999999"]
OFFSETS = [
    ("Z", 0), ("Z", 0), ("z", 0), ("+00:00", 0), ("-00:00", 0), ("+01:00", 60), ("-23:59", -1439),
]  # fmt: skip
RETENTIONS = [
    None, None, 0, 1, 2, 3, 600, Raw("2.0"), Raw("1.5"), Raw("1.500000000000000000001"),
    Raw("3e0"), Raw("25E-1"), Raw("-0"), Raw("1e-400"), Raw("1e300"),
]  # fmt: skip


def one_in(r: Random, count: int) -> bool:
    return r.randrange(count) == 0


def time(r: Random) -> str:
    offset, minutes = r.choice(OFFSETS)
    hour, minute = divmod(12 * 60 + minutes, 60)
    date = "2024-02-29" if hour < 0 else "2024-03-01"
    clock = f"{hour % 24:02}:{minute:02}:{r.randrange(7):02}"
    return f"{date}{r.choice('TTTt')}{clock}{r.choice(FRACTIONS)}{offset}"


def attempts(r: Random, *, leased: bool) -> list[Json]:
    numbers = r.sample(range(1, 6), r.choice([0, 1, 1, 2, 2, 3, 4]))
    if not one_in(r, 4):
        numbers.sort()
    made = []
    for number in numbers:
        one: Json = {
            "attempt": number,
            "idempotencyKey": r.choice(KEYS),
            "argsDigest": r.choice(DIGESTS),
            "dispatchedAt": time(r),
            "reply": r.choice(REPLIES),
        }
        if leased or one_in(r, 30):
            one["worker"] = r.choice(["a", "a", "a", "b", None])
            one["fencingToken"] = r.choice([1, 1, 1, 2, Raw("-0"), None])
        made.append(one)
    return made


def answer(r: Random) -> Json:
    one = found(r.choice(["absent", "absent", "present"]), 0, final=not one_in(r, 4))
    return {**one, "at": time(r), "idempotencyKey": r.choice(KEYS)}


def lease(r: Random) -> Json:
    bounds = ("2024-03-01T11:00:00Z", "2024-03-01T13:00:00Z")
    if one_in(r, 2):
        bounds = (time(r), time(r))
    token = r.choice([1, 1, 2, 3, Raw("0")])
    names = ("worker", "fencingToken", "acquiredAt", "expiresAt")
    return dict(zip(names, (r.choice(["a", "a", "b"]), token, *bounds), strict=True))


def likely(r: Random) -> Json:
    """Make a record of the right shape, in which the checks from 4 on decide."""
    leased = one_in(r, 5)
    operation = {"id": "o", "action": "a", "idempotencyKey": KEYS[0], "argsDigest": DIGEST}
    deduplicates = one_in(r, 2)
    record: Json = {
        "contractId": oracle.URI,
        "operation": operation,
        "effectOwner": {
            "id": "w",
            "deduplicatesByKey": deduplicates,
            "keyRetentionSeconds": r.choice(RETENTIONS),
        },
        "attempts": attempts(r, leased=leased),
        "reconciliations": [answer(r) for _ in range(r.randrange(4))],
        "ownerEffects": [{}] * r.choice([0, 0, 1, 1, 1, 2]),
    }
    if one_in(r, 6):  # one attempt that nobody answered for, so that the checks 8 and 9 decide
        record["attempts"] = record["attempts"][:1]
        record["reconciliations"] = []
    if leased:
        record["leases"] = [lease(r) for _ in range(r.randrange(1, 4))]
    if one_in(r, 2):
        record["reservation"] = reserved(charged=one_in(r, 3))
        record["reservation"]["units"] = r.choice([0, 1, Raw("-0.0"), Raw("0.1")])
    if one_in(r, 6):
        record[r.choice(["notices", "leases", "reservation"])] = None
    supported = oracle.judge(written({**record, "reported": {"outcome": "unknown"}}).encode())
    honest = not one_in(r, 2 if supported.outcome == "unknown" else 5)
    record["reported"] = {"outcome": supported.outcome if honest else r.choice(OUTCOMES)}
    return record


# --- broken on purpose -------------------------------------------------------------------------

ODD: list[Any] = [
    None, True, False, "", "key-1", 0, 1, -1, [], {}, [None], Raw("-0"), Raw("1.0"), Raw("1e0"),
    Raw("9007199254740991"), Raw("9007199254740992"), Raw("1e400"), Raw("-1e-400"), Raw("NaN"),
    Raw("0.1"), Raw('"\\ud800"'), Raw('{"a": 1, "\\u0061": 2}'), Raw("01"), Raw("[1,]"),
    Raw("5e-324"), Raw("-0.0e1"), Raw('"\\u0000"'), Raw("1E400"), Raw("9" * 310), "\u202e",
    "timeout", "confirmed", "absent", "unknown", "committed", DIGEST, DIGEST.upper(), OTHER_DIGEST,
    "2024-03-01T12:00:00Z", "2024-03-01t12:00:00.5z", "2024-03-01 12:00:00Z", "2024-03-01T12:00Z",
    "2024-03-01T24:00:00Z", "2024-03-01T12:00:60Z", "2024-02-30T12:00:00Z", "2024-03-01T12:00:00",
    "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59", "0000-01-01T00:00:00Z",
    "2024-03-01T12:00:00+24:00", "2024-03-01T12:00:00+23:60", oracle.URI,
]  # fmt: skip


def pointers(value: Any, prefix: str = "") -> list[str]:
    """Return every place in a value, but the value itself."""
    below: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        below = list(value.items())
    elif isinstance(value, list):
        below = [(str(index), item) for index, item in enumerate(value)]
    places = [f"{prefix}/{name}" for name, _ in below]
    return places + [one for name, item in below for one in pointers(item, f"{prefix}/{name}")]


def edited(r: Random) -> Json:
    """Make a likely record with one to three members replaced, removed, copied or added."""
    record = likely(r)
    for _ in range(r.choice([1, 1, 1, 2, 3])):
        places = pointers(record)
        if not places:
            break
        pointer = r.choice(places)
        kind = r.choice(["replace", "replace", "remove", "add", "copy"])
        if kind == "replace":
            record = with_value(record, pointer, r.choice(ODD))
        elif kind == "remove":
            record = without(record, pointer)
        elif kind == "copy":
            holder, name = place(record, r.choice(places))
            record = with_value(record, pointer, holder[name])
        else:
            holder, _ = place(record, pointer)
            if isinstance(holder, dict):
                name = r.choice(["x", "contractID", "final", "worker", "attempt "])
                holder.setdefault(name, r.choice(ODD))
    return record


IDENTITY = re.compile(r"/(operation|attempts/[0-9]+)/(idempotencyKey|argsDigest)")


def anonymous(r: Random) -> Json:
    """Make a record that fails one of the checks 1 to 3, whatever else may be wrong in it."""
    record = edited(r) if one_in(r, 3) else likely(r)
    kind = r.choice(["no contract", "another", "identity", "identity"])
    places = [pointer for pointer in pointers(record) if IDENTITY.fullmatch(pointer)]
    if kind == "no contract":
        record.pop("contractId", None)
    elif kind == "another":
        record["contractId"] = r.choice(ODD)
    elif places:
        pointer = r.choice(places)
        removed = one_in(r, 2)
        lack = r.choice([None, ""])
        record = without(record, pointer) if removed else with_value(record, pointer, lack)
    return record


# --- spelling ----------------------------------------------------------------------------------


def respelled(value: Any, r: Random) -> str:
    """Write a value in another of its spellings: order, white space, escapes."""
    space = r.choice(["", "", " ", "\n\t", "\r\n"])
    if isinstance(value, dict):
        names = list(value)
        if one_in(r, 3):
            r.shuffle(names)
        members = [f"{text(name, r)}{space}:{respelled(value[name], r)}" for name in names]
        return "{" + f",{space}".join(members) + space + "}"
    if isinstance(value, list):
        return "[" + space + f",{space}".join(respelled(one, r) for one in value) + "]"
    if isinstance(value, str) and not isinstance(value, Raw):
        return text(value, r)
    return written(value)


def text(value: str, r: Random) -> str:
    plain = json.dumps(value, ensure_ascii=one_in(r, 2))
    if value and plain == f'"{value}"' and one_in(r, 8):
        index = r.randrange(len(value))
        return f'"{value[:index]}\\u{ord(value[index]):04x}{value[index + 1 :]}"'
    return plain


def spelled(record: Json, r: Random) -> bytes:
    return (respelled(record, r) if one_in(r, 3) else written(record)).encode()


# --- bytes -------------------------------------------------------------------------------------

SCRAPS = [
    b"", b"", b"NaN", b"-", b"0", b"1e999", b".5", b"E1", b'"', b"\\", b"\\u0061", b"\\ud800", b",",
    b":", b"{", b"}", b"[", b"]", b"[[[[", b" ", b"\n", b"\x00", b"\x0b", b"\xff", b"\xc0\x80",
    b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xc2\xa0", b"\xef\xbc\x91", b"null", b"true", b"/**/",
    b'"contractId": 1, ', b'"x": 1, ', b'"x": {"x": 1}, ', b"Z", b"z", b"+", b"T", b"k",
]  # fmt: skip


def scratched(r: Random) -> bytes:
    """Make the bytes of a record with one or two places overwritten."""
    data = spelled(likely(r), r)
    for _ in range(r.choice([1, 1, 2])):
        start = r.randrange(len(data) + 1)
        length = r.choice([0, 0, 1, 2, 9, 60])
        data = data[:start] + r.choice(SCRAPS) + data[start + length :]
    return data


def soup(r: Random) -> bytes:
    """Make what may not even begin like a record."""
    pieces = [*SCRAPS, b'"a": ', b"{}", b"[]", bytes([r.randrange(256)])]
    return b"".join(r.choice(pieces) for _ in range(r.randrange(12)))


def anything(r: Random) -> bytes:
    kind = r.randrange(20)
    if kind < 11:
        return spelled(likely(r), r)
    if kind < 15:
        return spelled(edited(r), r)
    if kind < 17:
        return spelled(anonymous(r), r)
    return scratched(r) if kind < 19 else soup(r)
