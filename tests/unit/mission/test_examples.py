"""The examples of the mission run, and tell what they say they tell."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def shown(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def test_a_lost_reply_keeps_its_money_until_somebody_finds_out(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert shown("mission_lost_reply.py", capsys).splitlines()[3:] == [
        "Dispatch   spent 0    reserved 20",
        "Settle     spent 0    reserved 20",
        "Retry      refused: effect_unknown",
        "Review     spent 20   reserved 0",
    ]


def test_both_control_simulations_run_command_for_command(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    retry = shown("mission_retry.py", capsys).splitlines()
    assert (len(retry), retry[-1]) == (9, " 9 settle        spent 2  reserved 0")
    compensation = shown("mission_compensation.py", capsys).splitlines()
    assert compensation[12] == "13 completeNode  spent 5  reserved 0"


def test_a_governed_refund_is_paid_once_and_its_compensation_is_looked_at(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = shown("governed_refund.py", capsys).splitlines()
    assert "held='0', free='10'" in lines[1]
    assert lines[2] == "refund-19: refused, grant_limit_exceeded"
    assert lines[3].startswith("charge-17: committed")


def test_the_picture_in_the_docs_is_the_one_that_the_tables_give() -> None:
    docs = EXAMPLES.parent / "docs"
    drawn = runpy.run_path(str(docs / "draw_lifecycle.py"))["svg"]()
    assert (docs / "lifecycle.svg").read_text("utf-8") == drawn, "run `make diagrams`"


def test_the_lifecycle_is_drawn_from_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown("mission_lifecycle.py", capsys).splitlines()
    assert "    DISPATCHED --> DISPATCHED: stay unknown" in lines
    assert lines[-1] == "    RELEASED --> [*]"
