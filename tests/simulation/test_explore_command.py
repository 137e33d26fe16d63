"""The search as a command: it counts, it shows a timeline, and it says what it does not know."""

from __future__ import annotations

import pytest

from counterfoil.simulate.explore import main


def test_it_counts_what_it_saw(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--owner", "dedupes, never asked"]) == 0
    assert "in all: 323 states, 481 transitions, 0 wrong" in capsys.readouterr().out


def test_it_shows_how_it_came_to_a_wrong_moment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--owner", "final, partial views", "--without", "view_is_partial"]) == 0
    said = capsys.readouterr().out
    assert "the owner answers w0: absent, final, from a partial view" in said
    assert "settled not_run" in said


def test_it_fails_if_a_rule_that_is_taken_out_was_not_missed() -> None:
    assert main(["--owner", "dedupes, never asked", "--without", "view_is_partial"]) == 1


def test_it_refuses_an_owner_that_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--owner", "nobody"])
    assert "leave it out to search them all" in capsys.readouterr().err
