"""What a book refuses, through the public face: one line, the right class, nothing stored, nothing
sent."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import pytest

import counterfoil as cf
from counterfoil import errors

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


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
def database(tmp_path: Path, effect: cf.Effect[..., object], calls: list[str]) -> Path:
    """A database with one settled operation."""
    path = tmp_path / "effects.db"
    with cf.open(path, create=True) as book:
        book.perform(effect, "settled")
    calls.clear()
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


def stored_in(path: Path) -> int:
    """Return how many events the database holds."""
    with cf.open(path) as book:
        return sum(1 for _ in book.store.log())


# --- what is asked of it -------------------------------------------------------------------------


def nested(depth: int) -> object:
    value: object = "x"
    for _ in range(depth):
        value = [value]
    return value


def looped() -> object:
    value: list[object] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (2**53, "/amount"),
        (-(2**53), "/amount"),
        (float("nan"), "/amount"),
        (float("inf"), "/amount"),
        ("\ud800", "/amount"),
        ({"\udfff": 1}, "/amount/"),
        ({"a": [1, {2, 3}]}, "/amount/a/1"),
        ({1: "x"}, "/amount"),
        (b"bytes", "/amount"),
        (object(), "/amount"),
        (nested(100), "/amount/0/0"),
        (nested(100_000), "/amount/0/0"),
        (looped(), "/amount/0"),
        ("x" * (2 * 1024 * 1024), "whole"),
    ],
    ids=lambda value: value[:9] if isinstance(value, str) else type(value).__name__,
)
def test_arguments_that_json_cannot_carry_are_refused_by_their_place(
    database: Path, effect: cf.Effect[..., object], calls: list[str], value: object, path: str
) -> None:
    before = stored_in(database)
    with cf.open(database) as book:
        message = refused(
            errors.InvalidArguments, lambda: book.perform(effect, "new", amount=value)
        )
    assert path in message
    assert (stored_in(database), calls) == (before, [])


@pytest.mark.parametrize(
    "operation_id",
    ["", "x" * 257, "é" * 129, "a\nb", "a\0b", "a\x1b[0m", "\x7f", "\ud800", None, 7, b"o-1"],
    ids=ascii,
)
def test_an_operation_id_that_cannot_name_anything_is_refused(
    database: Path, effect: cf.Effect[..., object], calls: list[str], operation_id: Any
) -> None:
    before = stored_in(database)
    with cf.open(database) as book:
        refused(errors.InvalidOperationId, lambda: book.perform(effect, operation_id))
        refused(errors.InvalidOperationId, lambda: book.resume(operation_id))
        refused(errors.InvalidOperationId, lambda: book.outcome(operation_id))
        refused(errors.InvalidOperationId, lambda: book.retry(operation_id))
    assert (stored_in(database), calls) == (before, [])


@pytest.mark.parametrize(
    ("options", "raised"),
    [
        ({"tenant": ""}, errors.InvalidOperationId),
        ({"key": ""}, errors.BadInput),
        ({"key": "with space"}, errors.BadInput),
        ({"key": "x" * 256}, errors.BadInput),
        ({"key": "line\nend"}, errors.BadInput),
        ({"key": 7}, errors.BadInput),
        ({"reserve": "1e3"}, errors.BadInput),
        ({"reserve": 12.5}, errors.BadInput),
        ({"reserve": "-1"}, errors.BadInput),
        ({"reserve": "1\n2"}, errors.BadInput),
        ({"patience": "soon"}, errors.InvalidPromise),
        ({"patience": 0}, errors.InvalidPromise),
        ({"patience": float("nan")}, errors.InvalidPromise),
        ({"preconditions": {"revision": 2**60}}, errors.InvalidArguments),
        ({"preconditions": ["revision"]}, errors.BadInput),
        ({"preconditions": "revision"}, errors.BadInput),
        ({"colour": "red"}, errors.BadInput),
    ],
    ids=str,
)
def test_an_option_that_cannot_be_used_is_refused(
    database: Path,
    effect: cf.Effect[..., object],
    calls: list[str],
    options: dict[str, Any],
    raised: type[cf.CounterfoilError],
) -> None:
    before = stored_in(database)
    with cf.open(database) as book:
        refused(raised, lambda: book.perform(effect, "new", **options))
    assert (stored_in(database), calls) == (before, [])


def test_an_argument_that_the_effect_needs_and_arguments_without_names_are_refused(
    database: Path, calls: list[str]
) -> None:
    @cf.effect("needs", owner=cf.Owner("ledger"))
    def needs(attempt: cf.Attempt, *, order_id: str) -> None:
        calls.append(order_id)

    with cf.open(database) as book:
        refused(errors.BadInput, lambda: book.perform(needs, "new"))
        refused(errors.BadInput, lambda: book.perform(needs, "new", "1042"))
    assert not calls


# --- effects -------------------------------------------------------------------------------------


def test_two_effects_under_one_name_are_refused(effect: cf.Effect[..., object]) -> None:
    message = refused(
        errors.DuplicateRegistration,
        lambda: cf.effect("change", owner=cf.Owner("other"))(lambda attempt: None),
    )
    assert "'change'" in message


def test_a_second_look_up_of_one_effect_is_refused(effect: cf.Effect[..., object]) -> None:
    effect.reconcile(lambda attempt: cf.absent())
    refused(errors.DuplicateRegistration, lambda: effect.reconcile(lambda attempt: cf.absent()))


@pytest.mark.parametrize(
    "given",
    [print, "change", None, lambda attempt: None],
    ids=["a builtin", "a name", "None", "a function"],
)
def test_what_is_no_effect_is_refused(database: Path, given: Any) -> None:
    before = stored_in(database)
    with cf.open(database) as book:
        refused(errors.EffectNotRegistered, lambda: book.perform(given, "new"))
    assert stored_in(database) == before


@pytest.mark.parametrize("face", ["resume", "retry"])
def test_an_operation_whose_effect_this_process_does_not_know_is_not_carried_on(
    database: Path, monkeypatch: pytest.MonkeyPatch, face: str
) -> None:
    monkeypatch.setattr("counterfoil.coordinator.effects._registry", {})
    before = stored_in(database)
    with cf.open(database) as book:
        message = refused(errors.EffectNotRegistered, lambda: getattr(book, face)("settled"))
    assert "import" in message
    assert stored_in(database) == before


@pytest.mark.parametrize("face", ["resume", "retry", "outcome"])
def test_an_operation_that_is_not_there_is_named(database: Path, face: str) -> None:
    with cf.open(database) as book:
        message = refused(errors.OperationNotFound, lambda: getattr(book, face)("o-9"))
    assert "'o-9'" in message


def test_an_id_used_with_something_else_names_members_and_never_values(
    database: Path, effect: cf.Effect[..., object], calls: list[str]
) -> None:
    with cf.open(database) as book:
        book.perform(effect, "new", amount={"card": "secret-1"}, preconditions={"r": "secret-2"})
        before = sum(1 for _ in book.store.log())
        message = refused(
            errors.OperationConflict,
            lambda: book.perform(
                effect, "new", amount={"card": "secret-3"}, preconditions={"r": "secret-4"}
            ),
        )
        assert sum(1 for _ in book.store.log()) == before
    assert "arguments.amount" in message
    assert "preconditions.r" in message
    assert "secret" not in message
    assert len(calls) == 1


def test_an_async_effect_is_refused_by_the_blocking_face(database: Path) -> None:
    @cf.effect("later", owner=cf.Owner("ledger"))
    async def later(attempt: cf.Attempt) -> None:
        raise AssertionError("it was sent")

    before = stored_in(database)
    with cf.open(database) as book:
        message = refused(errors.BadInput, lambda: book.perform(later, "new"))
    assert "perform_async" in message
    assert stored_in(database) == before


def test_a_returned_http_response_is_unknown_and_the_trail_says_what_to_do(
    database: Path,
) -> None:
    class Response:
        status_code = 500
        headers: dict[str, str] = {}  # noqa: RUF012

    @cf.effect("responds", owner=cf.Owner("ledger"))
    def responds(attempt: cf.Attempt) -> object:
        return Response()

    with cf.open(database) as book:
        outcome = book.perform(responds, "new", patience=0.1)
        assert outcome.status == "unknown"
        entries = [json.loads(e.payload or "{}") for e in book.store.log() if e.kind == "replied"]
    assert "read its status" in entries[-1]["detail"]


# --- a book in a forked process ------------------------------------------------------------------


FACES: dict[str, Callable[[cf.Book, cf.Effect[..., object]], object]] = {
    "perform": lambda book, effect: book.perform(effect, "new"),
    "perform_async": lambda book, effect: asyncio.run(book.perform_async(effect, "new")),
    "resume": lambda book, effect: book.resume("settled"),
    "retry": lambda book, effect: book.retry("settled"),
    "outcome": lambda book, effect: book.outcome("settled"),
}


@pytest.mark.parametrize("face", ["perform", "perform_async", "resume", "retry", "outcome"])
def test_a_book_used_after_a_fork_refuses(
    database: Path, effect: cf.Effect[..., object], calls: list[str], face: str
) -> None:
    with cf.open(database) as book:
        said = in_a_fork(lambda: FACES[face](book, effect))
        assert said.startswith("Refused forked "), said
        assert "open it again" in said
        assert not calls
        book.perform(effect, "new")
    assert len(calls) == 1


def in_a_fork(act: Callable[[], object]) -> str:
    """Run ``act`` in a forked process; return the class, code and text of what it raised."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = "nothing was raised"
        try:
            act()
        except cf.Refused as error:
            said = f"{type(error).__name__} {error.code} {error}"
        except BaseException as error:
            said = repr(error)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as output:
        text = output.read().decode()
    os.waitpid(pid, 0)
    return text
