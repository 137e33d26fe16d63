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
from .governing import Desk, commands_of, grant_in, money
from .governing import opened as governed

if TYPE_CHECKING:
    from collections.abc import Callable
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


# --- a copy that ends in the middle of an operation ----------------------------------------------


def half_way(path: Path, service: Service, effect: cf.Effect[..., object]) -> None:
    """Leave attempt 1 of o-1 answered and stored, attempt 2 at the owner and forgotten."""
    service.answers = [RuntimeError("away")] * 9
    with opened(path) as book:
        assert book.perform(effect, "o-1", patience="1ms").status == "unknown"
    service.answers = []
    copy(path, path.with_name("backup"))
    with opened(path) as book:
        book.perform(effect, "o-1")
    restore(path, path.with_name("backup"))


KINDS = {
    "lost": ("lose before", {"final_by": "answer"}),
    "settles": ("lose before", {"final_by": "answer", "settles_within": "1ms"}),
    "deduplicates": ("lose before", {"deduplicates": True, "key_retention": "forever"}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_an_operation_that_is_known_and_was_sent_again_since_is_asked_about_first(
    tmp_path: Path, service: Service, kind: str
) -> None:
    path = tmp_path / "e.db"
    first, promises = KINDS[kind]
    service.script = [first]
    effect = declare(service, **promises)
    half_way(path, service, effect)
    assert (service.count, len(service.calls)) == (1, 2)
    with opened(path) as book:
        outcome = book.resume("o-1")
        assert (outcome.status, outcome.why.code) == ("committed", "found_at_owner")
        assert (service.count, len(service.calls)) == (1, 2)
        assert all(judged_allowed(book))


def test_what_was_recorded_and_never_sent_is_asked_about_first_too(
    tmp_path: Path, service: Service
) -> None:
    path = tmp_path / "e.db"
    effect = declare(service, final_by="answer", knows_keys=False)
    service.answers = [RuntimeError("away")]
    with opened(path) as book:
        assert book.perform(effect, "o-1", patience="1ms").attempts == 0
    copy(path, tmp_path / "backup")
    with opened(path) as book:
        assert book.perform(effect, "o-1").status == "committed"
    restore(path, tmp_path / "backup")
    with opened(path) as book:
        look = book.people.look("o-1")
        with pytest.raises(cf.Refused, match="forgotten"):
            book.people.cancel(look, by="ops@example.com", evidence="INC-204")
        assert book.perform(effect, "o-1").status == "committed"
    assert len(service.calls) == 1


class InTime:
    """An owner that holds its deadline by itself, as an HTTP client does."""

    bounds_calls, deadline_s = True, 1.0

    def __init__(self, service: Service) -> None:
        self.service = service

    def execute(self, _operation: cf.Operation, attempt: cf.Attempt) -> object:
        return self.service.call(attempt)

    def reconcile(self, _operation: cf.Operation, attempt: cf.Attempt) -> object:
        return self.service.find(attempt)


@pytest.mark.parametrize(("forgot", "calls"), [(False, 2), (True, 1)])
def test_a_window_of_retention_is_never_counted_from_a_dispatch_that_is_only_supposed(
    tmp_path: Path, service: Service, *, forgot: bool, calls: int
) -> None:
    path = tmp_path / "e.db"
    window = {"key_retention": "24h", "sender_pause_max": "1m", "settles_within": "1m"}
    owner = cf.Owner("service", deduplicates=True, **window)  # type: ignore[arg-type]
    effect = cf.effect("change", owner=owner)(InTime(service))
    service.script, service.answers = ["lose before"], [cf.absent(), cf.absent()]
    opened(path).close()
    copy(path, tmp_path / "backup")
    with opened(path) as book:
        book.perform(effect, "o-1", patience="1ms")
    if forgot:
        restore(path, tmp_path / "backup")
        service.answers = [cf.absent()] * 9
    with opened(path) as book:
        book.perform(effect, "o-1")
    assert len(service.calls) == calls


def test_each_gap_is_supposed_once_and_a_second_copy_is_found_out_too(
    tmp_path: Path, service: Service
) -> None:
    path = tmp_path / "e.db"
    service.script = ["lose before"]
    effect = declare(service, final_by="answer")
    half_way(path, service, effect)
    service.answers = [RuntimeError("away")] * 9
    with opened(path) as book:
        first = book.store.suspect
        for _ in range(3):
            assert book.resume("o-1", patience="1ms").status == "unknown"
        assert supposed(book) == 1
    restore(path, tmp_path / "backup")
    with opened(path) as book:
        assert book.store.suspect not in (None, first)
        assert book.resume("o-1", patience="1ms").status == "unknown"
        assert supposed(book) == 1
    service.answers = []
    with opened(path) as book:
        assert book.resume("o-1").status == "committed"
        assert all(judged_allowed(book))
    assert len(service.calls) == 2


def test_whoever_was_excluded_for_an_earlier_gap_is_not_for_the_next(
    tmp_path: Path, service: Service
) -> None:
    path = tmp_path / "e.db"
    service.script = ["lose before"]
    effect = declare(service, final_by="answer")
    half_way(path, service, effect)
    service.answers = [RuntimeError("away")] * 9
    with opened(path) as book:
        book.resume("o-1", patience="1ms")
    copy(path, tmp_path / "backup")
    with opened(path) as book:
        book.perform(effect, "o-2", patience="1ms")
    restore(path, tmp_path / "backup")
    service.answers, service.effects = [], {}
    with opened(path), opened(path) as book:
        outcome = book.resume("o-1")
        assert (outcome.status, outcome.why.code) == ("unknown", "sender_may_still_send")
    with opened(path) as book:
        assert supposed(book) == 2
        assert book.resume("o-1").status == "committed"


def test_a_mission_holds_once_what_may_have_been_sent_twice(tmp_path: Path) -> None:
    path, desk = tmp_path / "e.db", Desk(script=["lose before", "commit:4"], answers=False)
    change = desk.declare(final_by="answer")
    options = {"resource": "doc", "reserve": "10", "patience": "1ms"}
    with governed(path) as book:
        book.perform(change, "o-1", under=grant_in(book), **options)
        assert money(book) == ("0", "10")
    copy(path, tmp_path / "backup")
    desk.answers = True
    with governed(path) as book:
        assert book.resume("o-1").status == "committed"
        assert money(book) == ("4", "0")
    restore(path, tmp_path / "backup")
    desk.answers = False
    with governed(path) as book:
        assert book.resume("o-1", patience="1ms").status == "unknown"
        assert money(book) == ("0", "10")
        assert "retry" not in commands_of(book)
        desk.answers = True
        assert book.resume("o-1").status == "committed"
        assert money(book) == ("4", "0")
    assert len(desk.calls) == 2


def test_a_store_from_before_it_was_found_out_is_found_out_by_the_mark_in_the_witness(
    restored: tuple[Path, cf.Effect[..., object]], service: Service
) -> None:
    path, _ = restored
    with opened(path) as book:
        assert book.store.suspect
    restore(path, path.with_name("backup"))
    with opened(path) as book:
        assert "does not know that itself" in str(book.store.suspect)


def test_two_processes_that_open_a_suspect_store_agree_on_why(
    restored: tuple[Path, cf.Effect[..., object]], service: Service
) -> None:
    path, _ = restored
    with opened(path) as one, opened(path) as other:
        assert one.store.suspect is not None
        assert one.store.suspect == other.store.suspect


def test_a_persons_absent_answer_is_no_more_believed_than_ours(
    tmp_path: Path, service: Service
) -> None:
    path = tmp_path / "e.db"
    service.script = ["lose before"]
    effect = declare(service, final_by="answer")
    half_way(path, service, effect)
    with opened(path) as book:
        look = book.people.look("o-1")
        word = {"by": "ops@example.com", "evidence": "their mail of today"}
        outcome = book.people.relay(look, cf.absent(final=True), **word)
        assert outcome.status == "unknown"
        assert supposed(book) == 1
        look = book.people.look("o-1")
        found = book.people.relay(look, cf.present({}, effect_id="e-1"), **word)
        assert found.status == "committed"
        assert all(judged_allowed(book))


def test_what_is_settled_stays_so_and_opening_it_again_asks_first(
    tmp_path: Path, service: Service
) -> None:
    path = tmp_path / "e.db"
    service.script = ["refuse"]
    effect = declare(service, final_by="answer")
    with opened(path) as book:
        assert book.perform(effect, "o-1").status == "not_run"
    copy(path, tmp_path / "backup")
    with opened(path) as book:
        assert book.retry("o-1").status == "committed"
    restore(path, tmp_path / "backup")
    with opened(path) as book:
        assert book.perform(effect, "o-1").replayed
        assert book.retry("o-1").status == "committed"
    assert (service.count, len(service.calls)) == (1, 2)


def supposed(book: cf.Book) -> int:
    history = book.store.load(book.stream("o-1", "default"))
    assert history is not None
    return len(history.attempts) - len(history.sent)


def judged_allowed(book: cf.Book) -> list[bool]:
    texts = lines(book.store, "default", None, ())
    return [getattr(judge_bytes(text.encode()), "decision", None) == "allow" for text in texts]


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


# --- a copy that is put in place while the database is open --------------------------------------


def put_back(path: Path, backup: Path) -> None:
    restore(path, backup)


def overwrite(path: Path, backup: Path) -> None:
    path.write_bytes((backup / path.name).read_bytes())
    for end in ("-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def remove(path: Path, _backup: Path) -> None:
    path.unlink()


REPLACED = pytest.mark.parametrize("replace", [put_back, overwrite, remove])


@REPLACED
def test_nothing_is_sent_from_a_database_that_was_replaced_while_it_was_open(
    tmp_path: Path, service: Service, replace: Callable[[Path, Path], None]
) -> None:
    path = tmp_path / "e.db"
    effect = declare(service)
    opened(path).close()
    copy(path, tmp_path / "backup")
    with opened(path) as book:
        book.perform(effect, "o-1")
        witness = path.with_name("e.db.witness")
        seen = witness.read_text()
        replace(path, tmp_path / "backup")
        with pytest.raises(cf.StoreError):
            book.perform(effect, "o-2")
    assert len(service.calls) == 1
    assert witness.read_text() == seen


@REPLACED
def test_an_effect_whose_database_was_replaced_during_the_call_is_unknown(
    tmp_path: Path, service: Service, replace: Callable[[Path, Path], None]
) -> None:
    path = tmp_path / "e.db"
    owner = cf.Owner("service", deduplicates=True, key_retention="forever")
    opened(path).close()
    copy(path, tmp_path / "backup")

    @cf.effect("replacing", owner=owner)
    def replacing(attempt: cf.Attempt) -> object:
        replace(path, tmp_path / "backup")
        return service.call(attempt)

    with opened(path) as book:
        outcome = book.perform(replacing, "o-1")
        assert (outcome.status, outcome.why.code) == ("unknown", "store_failed")
    assert len(service.calls) == 1
