"""Scenario files are read strictly, and each refusal names the file and the place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from counterfoil import conformance
from counterfoil.conformance.loading import SHIPPED, scenario_from_bytes
from counterfoil.conformance.scenario import SETS, ScenarioError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from counterfoil.conformance.scenario import Json, Scenario


def test_the_core_set_is_the_eight_of_the_seed() -> None:
    assert {scenario.id for scenario in conformance.shipped_scenarios()} == {
        "confirmed",
        "commit-then-lost-reply",
        "commit-then-lost-reply-deduplicating",
        "owner-unreachable-after-lost-reply",
        "lost-before-commit",
        "late-commit-after-missed-lookup",
        "definite-no-effect",
        "lease-lost-after-lost-reply",
    }


def test_every_core_owner_is_final_by_its_answer() -> None:
    assert all(one.promises.final_by_answer for one in conformance.shipped_scenarios("core"))


def test_ids_keys_and_files_of_all_shipped_scenarios_are_unique_and_agree() -> None:
    scenarios = conformance.shipped_scenarios(*SETS)
    keys = {scenario["operation"]["idempotencyKey"] for scenario in scenarios}
    files = {path.stem for path in SHIPPED.glob("*/*.json")}
    assert {scenario.id for scenario in scenarios} == files
    assert len(keys) == len(files) == len(scenarios)


def test_a_scenario_is_a_mapping_of_the_files_members(make: Callable[..., Scenario]) -> None:
    scenario = make()
    assert scenario["operation"] == {
        "id": "op-1",
        "action": "pay",
        "idempotencyKey": "k-1",
        "args": {"n": 1},
    }
    assert set(scenario) == {"id", "summary", "operation", "owner", "behaviour", "accepted"}


def test_a_runtime_is_not_shown_how_the_owner_behaves(make: Callable[..., Scenario]) -> None:
    shown = make(lease={"worker": "w"}).shown("scenario-x", "worker-y")
    assert set(shown) == {"id", "operation", "owner", "lease"}
    assert shown["id"] == "scenario-x"
    assert shown["lease"] == {"worker": "worker-y"}


OWNER_FENCES = "fences by tokens, and the scenario names no lease; add one"


@pytest.mark.parametrize(
    ("changes", "place", "detail"),
    [
        ({"extra": 1}, "/extra", "is unknown here"),
        ({"operation": None}, "/operation", "is missing"),
        ({"operation": []}, "/operation", "must be an object"),
        ({"id": "Bad Id"}, "/id", "joined by hyphens"),
        ({"summary": ""}, "/summary", "must be a string that is not empty"),
        ({"deduplicatesByKey": 1}, "/owner/deduplicatesByKey", "must be true or false"),
        ({"finalBy": "time"}, "/owner/finalBy", 'must be "answer" or null'),
        ({"fences": "often"}, "/owner/fences", "'often' is none of no, on_send"),
        ({"fences": "by_lease"}, "/owner", OWNER_FENCES),
        ({"settlesWithinSeconds": -1}, "/owner/settlesWithinSeconds", "between 0 and 60"),
        ({"calls": []}, "/behaviour/calls", "at least one entry"),
        ({"calls": [{"reply": "maybe"}]}, "/behaviour/calls/0/reply", "'maybe' is none of"),
        ({"calls": [{"reply": "lost", "x~/y": 1}]}, "/behaviour/calls/0/x~0~1y", "is unknown"),
        (
            {"calls": [{"reply": "confirmed", "lands": "never"}]},
            "/behaviour/calls/0/reply",
            "does not confirm what never lands",
        ),
        ({"calls": [{"reply": "status"}]}, "/behaviour/calls/0", "needs a status"),
        (
            {"calls": [{"reply": "lost", "lands": {"after": "lookups"}}]},
            "/behaviour/calls/0/lands",
            "needs a count",
        ),
        (
            {"calls": [{"reply": "lost", "lands": {"after": "release", "count": 1}}]},
            "/behaviour/calls/0/lands/count",
            "a release is not counted",
        ),
        (
            {"calls": [{"reply": "lost", "lands": {"after": "wake", "count": 1}}]},
            "/behaviour/calls/0/lands/count",
            "a wake is not counted",
        ),
        (
            {"calls": [{"reply": "lost", "lands": {"after": "wake"}}]},
            "/behaviour",
            "no faults freeze a worker and wake it",
        ),
        (
            {"calls": [{"reply": "lost", "movesLease": True}]},
            "/behaviour/calls/0/movesLease",
            "names no lease",
        ),
        ({"lookup": False, "lookups": [{"says": "truth"}]}, "/behaviour/lookups", "leave look-ups"),
        ({"lookups": [{"says": "truth", "final": True}]}, "/behaviour/lookups/0/final", "unknown"),
        ({"faults": [{"do": "kill", "at": "noon"}]}, "/faults/0/at", "'noon' is none of"),
        ({"faults": [{"do": "move_lease"}]}, "/faults/0", "names no lease"),
        ({"faults": [{"do": "kill", "count": 2}]}, "/faults/0/count", "say at which"),
        ({"accepted": [{"effects": True, "outcome": "unknown"}]}, "/accepted/0/effects", "whole"),
        ({"accepted": [{"effects": 1, "outcome": "done"}]}, "/accepted/0/outcome", "none of"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(
    make: Callable[..., Scenario], changes: dict[str, Json], place: str, detail: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        make(**changes)
    assert caught.value.pointer == place
    assert detail in str(caught.value)
    assert str(caught.value).startswith(f"made.json: {place}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b'{"id": "a", "id": "b"}', b'{"id": NaN}', b"\xff", b"[" * 100_000],
    ids=["empty", "cut", "twice", "NaN", "bytes", "deep"],
)
def test_bytes_that_are_no_scenario_are_refused_in_one_line(data: bytes) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario_from_bytes(data, "bad.json")
    assert str(caught.value).startswith("bad.json: the document: is no JSON")
    assert "\n" not in str(caught.value)


def test_a_folder_without_scenarios_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="holds no scenario"):
        conformance.load_folder(tmp_path)


def test_an_id_that_is_there_twice_is_refused(
    make: Callable[..., Scenario], tmp_path: Path
) -> None:
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text(json.dumps(make().members))
    with pytest.raises(ScenarioError, match="'plain' is there twice"):
        conformance.load_folder(tmp_path)


def test_a_file_that_is_not_there_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read: No such file"):
        conformance.load_file(tmp_path / "none.json")


def test_a_set_that_is_not_shipped_is_refused() -> None:
    with pytest.raises(ScenarioError, match="there are core, field, crash, zombie"):
        conformance.shipped_scenarios("most")
