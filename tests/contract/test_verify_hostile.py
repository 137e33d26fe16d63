"""Text that comes from a record or a file name stays inert on the terminal."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest

from .trails import OTHER_DIGEST, Json, attempt, found, full, record, said, two, with_value, written
from .verify_process import verify, write

if TYPE_CHECKING:
    from pathlib import Path

ALLOWED = said(full())
MALFORMED = said(with_value(full(), "/attempts/0/dispatchedAt", "noon"))

HOSTILE = "\x1b[2J\x1b]0;owned\x07\r\n\x08\x00\x9b31m\u202e\u2066\u200b\u2028\u0085\ufeff\x7f allow"
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")


def hostile() -> Json:
    """Return a record whose every free text tries to act on a terminal."""
    sent = {"worker": "WORKER", "fencingToken": 1}
    lease = {**sent, "acquiredAt": "2025-01-01T00:00:00Z", "expiresAt": "2026-01-01T00:00:00Z"}
    text = written(
        record(
            [
                attempt(1, 0, "timeout", **sent),
                attempt(2, 10, "confirmed", **sent, argsDigest=OTHER_DIGEST),
            ],
            "committed",
            leases=[lease],
            reconciliations=[found("present", 5), found("absent", 6, key="KEYED")],
            notices=[{"from": "NOTICE", "kind": "NOTICE"}],
        )
    )
    for word in ("owner-1", "operation-1", "charge", "WORKER", "KEYED", "NOTICE", "key-1"):
        text = text.replace(f'"{word}"', json.dumps(HOSTILE + word))
    hostile_record: Json = json.loads(text)
    return hostile_record


def hostile_records() -> dict[str, Json]:
    denied = hostile()
    digest = denied["operation"]["argsDigest"]
    settled = {**hostile(), "attempts": hostile()["attempts"][:1]}
    return {
        "denied by check 4": denied,
        "denied by check 6": with_value(denied, "/attempts/1/argsDigest", digest),
        "allowed": settled,
        "another contract": {**denied, HOSTILE: 1, "contractId": HOSTILE},
        "a word": with_value(denied, "/attempts/0/reply", HOSTILE),
        "a time": with_value(denied, "/attempts/0/dispatchedAt", HOSTILE),
        "a digest": with_value(denied, "/operation/argsDigest", HOSTILE),
        "a type": with_value(denied, "/attempts/0/fencingToken", HOSTILE),
    }


@pytest.mark.parametrize("name", hostile_records())
def test_text_from_a_record_never_acts_on_the_terminal(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "record.json", said(hostile_records()[name]))
    for options in ((), ("--explain",), ("--explain", "--json")):
        run = verify(path, *options)
        shown = run.out.decode()
        assert UNSAFE.search(shown) is None, shown
        assert run.err == b""
        assert shown.endswith("\n")
    assert len(verify(path).out.splitlines()) == 1


NAME = json.dumps(HOSTILE).encode()
BAD_NAMES = {
    "the name twice": ALLOWED[:-1] + (b", " + NAME + b": 1") * 2 + b"}",
    "a lone surrogate below it": ALLOWED[:-1] + b", " + NAME + b': ["\\ud800"]}',
    "a number too large below it": ALLOWED[:-1] + b", " + NAME + b": {" + NAME + b": 1e999}}",
    "raw bytes": b"\x1b[2J\r" + ALLOWED,
    "raw bytes in a string": ALLOWED.replace(b"owner-1", b"\x1b[2J"),
}


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_hostile_name_in_a_pointer_never_acts_on_the_terminal(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "record.json", BAD_NAMES[name])
    for options in ((), ("--json",), ("--explain",)):
        run = verify(path, *options)
        assert UNSAFE.search(run.out.decode()) is None, run
        assert len(run.out.splitlines()) == 1


@pytest.mark.parametrize(
    "data", [ALLOWED, MALFORMED, None], ids=["allowed", "malformed", "missing"]
)
def test_a_hostile_file_name_never_acts_on_the_terminal(tmp_path: Path, data: bytes | None) -> None:
    name = b"\x1b[2J\n\xe2\x80\xae\xff.json"
    if data is not None:
        write(tmp_path / os.fsdecode(name), data)
    write(tmp_path / "good.json", ALLOWED)
    for options in ((), ("--json",), ("--explain",)):
        run = verify(name, "good.json", *options, cwd=tmp_path)
        shown = (run.out + run.err).decode()
        assert UNSAFE.search(shown) is None, shown
        assert run.code == (0 if data == ALLOWED else 2)


def test_a_terminal_that_speaks_only_ascii_gets_its_answer(tmp_path: Path) -> None:
    foreign = said(two(0, 10)).replace(b"key-1", "Schl\u00fcssel \u9375 \U0001f511".encode())
    path = write(tmp_path / "\u9375.json", foreign)
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii:strict"}
    for options in ((), ("--json",), ("--explain",), ("--explain", "--json")):
        run = verify(path, path, *options, environment=ascii_only)
        assert run.code == 1, run
        assert run.err == b"", run
