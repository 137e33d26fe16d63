"""Databases that cannot be used, through the public face: one line, the right class, nothing sent,
and what lies there is left as it was."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import apsw
import pytest
from crash_child import Task
from crash_owner import CrashOwner

import counterfoil as cf
from counterfoil import errors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from crash_process import Processes

NOBODY = 65534


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def effect(calls: list[str]) -> cf.Effect[..., object]:
    @cf.effect("change", owner=cf.Owner("ledger"))
    def change(attempt: cf.Attempt, *, amount: Any = "1") -> None:
        calls.append(attempt.key)

    return change


@pytest.fixture
def sent() -> list[str]:
    """The keys under which the settled operation was sent."""
    return []


@pytest.fixture
def earlier(sent: list[str]) -> cf.Effect[..., object]:
    @cf.effect("earlier", owner=cf.Owner("ledger"))
    def earlier(attempt: cf.Attempt) -> dict[str, str]:
        sent.append(attempt.key)
        return {"id": "e-1"}

    return earlier


@pytest.fixture
def database(tmp_path: Path, earlier: cf.Effect[..., object]) -> Path:
    """A database with one settled operation."""
    path = tmp_path / "effects.db"
    with cf.open(path, create=True) as book:
        book.perform(earlier, "settled")
    return path


def refused(raised: type[cf.CounterfoilError], act: Callable[[], object]) -> str:
    """Return the message of the error that ``act`` must raise: exactly that class, one line."""
    with pytest.raises(cf.CounterfoilError) as caught:
        act()
    assert type(caught.value) is raised, repr(caught.value)
    message = str(caught.value)
    assert message
    assert message.isprintable(), message
    return message


def open_and_perform(path: Path | str, effect: cf.Effect[..., object], **options: Any) -> None:
    with cf.open(path, **options) as book:
        book.perform(effect, "new", amount="1")


# --- where the database lies ---------------------------------------------------------------------


def test_a_database_that_was_not_created_is_not_made_by_the_way(
    tmp_path: Path, effect: cf.Effect[..., object], calls: list[str]
) -> None:
    message = refused(
        errors.StoreNotFound, lambda: open_and_perform(tmp_path / "effects.db", effect)
    )
    assert "create=True" in message
    assert list(tmp_path.iterdir()) == []
    assert not calls


def test_a_folder_that_is_not_there_is_not_made(
    tmp_path: Path, effect: cf.Effect[..., object]
) -> None:
    path = tmp_path / "nowhere" / "effects.db"
    refused(errors.StoreNotFound, lambda: open_and_perform(path, effect, create=True))
    assert list(tmp_path.iterdir()) == []


def make_folder(path: Path) -> None:
    path.mkdir()


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_dangling_link(path: Path) -> None:
    path.symlink_to(path.with_name("gone"))


def make_empty(path: Path) -> None:
    path.touch()


def make_text(path: Path) -> None:
    path.write_text("no database at all\n" * 400)


def make_other_database(path: Path) -> None:
    with apsw.Connection(str(path)) as db:
        db.execute("CREATE TABLE theirs (x)")


@pytest.mark.parametrize(
    ("make", "create", "raised"),
    [
        (make_folder, False, errors.StoreCorrupt),
        (make_folder, True, errors.StoreCorrupt),
        (make_pipe, True, errors.StoreCorrupt),
        (make_dangling_link, True, errors.StoreNotFound),
        (make_empty, False, errors.StoreCorrupt),
        (make_text, False, errors.StoreCorrupt),
        (make_text, True, errors.StoreCorrupt),
        (make_other_database, False, errors.StoreCorrupt),
        (make_other_database, True, errors.StoreCorrupt),
    ],
)
def test_what_is_no_database_of_ours_is_refused_and_left_as_it_was(
    tmp_path: Path,
    effect: cf.Effect[..., object],
    calls: list[str],
    make: Callable[[Path], None],
    create: bool,
    raised: type[cf.CounterfoilError],
) -> None:
    path = tmp_path / "effects.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    message = refused(raised, lambda: open_and_perform(path, effect, create=create))
    assert str(path) in message
    assert (path.read_bytes() if path.is_file() else None) == before
    assert [each.name for each in tmp_path.iterdir()] == ["effects.db"]
    assert not calls


@pytest.mark.parametrize("name", ["x" * 300, "nul\0.db"], ids=["too long", "with a NUL"])
def test_a_name_that_no_file_can_have_is_refused(
    tmp_path: Path, effect: cf.Effect[..., object], name: str
) -> None:
    with pytest.raises(cf.CounterfoilError) as caught:
        open_and_perform(tmp_path / name, effect, create=True)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "name",
    [
        "share",
        "shared folder",
        "données",
    ],
    ids=ascii,
)
def test_a_database_on_a_network_file_system_is_refused(
    tmp_path: Path, effect: cf.Effect[..., object], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    folder = tmp_path / name
    folder.mkdir()
    point = str(folder).replace(" ", "\\040")
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        f"1 0 8:1 / / rw - ext4 /dev/a rw\n2 1 0:9 / {point} rw - nfs4 host:/ rw\n", "utf-8"
    )
    monkeypatch.setattr("counterfoil.store.file_checks.MOUNTS", mounts)
    path = folder / "effects.db"
    message = refused(errors.StoreUnsafe, lambda: open_and_perform(path, effect, create=True))
    assert "nfs4" in message
    assert not path.exists()


# --- what is in it -------------------------------------------------------------------------------


def flip(path: Path, offset: int, count: int) -> None:
    data = bytearray(path.read_bytes())
    for place in range(offset, offset + count):
        data[place] ^= 0xFF
    path.write_bytes(data)


def root_page_of(path: Path, table: str) -> int:
    db = apsw.Connection(str(path))
    found = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get
    db.close()
    return int(found)


@pytest.mark.parametrize(
    ("offset", "count"),
    [(0, 16), (16, 2), (18, 2), (68, 4), (100, 8)],
    ids=["magic", "page size", "format versions", "application id", "schema page"],
)
def test_a_damaged_header_is_refused(
    database: Path, effect: cf.Effect[..., object], calls: list[str], offset: int, count: int
) -> None:
    flip(database, offset, count)
    with pytest.raises(errors.StoreError) as caught:
        open_and_perform(database, effect, create=True)
    assert str(caught.value).isprintable()
    assert not calls


@pytest.mark.parametrize("table", ["store", "operations", "log"])
def test_a_damaged_page_is_refused_before_anything_is_sent(
    database: Path, effect: cf.Effect[..., object], calls: list[str], table: str
) -> None:
    flip(database, (root_page_of(database, table) - 1) * 4096, 8)
    with pytest.raises(errors.StoreError) as caught:
        open_and_perform(database, effect)
    assert str(caught.value).isprintable()
    assert not calls


def flip_in_page(path: Path, table: str, text: bytes) -> None:
    """Flip one bit of the last byte of a text, in a table's or index's page."""
    start = (root_page_of(path, table) - 1) * 4096
    found = path.read_bytes().index(text, start, start + 4096) + len(text) - 1
    data = bytearray(path.read_bytes())
    data[found] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "text", [b'{"outcome":"committed', b'{"outcome', b'"kind":"confirmed', b'"e-1', b"settled"]
)
def test_a_damaged_event_is_refused_and_never_answered_from(
    database: Path, effect: cf.Effect[..., object], text: bytes
) -> None:
    flip_in_page(database, "log", text)
    with cf.open(database) as book:
        refused(errors.StoreCorrupt, lambda: book.outcome("settled"))


def test_an_operation_that_the_index_lost_is_not_taken_for_a_new_one(
    database: Path, earlier: cf.Effect[..., object], sent: list[str]
) -> None:
    flip_in_page(database, "sqlite_autoindex_operations_1", b"defaultsettled")
    with cf.open(database) as book:
        refused(errors.StoreCorrupt, lambda: book.perform(earlier, "settled"))
    assert len(sent) == 1


@pytest.mark.parametrize("cut", [4096, 8192])
def test_a_database_that_lost_its_end_is_refused_before_anything_is_sent(
    database: Path, effect: cf.Effect[..., object], calls: list[str], cut: int
) -> None:
    data = database.read_bytes()
    database.write_bytes(data[:-cut])
    with pytest.raises(errors.StoreError) as caught:
        open_and_perform(database, effect)
    assert str(caught.value).isprintable()
    assert not calls


def test_a_database_of_a_later_program_is_refused(
    database: Path, effect: cf.Effect[..., object], calls: list[str]
) -> None:
    with apsw.Connection(str(database)) as db:
        db.execute("UPDATE store SET least_writer = 9")
        db.execute("PRAGMA user_version = 9")
    message = refused(errors.StoreTooNew, lambda: open_and_perform(database, effect))
    assert "upgrade" in message
    assert not calls


def test_a_later_schema_that_this_program_may_still_write_is_used(
    database: Path, effect: cf.Effect[..., object], calls: list[str]
) -> None:
    with apsw.Connection(str(database)) as db:
        db.execute("PRAGMA user_version = 9")
    open_and_perform(database, effect)
    assert len(calls) == 1


# --- what the system allows ----------------------------------------------------------------------


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_database_that_cannot_be_written_is_refused(
    processes: Processes, folder: Path, what: str
) -> None:
    path = folder / "effects.db"
    cf.open(path, create=True).close()
    path.chmod(0o444 if what == "file" else 0o666)  # the process is another user's
    folder.chmod(0o777 if what == "file" else 0o555)
    with CrashOwner() as owner:
        ended = processes.run(Task(str(path), owner.url, uid=NOBODY))
        assert not owner.posts
    assert (ended.status, ended.error["error"]) == (3, "StoreUnwritable")
    assert str(path if what == "file" else folder) in ended.error["text"]


def test_a_full_disk_stores_nothing_and_sends_nothing(processes: Processes, tmp_path: Path) -> None:
    path = tmp_path / "effects.db"
    cf.open(path, create=True).close()
    with CrashOwner() as owner:
        full = Task(str(path), owner.url, file_bytes_max=33_000, operations=("o-1", "o-2", "o-3"))
        ended = processes.run(full)
        assert (ended.status, ended.error["error"]) == (3, "StoreFailed")
        sent = len(owner.posts)
        assert sent < 3
        finished = processes.run(Task(str(path), owner.url, operations=full.operations))
    assert [said["outcome"] for said in finished.outcomes] == ["committed"] * 3
    assert set(owner.effects.values()) == {1}


def test_a_database_that_may_not_grow_refuses_new_work_until_it_is_opened_anew(
    database: Path, effect: cf.Effect[..., object], calls: list[str]
) -> None:
    def limit(connection: apsw.Connection) -> None:
        connection.execute("PRAGMA max_page_count = 1")

    apsw.connection_hooks.append(limit)
    try:
        with cf.open(database) as book:
            big = "x" * 50_000
            refused(errors.StoreFailed, lambda: book.perform(effect, "new", amount=big))
            refused(errors.StoreFailed, lambda: book.perform(effect, "small", amount="1"))
            assert not calls
    finally:
        apsw.connection_hooks.remove(limit)
    open_and_perform(database, effect)
    assert len(calls) == 1


def test_processes_that_create_one_database_at_once_share_it(
    processes: Processes, folder: Path
) -> None:
    path = folder / "effects.db"
    with CrashOwner() as owner:
        pids = [
            processes.start(
                Task(str(path), owner.url, operations=(f"o-{n}",), create=True, stopped=True)
            )
            for n in range(4)
        ]
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        outcomes = [processes.wait(pid).outcome["outcome"] for pid in pids]
    assert outcomes == ["committed"] * 4
    assert sorted(owner.effects.values()) == [1, 1, 1, 1]
