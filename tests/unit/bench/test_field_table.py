"""The calibration's verdict: what a run of other people's libraries must show."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def field() -> ModuleType:
    # bench/ is no part of the package: it is loaded from its file.
    path = ROOT / "bench" / "field" / "run.py"
    spec = importlib.util.spec_from_file_location("field_run", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["field_run"] = module
    spec.loader.exec_module(module)
    return module


def row(set_name: str, got: str, verdict: str = "pass") -> dict[str, Any]:
    return {"set": set_name, "id": "a-scenario", "got": got, "verdict": verdict}


def measured(
    field: ModuleType, expected: str, *rows: dict[str, Any], version: str | None = "1"
) -> Any:
    entry = field.Entry("some", None, None, "as it comes", field.Expected(expected))
    return field.Measured(entry, version, field.rows_of({"rows": list(rows)}))


ONE, TWO, NONE = "1 effect and committed", "2 effects and committed", "no effect and not_run"


@pytest.mark.parametrize(
    ("expected", "rows", "holds"),
    [
        ("fails core", [row("core", TWO, "fail")], True),
        ("fails core", [row("core", ONE), row("zombie", TWO, "fail")], False),
        ("two effects in zombie", [row("zombie", TWO, "fail")], True),
        ("two effects in zombie", [row("zombie", ONE, "fail")], False),
        ("two effects in zombie", [row("core", TWO, "fail")], False),
        ("passes both", [row("core", ONE), row("zombie", NONE)], True),
        ("passes both", [row("core", ONE), row("zombie", ONE, "fail")], False),
        ("passes both", [], False),
        ("for comparison", [row("zombie", TWO, "fail")], True),
    ],
)
def test_a_calibration_holds_only_where_the_hole_was_seen(
    field: ModuleType, expected: str, rows: list[dict[str, Any]], holds: bool
) -> None:
    assert measured(field, expected, *rows).holds() is holds


def test_a_library_that_is_not_installed_is_said_to_be_so_and_breaks_the_calibration(
    field: ModuleType,
) -> None:
    missing = measured(field, "for comparison", version=None)
    assert not missing.holds()
    console = Console(width=200)
    with console.capture() as shown:
        console.print(field.table([missing]))
    assert "not installed here" in shown.get()


def test_the_table_names_each_scenario_that_was_left_with_two_effects(field: ModuleType) -> None:
    one = measured(field, "two effects in zombie", row("core", ONE), row("zombie", TWO, "fail"))
    console = Console(width=200)
    with console.capture() as shown:
        console.print(field.table([one]))
    text = shown.get()
    assert "zombie/a-scenario" in text
    assert "core/a-scenario" not in text
    assert "1/1" in text
    assert "0/1" in text


def test_every_adapter_that_is_named_is_there(field: ModuleType) -> None:
    folder = ROOT / "bench" / "field"
    named = {entry.adapter for entry in field.ENTRIES if entry.adapter}
    assert named == {path.name for path in folder.glob("with_*.py")}
