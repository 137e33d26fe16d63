"""Runs, graphs, approvals, delegation, and opening a book under a mission."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import counterfoil as cf
from counterfoil.mission import canonical_state_bytes
from counterfoil.operation.replies import Status

from .governing import (
    CONTRACT,
    FOREVER_MS,
    Desk,
    attempt_of,
    grant_in,
    money,
    opened,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from counterfoil.coordinator.governed import Grant


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def book(tmp_path: Path) -> Iterator[cf.Book]:
    with opened(tmp_path / "effects.db") as made:
        yield made


@pytest.fixture
def grant(book: cf.Book) -> Grant:
    return grant_in(book)


def perform(book: cf.Book, change: Any, grant: Grant, name: str = "o-1", **more: Any) -> Any:
    options = {"under": grant, "resource": "doc", "reserve": "10", **more}
    return book.perform(change, name, **options)


def log_length(book: cf.Book) -> int:
    return sum(1 for _ in book.store.log())


# --- runs, graphs, approvals, delegation ---------------------------------------------------------


def test_an_approval_of_this_very_action_carries_it(tmp_path: Path, desk: Desk) -> None:
    with opened(tmp_path / "e.db", {**CONTRACT, "requiresApproval": True}) as book:
        grant, change = grant_in(book), desk.declare()
        digest = book.mission.digest_of(change, resource="doc", value=7)
        book.mission.approve(
            "ok", operation_id="o-1", action_digest=digest, max_amount="10", approver="boss",
            expires_at=FOREVER_MS,
        )  # fmt: skip
        with pytest.raises(cf.Refused) as caught:
            perform(book, change, grant, value=8)
        assert caught.value.code == "approval_missing"
        assert perform(book, change, grant, value=7).status is Status.COMMITTED


def test_a_delegated_grant_spends_what_is_above_it_too(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    part = grant.delegate(
        "part", subject="helper", actions=["change"], resources=["doc"], limit="20",
        not_before=0, expires_at=FOREVER_MS,
    )  # fmt: skip
    change = desk.declare()
    perform(book, change, part, reserve="15")
    with pytest.raises(cf.Refused) as caught:
        perform(book, change, part, "o-2")
    assert caught.value.code == "grant_limit_exceeded"
    grants: Any = book.mission.state["grants"]
    assert (grants["part"]["spent"], grants["g"]["spent"]) == ("15", "15")


GRAPH = {
    "id": "graph",
    "revision": "1",
    "nodes": [
        {"id": "task", "kind": "TASK", "dependsOn": [], "config": {}},
        {"id": "undo", "kind": "COMPENSATION", "dependsOn": ["task"], "config": {}},
        {"id": "end", "kind": "END", "dependsOn": ["undo"], "config": {}},
    ],
}


def test_a_run_follows_its_graph_to_the_end(book: cf.Book, desk: Desk, grant: Grant) -> None:
    change, run = desk.declare(), grant.run
    book.mission.register_graph(GRAPH)
    run.attach_graph("graph")
    with pytest.raises(cf.Refused) as caught:
        perform(book, change, grant)
    assert caught.value.code == "node_required"
    perform(book, change, grant, node="task")
    run.complete_node("task", "o-1")
    book.compensate("o-1", change, "undo-1", under=grant, resource="doc", node="undo")
    run.complete_node("undo", "undo-1", original="o-1")
    run.record_criterion("review", "seen")
    run.finish()
    state: Any = book.mission.state
    assert state["runs"]["r"]["status"] == "COMPLETED"


def test_a_trigger_starts_a_run_once_for_a_firing(book: cf.Book) -> None:
    book.mission.register_trigger("t")
    first = book.mission.fire_trigger("t", "f", "nightly")
    assert book.mission.fire_trigger("t", "f", "nightly").epoch == first.epoch == 1
    assert set(book.mission.state["runs"]) == {"nightly"}  # type: ignore[call-overload]


def test_who_was_replaced_as_owner_of_a_run_sends_nothing_more_and_the_new_one_does(
    tmp_path: Path, desk: Desk
) -> None:
    desk.script, desk.answers = ["lose before"], False
    change = desk.declare(final_by="answer")
    with opened(tmp_path / "e.db") as new:
        with opened(tmp_path / "e.db") as old:
            assert perform(old, change, grant_in(old)).status is Status.UNKNOWN
            new.mission.run("r").claim("the second")
            desk.answers = True
            assert old.resume("o-1").status is Status.NOT_RUN
            assert len(desk.calls) == 1
        assert new.retry("o-1").status is Status.COMMITTED
        assert attempt_of(new, "o-1#2")["epoch"] == "2"


def test_operations_of_two_tenants_are_two(book: cf.Book, desk: Desk, grant: Grant) -> None:
    change = desk.declare()
    perform(book, change, grant)
    perform(book, change, grant, tenant="acme")
    assert len(desk.calls) == 2
    assert money(book) == ("20", "0")


def test_the_same_id_under_other_authority_is_a_conflict(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    change = desk.declare()
    perform(book, change, grant)
    other = grant_in(book, "r2", "g2")
    with pytest.raises(cf.OperationConflict) as caught:
        perform(book, change, other)
    assert caught.value.members == ("under",)


def test_it_is_the_same_under_asyncio(book: cf.Book, desk: Desk, grant: Grant) -> None:
    change = desk.declare()
    made = book.perform_async(change, "o-1", under=grant, resource="doc", reserve="10")
    assert asyncio.run(made).status is Status.COMMITTED
    assert money(book) == ("10", "0")


# --- opening -------------------------------------------------------------------------------------


def test_without_a_mission_its_options_mean_nothing(tmp_path: Path, desk: Desk) -> None:
    with cf.open(tmp_path / "e.db", create=True) as book:
        for options in ({"under": object()}, {"resource": "doc"}, {"node": "n"}):
            with pytest.raises(cf.BadInput, match="mission=contract"):
                book.perform(desk.declare(f"change {options}"), "o-1", **options)
        with pytest.raises(cf.BadInput, match="mission=contract"):
            book.mission  # noqa: B018
    assert desk.calls == []


def test_with_a_mission_nothing_goes_without_a_grant_or_a_resource(
    book: cf.Book, desk: Desk, grant: Grant
) -> None:
    change = desk.declare()
    with pytest.raises(cf.BadInput, match="under=grant"):
        book.perform(change, "o-1")
    with pytest.raises(cf.BadInput, match="under=grant"):
        book.perform(change, "o-1", under="g", resource="doc")
    with pytest.raises(cf.BadInput, match="resource="):
        book.perform(change, "o-1", under=grant)
    assert desk.calls == []


def test_a_grant_of_another_mission_is_no_authority_here(
    tmp_path: Path, book: cf.Book, desk: Desk
) -> None:
    with opened(tmp_path / "other.db", {**CONTRACT, "missionId": "n"}) as other:
        elsewhere = grant_in(other)
    with pytest.raises(cf.BadInput, match="another mission"):
        perform(book, desk.declare(), elsewhere)


def test_an_argument_cannot_have_the_name_of_an_option() -> None:
    for name in ("under", "resource", "node"):
        with pytest.raises(cf.BadInput, match="rename the argument"):
            exec(  # the names must be those of parameters
                f"@cf.effect('x', owner=cf.Owner('o'))\ndef f(attempt, {name}): ...", {"cf": cf}
            )


def test_a_mission_is_not_opened_under_another_contract(tmp_path: Path) -> None:
    opened(tmp_path / "e.db").close()
    with pytest.raises(cf.Refused) as caught:
        opened(tmp_path / "e.db", {**CONTRACT, "budget": "1000"})
    assert caught.value.code == "contract_differs"
    opened(tmp_path / "e.db").close()


@pytest.mark.parametrize("contract", [7, "{}", {**CONTRACT, "missionId": "a\nb"}])
def test_a_contract_that_is_none_makes_no_database(tmp_path: Path, contract: object) -> None:
    with pytest.raises(cf.BadInput):
        opened(tmp_path / "e.db", contract)
    assert not (tmp_path / "e.db").exists()


def test_what_was_begun_without_a_mission_is_not_sent_again_under_one(
    tmp_path: Path, desk: Desk
) -> None:
    desk.script, desk.answers = ["lose before"], False
    change = desk.declare(final_by="answer")
    with cf.open(tmp_path / "e.db", create=True, patience=0.1) as plain:
        plain.perform(change, "o-1")
    desk.answers = True
    with opened(tmp_path / "e.db") as book:
        assert book.resume("o-1").status is Status.NOT_RUN
    assert len(desk.calls) == 1


def test_a_book_opened_without_the_mission_settles_what_the_mission_governs(
    tmp_path: Path, desk: Desk
) -> None:
    desk.script, desk.answers = ["lose after:4"], False
    with opened(tmp_path / "e.db") as book:
        perform(book, desk.declare(final_by="answer"), grant_in(book))
    desk.answers = True
    with cf.open(tmp_path / "e.db", patience=0.3) as worker:
        (outcome,) = worker.recover()
        assert outcome.status is Status.COMMITTED
    with opened(tmp_path / "e.db") as book:
        assert money(book) == ("4", "0")


def test_two_processes_share_one_budget_to_the_last_unit(tmp_path: Path, desk: Desk) -> None:
    change = desk.declare()
    with opened(tmp_path / "e.db") as one, opened(tmp_path / "e.db") as two:
        grants = [grant_in(one), two.mission.run("r").granted("g")]
        for number in range(10):
            book, grant = (one, two)[number % 2], grants[number % 2]
            perform(book, change, grant, f"o-{number}")
        for book, grant in zip((one, two), grants, strict=True):
            with pytest.raises(cf.Refused) as caught:
                perform(book, change, grant, "one too many", reserve="0.01")
            assert caught.value.code == "grant_limit_exceeded"
        assert money(one) == money(two) == ("100", "0")


def test_a_restart_leads_to_the_same_bytes(tmp_path: Path, desk: Desk) -> None:
    desk.script = ["commit:1", "lose before", "refuse:2", "lose after"]
    with opened(tmp_path / "e.db") as book:
        grant, change = grant_in(book), desk.declare(final_by="answer")
        for number in range(4):
            perform(book, change, grant, f"o-{number}")
        before = canonical_state_bytes(book.mission.state)
    with opened(tmp_path / "e.db") as book:
        assert canonical_state_bytes(book.mission.state) == before
