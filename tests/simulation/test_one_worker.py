"""One worker, up to three attempts, every reply, every answer, every crash point."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from counterfoil.operation import belief

sys.path.insert(0, str(Path(__file__).parent))

from one_worker import Kind, Search, Violation, kinds

if TYPE_CHECKING:
    from collections.abc import Callable

KINDS = {kind.name: kind for kind in kinds()}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_run_leaves_two_effects_or_a_false_outcome(
    kind: Kind, record_property: pytest.RecordProperty
) -> None:
    search = Search(kind)
    search.run()
    record_property("states", search.states)
    print(f"{kind.name}: {search.states} states, {search.transitions} transitions")
    assert search.states > 50
    assert "committed" in search.outcomes
    # Where a question fences, every run within these bounds ends known.
    assert "unknown" in search.outcomes or kind.promises.fences.stop_older_sends


def always(answer: Any) -> Callable[..., Any]:
    return lambda *_: answer


DELETED: list[tuple[str, Any, str]] = [
    ("attempts_in_doubt", (), "promises nothing"),
    ("view_is_partial", False, "final by its answer"),
    ("fence_is_above", True, "promises nothing"),
    ("end_was_stored_first", True, "final by its answer"),
    ("owner_says_final", True, "promises nothing"),
    ("time_to_settle_has_passed", True, "settles within a time"),
    ("may_send_again", True, "promises nothing"),
    ("inside_retention", True, "deduplicates for a time"),
]


@pytest.mark.parametrize(("rule", "answer", "kind"), DELETED, ids=[row[0] for row in DELETED])
def test_a_rule_that_is_taken_out_leads_to_a_wrong_outcome(
    monkeypatch: pytest.MonkeyPatch, rule: str, answer: Any, kind: str
) -> None:
    monkeypatch.setattr(belief, rule, always(answer))
    with pytest.raises(Violation) as caught:
        Search(KINDS[kind]).run()
    print(f"without {rule}: {caught.value}")


def test_every_rule_of_belief_is_taken_out_somewhere() -> None:
    """`asked_under_its_key` speaks of two keys in doubt at once, which no run of one worker has."""
    source = Path(belief.__file__).read_text().split("# --- the rules")[1]
    rules = {line[4 : line.index("(")] for line in source.splitlines() if line.startswith("def ")}
    assert rules == {row[0] for row in DELETED} | {"asked_under_its_key"}
