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


def test_the_lifecycle_is_drawn_from_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    lines = shown("mission_lifecycle.py", capsys).splitlines()
    assert "    DISPATCHED --> DISPATCHED: stay unknown" in lines
    assert lines[-1] == "    RELEASED --> [*]"
