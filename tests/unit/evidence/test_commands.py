"""``keygen`` and ``sign`` as a user runs them: files, output, exit codes, one-line errors."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from envelopes import ANN, RECORD, b64, data, record

from counterfoil.cli.keyfiles import read_keyring, read_signing_key
from counterfoil.cli.wiring import run_click
from counterfoil.errors import BadInput
from counterfoil.evidence.keyring import UnusableKey, private_line, public_line
from counterfoil.evidence.opening import Opened, open_evidence
from counterfoil.evidence.statement import chain_of, statement_of

if TYPE_CHECKING:
    from collections.abc import Callable

    Run = Callable[..., tuple[int, str, str]]

COMMANDS = {"keygen": "counterfoil.cli.keygen", "sign": "counterfoil.cli.sign"}
HEAD = "cd" * 32


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in a fresh folder; gives exit code, output and error output."""
    monkeypatch.chdir(tmp_path)

    def run_words(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["counterfoil", *words])
        capfd.readouterr()
        code = run_click(COMMANDS)
        sys.stdout.flush()
        said = capfd.readouterr()
        return code, said.out, said.err

    return run_words


@pytest.fixture
def pair(run: Run) -> Run:
    """The same, with ann.key, ann.pub and record.json in the folder."""
    assert run("keygen", ".", "--name", "ann")[0] == 0
    Path("record.json").write_bytes(RECORD)
    return run


def refused(answer: tuple[int, str, str], code: int = 2) -> str:
    """The one line that was said on the error stream."""
    exit_code, out, err = answer
    assert (exit_code, out) == (code, "")
    assert err.startswith("counterfoil: ")
    assert err.count("\n") == 1
    assert err[:-1].isprintable()
    return err


# --- keygen --------------------------------------------------------------------------------------


def test_keygen_writes_a_pair_that_only_its_owner_can_sign_with(run: Run) -> None:
    code, out, _ = run("keygen", ".")
    private, public = Path("counterfoil.key"), Path("counterfoil.pub")
    assert code == 0
    assert private.stat().st_mode & 0o777 == 0o600
    key = read_signing_key(str(private)).public
    assert read_keyring([str(public)]).keys == (key,)
    assert f"key id  {key.key_id}" in out
    assert private.read_text().split(":")[1].strip() not in out


def test_keygen_makes_another_key_each_time(run: Run) -> None:
    run("keygen", "a")
    run("keygen", "b")
    assert read_keyring(["a.pub", "b.pub"]).keys[0] != read_keyring(["b.pub"]).keys[0]


@pytest.mark.parametrize("there", ["counterfoil.key", "counterfoil.pub"])
def test_keygen_overwrites_nothing_and_leaves_no_half(run: Run, there: str) -> None:
    Path(there).write_text("mine")
    assert there in refused(run("keygen", "."))
    assert [path.name for path in Path().iterdir()] == [there]
    assert Path(there).read_text() == "mine"


@pytest.mark.parametrize(
    "words",
    [
        ("missing/key",),
        ("/dev/null/key",),
        (".", "--name", "../key"),
        (".", "--name", ".."),
        (".", "--name", ""),
        ("missing", "--name", "a"),
        ("a\0b",),
    ],
)
def test_keygen_refuses_a_place_it_cannot_use(run: Run, words: tuple[str, ...]) -> None:
    refused(run("keygen", *words))
    assert not list(Path().iterdir())


def test_keygen_says_when_the_disk_fails_and_leaves_nothing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    assert "input/output error" in refused(run("keygen", "."), 3)
    assert not list(Path().iterdir())


# --- sign ----------------------------------------------------------------------------------------


def test_sign_writes_an_envelope_a_line_that_opens_with_the_public_key(pair: Run) -> None:
    Path("more.jsonl").write_bytes(RECORD + b"\n" + data(record(note=2)) + b"\n")
    code, out, _ = pair("sign", "record.json", "more.jsonl", "--key", "ann.key")
    keyring = read_keyring(["ann.pub"])
    found = [open_evidence(line.encode(), keyring) for line in out.splitlines()]
    assert code == 0
    assert [isinstance(each, Opened) and each.signers for each in found] == [keyring.keys] * 3


def test_several_keys_sign_together(pair: Run) -> None:
    pair("keygen", "bob.key")
    _, out, _ = pair("sign", "record.json", "--key", "ann.key", "--key", "bob.key")
    keyring = read_keyring(["ann.pub", "bob.key.pub"], threshold=2)
    assert isinstance(open_evidence(out.encode(), keyring), Opened)


def test_the_chain_is_signed_with_the_record(pair: Run) -> None:
    words = ("--key", "ann.key", "--chain-head", HEAD, "--chain-count", "7")
    _, out, _ = pair("sign", "record.json", *words)
    found = open_evidence(out.encode(), read_keyring(["ann.pub"]), chain=chain_of(HEAD, 7))
    assert isinstance(found, Opened)
    assert found.complete == "proven by the chain's head at event 7"


def test_out_writes_a_file_named_by_its_payload_and_again_changes_nothing(pair: Run) -> None:
    Path("evidence").mkdir()
    words = ("sign", "record.json", "--key", "ann.key", "--out", "evidence")
    code, out, _ = pair(*words)
    (path,) = Path("evidence").iterdir()
    assert (code, out) == (0, f"{path}\n")
    assert path.name == sha256(statement_of(RECORD)).hexdigest() + ".dsse.json"
    before = path.read_bytes()
    assert isinstance(open_evidence(before, read_keyring(["ann.pub"])), Opened)
    assert pair(*words)[0] == 0
    assert path.read_bytes() == before


def test_out_does_not_overwrite_the_signatures_of_others(pair: Run) -> None:
    Path("evidence").mkdir()
    pair("keygen", "bob.key")
    pair("sign", "record.json", "--key", "ann.key", "--out", "evidence")
    (path,) = Path("evidence").iterdir()
    before = path.read_bytes()
    refused(pair("sign", "record.json", "--key", "bob.key", "--out", "evidence"))
    assert path.read_bytes() == before


def test_standard_input_is_lines_of_records(pair: Run) -> None:
    program = (
        f"from counterfoil.cli.wiring import run_click; raise SystemExit(run_click({COMMANDS}))"
    )
    command = [sys.executable, "-c", program, "sign", "-", "--key", "ann.key"]
    done = subprocess.run(
        command, input=RECORD + b"\n" + RECORD, capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr, done.stdout.count(b"\n")) == (0, b"", 2)


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"", "bad.jsonl: holds no record"),
        (RECORD + b"\n\n", "bad.jsonl:2: malformed"),
        (b"{}\n", "bad.jsonl:1: malformed /contractId"),
        (data(record(reported=None)), "bad.jsonl:1: malformed /reported"),
        (data({**record(), "\x1b[31m": 2**60}), "bad.jsonl:1: /\\\\u001b[31m: an integer beyond"),
    ],
)
def test_a_record_that_cannot_be_signed_is_named(pair: Run, content: bytes, place: str) -> None:
    Path("bad.jsonl").write_bytes(content)
    code, _, err = pair("sign", "bad.jsonl", "--key", "ann.key")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith(f"counterfoil: {place.replace(chr(92) * 2, chr(92))}")


def test_a_record_that_cannot_be_read_is_named(pair: Run) -> None:
    assert "missing.json" in refused(pair("sign", "missing.json", "--key", "ann.key"))
    refused(pair("sign", ".", "--key", "ann.key"))


@pytest.mark.parametrize(
    "words",
    [
        ("--chain-head", HEAD),
        ("--chain-count", "3"),
        ("--chain-head", HEAD.upper(), "--chain-count", "3"),
        ("--chain-head", HEAD, "--chain-count", "0"),
        ("--out", "missing"),
        ("--key", "missing.key"),
        ("--key", "ann.pub"),
        ("--key", "ann.key"),
        ("--key", "."),
    ],
)
def test_options_that_cannot_be_used_sign_nothing(pair: Run, words: tuple[str, ...]) -> None:
    refused(pair("sign", "record.json", "--key", "ann.key", *words))


def test_a_full_disk_is_no_traceback(pair: Run) -> None:
    program = (
        f"from counterfoil.cli.wiring import run_click; raise SystemExit(run_click({COMMANDS}))"
    )
    command = [sys.executable, "-c", program, "sign", "record.json", "--key", "ann.key"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert done.returncode == 3
    assert done.stderr.startswith(b"counterfoil: standard output: ")
    assert done.stderr.count(b"\n") == 1


# --- key files -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_private_key_that_others_may_read_is_not_used(pair: Run, mode: int) -> None:
    Path("ann.key").chmod(mode)
    said = refused(pair("sign", "record.json", "--key", "ann.key"))
    assert "chmod 600" in said


def test_a_private_key_that_even_its_owner_cannot_write_is_used(pair: Run) -> None:
    Path("ann.key").chmod(0o400)
    assert pair("sign", "record.json", "--key", "ann.key")[0] == 0


def test_no_message_quotes_a_private_key(pair: Run) -> None:
    secret = b64(bytes(range(32)))
    Path("bad.key").write_text(private_line(bytes(range(32))) + "x")
    Path("bad.key").chmod(0o600)
    assert secret[:16] not in refused(pair("sign", "record.json", "--key", "bad.key"))


def test_a_folder_of_public_keys_is_a_keyring(pair: Run) -> None:
    pair("keygen", ".", "--name", "bob")
    assert read_keyring(["."], 2).threshold == 2
    with pytest.raises(UnusableKey):
        read_keyring([".", "ann.pub"])


def test_key_files_that_cannot_be_used_are_named(tmp_path: Path) -> None:
    bad, empty = tmp_path / "bad.pub", tmp_path / "empty"
    bad.write_text(public_line(ANN.public) + "x" * 70_000)
    empty.mkdir()
    for path in (bad, empty, tmp_path / "missing.pub", Path("/dev/null")):
        with pytest.raises(BadInput, match=path.name):
            read_keyring([str(path)])


# --- help ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_examples_and_exit_codes(run: Run, command: str) -> None:
    code, out, _ = run(command, "--help")
    assert code == 0
    assert "Examples:" in out
    assert "Exit codes:" in out


def test_the_statement_of_the_example_is_the_one_that_is_signed(pair: Run) -> None:
    _, out, _ = pair("sign", "record.json", "--key", "ann.key")
    values = json.loads(out)
    assert values["payload"] == b64(statement_of(RECORD))
    assert values["payloadType"] == "application/vnd.in-toto+json"
