"""A store that forgot: found out by the witness, named by the audit, and asked about first."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import apsw
import pytest

import counterfoil as cf
from counterfoil.coordinator.audit import audit
from counterfoil.coordinator.export import lines
from counterfoil.reader.verdict import judge_bytes
from counterfoil.store.sqlite import SqliteStore
from counterfoil.store.witness import Witness

from .conftest import Service, declare

if TYPE_CHECKING:
    from pathlib import Path


def opened(path: Path, **options: object) -> cf.Book:
    return cf.open(path, create=True, patience=0.3, **options)  # type: ignore[arg-type]


def copy(path: Path, to: Path) -> None:
    to.mkdir(exist_ok=True)
    for each in path.parent.glob(path.name + "*"):
        if each.is_file() and not each.name.endswith(("witness", "lock")):
            shutil.copy(each, to / each.name)


def restore(path: Path, backup: Path) -> None:
    """Put an older copy of the database back beside its witness."""
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    for each in backup.iterdir():
        shutil.copy(each, path.parent / each.name)


def codes(path: Path) -> list[str]:
    store = SqliteStore(
        path,
        create=False,
        now_us=lambda: 1,
        witness=Witness(path.with_name(path.name + ".witness")),
    )
    try:
        return [fault.code for fault in audit(store)]
    finally:
        store.close()


@pytest.fixture
def restored(tmp_path: Path, service: Service) -> tuple[Path, cf.Effect[..., object]]:
    """A database that was restored to before operation o-2, which the owner committed."""
    path = tmp_path / "e.db"
    effect = declare(service, final_by="answer")
    with opened(path) as book:
        book.perform(effect, "o-1")
    copy(path, tmp_path / "backup")
    with opened(path) as book:
        book.perform(effect, "o-2")
    restore(path, tmp_path / "backup")
    return path, effect


def test_an_older_copy_is_found_out_and_a_forgotten_operation_is_asked_about_first(
    restored: tuple[Path, cf.Effect[..., object]], service: Service
) -> None:
    path, effect = restored
    with opened(path) as book:
        outcome = book.perform(effect, "o-2")
        assert (outcome.status, outcome.why.code) == ("committed", "found_at_owner")
        assert (service.count, len(service.calls)) == (2, 2)
        for text in lines(book.store, "default", None, ()):
            assert getattr(judge_bytes(text.encode()), "decision", None) == "allow"
    assert "forgotten" in codes(path)


def test_an_operation_that_is_really_new_is_sent_once_the_owner_says_finally_absent(
    restored: tuple[Path, cf.Effect[..., object]], service: Service
) -> None:
    path, effect = restored
    with opened(path) as book:
        outcome = book.perform(effect, "o-3")
        assert outcome.status == "committed"
        assert service.questions >= 1
        (text,) = lines(book.store, "default", None, ("o-3",))
        assert getattr(judge_bytes(text.encode()), "decision", None) == "allow"


def test_without_proof_that_every_earlier_worker_is_dead_nothing_is_sent(
    restored: tuple[Path, cf.Effect[..., object]], service: Service
) -> None:
    path, effect = restored
    with opened(path) as alive, opened(path) as book:
        alive.perform(effect, "o-1")
        outcome = book.perform(effect, "o-3")
        assert (outcome.status, outcome.why.code) == ("unknown", "sender_may_still_send")
    assert len(service.calls) == 2


def test_a_gap_that_a_person_accepts_is_suspect_no_more(
    restored: tuple[Path, cf.Effect[..., object]], service: Service
) -> None:
    path, effect = restored
    with opened(path) as book:
        book.store.accept_gap("ops@example.com", "INC-204")
        assert book.perform(effect, "o-3").status == "committed"
        assert service.questions == 0
    assert codes(path) == []


def test_a_new_database_beside_an_old_witness_is_suspect(tmp_path: Path, service: Service) -> None:
    path = tmp_path / "e.db"
    effect = declare(service, final_by="answer")
    with opened(path) as book:
        book.perform(effect, "o-1")
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)
    with opened(path) as book:
        outcome = book.perform(effect, "o-1")
        assert (outcome.status, outcome.why.code) == ("committed", "found_at_owner")
    assert service.count == 1


def test_a_database_that_forgot_nothing_is_not_suspect(tmp_path: Path, service: Service) -> None:
    path = tmp_path / "e.db"
    effect = declare(service)
    for number in range(3):
        with opened(path, witness="each") as book:
            book.perform(effect, f"o-{number}")
            assert book.store.suspect is None
    assert codes(path) == []


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("UPDATE log SET payload = replace(payload, 'first_attempt', 'other_attempt')",
         "payload_changed"),
        ("UPDATE log SET at_us = at_us - 1 WHERE seq = 3", "entry_changed"),
        ("UPDATE log SET chained = zeroblob(32) WHERE seq = 3", "entry_changed"),
        ("DELETE FROM log WHERE seq = 3", "entry_dropped"),
        ("UPDATE log SET n = 9 WHERE seq = 4", "entry_reordered"),
        ("UPDATE log SET operation = 2, n = 9 WHERE seq = 4", "entry_changed"),
        ("DELETE FROM log WHERE seq > 6", "forgotten"),
        ("UPDATE operations SET status = 'unknown' WHERE id = 1", "row_disagrees"),
    ],
)  # fmt: skip
def test_what_was_done_to_a_log_is_named(
    tmp_path: Path, service: Service, statement: str, code: str
) -> None:
    path = tmp_path / "e.db"
    effect = declare(service)
    with opened(path) as book:
        book.perform(effect, "o-1", amount="1")
        book.perform(effect, "o-2", amount="1")
    with apsw.Connection(str(path)) as db:
        db.execute("PRAGMA foreign_keys = off")
        db.execute(statement)
    assert code in codes(path)


def test_a_flipped_bit_is_found_out(tmp_path: Path, service: Service) -> None:
    path = tmp_path / "e.db"
    effect = declare(service)
    with opened(path) as book:
        book.perform(effect, "o-1", note="a note that is easily found")
    with apsw.Connection(str(path)) as db:
        db.pragma("wal_checkpoint(TRUNCATE)")
    data = bytearray(path.read_bytes())
    place = data.index(b"easily found")
    data[place] ^= 1
    path.write_bytes(data)
    assert codes(path) == ["payload_changed"]


def test_a_witness_that_its_key_did_not_sign_is_not_believed(
    tmp_path: Path, service: Service
) -> None:
    import base64

    path, key = tmp_path / "e.db", tmp_path / "key"
    key.write_text(base64.b64encode(bytes(range(32))).decode())
    effect = declare(service)
    with opened(path, witness_key=key) as book:
        book.perform(effect, "o-1")
    with opened(path, witness_key=key) as book:
        assert book.store.suspect is None
    witness = path.with_name("e.db.witness")
    witness.write_text(witness.read_text().replace('"seq": 4', '"seq": 3'))
    with opened(path, witness_key=key) as book:
        assert "not signed" in str(book.store.suspect)
