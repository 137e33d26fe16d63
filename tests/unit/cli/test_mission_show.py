"""`mission show` as a user runs it: money, grants as a tree, runs and nodes."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

import counterfoil as cf
from counterfoil.cli.main import main

if TYPE_CHECKING:
    from pathlib import Path

FOREVER_MS = 9_999_999_999_999
CONTRACT: dict[str, Any] = {
    "id": "c",
    "missionId": "m",
    "aiwsEdition": "0.4",
    "profile": "finite-v1",
    "budget": "100",
    "deadline": str(FOREVER_MS),
    "criteria": [],
    "actions": ["change"],
    "resources": ["doc"],
    "requiresApproval": False,
    "maxAttempts": "2",
    "maxAuthorizationAgeMs": "0",
    "features": ["graphs"],
}
TERMS: dict[str, Any] = {
    "actions": ["change"],
    "resources": ["doc"],
    "not_before": 0,
    "expires_at": FOREVER_MS,
}
GRAPH = {
    "id": "graph",
    "revision": "1",
    "nodes": [
        {"id": "task", "kind": "TASK", "dependsOn": [], "config": {}},
        {"id": "end", "kind": "END", "dependsOn": ["task"], "config": {}},
    ],
}


@pytest.fixture
def show(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: object) -> tuple[int, str, str]:
        words = ("counterfoil", "mission", "show", *words)
        monkeypatch.setattr(sys, "argv", [str(word) for word in words])
        code = main()
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "effects.db"

    @cf.effect("change", owner=cf.Owner("owner"))
    def change(attempt: cf.Attempt, *, lost: bool = False) -> object:
        if lost:
            raise ConnectionResetError
        return cf.applied(cost="2.5")

    with cf.open(path, create=True, mission=CONTRACT, patience=0.1) as book:
        run = book.mission.start_run("r")
        grant = run.grant("g", subject="agent", limit="60", can_delegate=True, depth=1, **TERMS)
        part = grant.delegate("part", subject="helper", limit="30", **TERMS)
        run.grant("other", subject="agent", limit="5", **TERMS).revoke("not needed")
        book.mission.register_graph(GRAPH)
        run.attach_graph("graph")
        book.perform(change, "o-1", under=part, resource="doc", node="task", reserve="4")
        run.complete_node("task", "o-1")
        book.mission.start_run("second").grant("h", subject="agent", limit="9", **TERMS)
        lost = book.mission.run("second").granted("h")
        book.perform(change, "o-2", under=lost, resource="doc", reserve="9", lost=True)
    return path


def test_it_shows_money_grants_as_a_tree_and_runs_with_nodes(show: Any, database: Path) -> None:
    code, out, err = show(database)
    assert (code, err) == (0, "")
    assert out == (
        "mission m\n"
        "  budget 100, spent 2.5, held 9, free 88.5\n"
        "grants\n"
        "  g: agent may spend 60, spent 2.5, held 0\n"
        "    part: helper may spend 30, spent 2.5, held 0\n"
        "  h: agent may spend 9, spent 0, held 9\n"
        "  other: agent may spend 5, spent 0, held 0, revoked\n"
        "runs\n"
        "  r: OPEN, epoch 1\n"
        "    end: PENDING\n"
        "    task: DONE by o-1\n"
        "  second: OPEN, epoch 1, 1 unknown\n"
    )


def test_as_json_it_is_one_object(show: Any, database: Path) -> None:
    code, out, _ = show(database, "--json")
    shown = json.loads(out)
    assert code == 0
    money = {name: shown[name] for name in ("budget", "spent", "held", "free")}
    assert money == {"budget": "100", "spent": "2.5", "held": "9", "free": "88.5"}
    assert [(grant["id"], grant["level"]) for grant in shown["grants"]] == [
        ("g", 0),
        ("part", 1),
        ("h", 0),
        ("other", 0),
    ]
    assert shown["runs"]["r"]["nodes"]["task"]["status"] == "DONE"
    assert shown["stopped"] is None


def test_a_stopped_mission_says_so(show: Any, database: Path) -> None:
    with cf.open(database, mission=CONTRACT) as book:
        book.mission.stop("enough", by="the boss")
    assert "  stopped at " in show(database)[1]


def test_several_missions_are_told_apart_by_name(show: Any, database: Path) -> None:
    cf.open(database, mission={**CONTRACT, "missionId": "n"}).close()
    code, out, err = show(database)
    assert (code, out) == (2, "")
    assert err == "counterfoil: there are several; name one with --mission: m, n\n"
    assert show(database, "--mission", "n")[1].startswith("mission n\n")


def test_what_is_not_there_is_one_clear_line(show: Any, tmp_path: Path) -> None:
    cf.open(tmp_path / "plain.db", create=True).close()
    assert show(tmp_path / "plain.db")[::2] == (
        1,
        "counterfoil: no mission in namespace default; open a book with mission=contract\n",
    )
    code, _, err = show(tmp_path / "none.db")
    assert code == 3
    assert err.count("\n") == 1
