"""The judge says in sentences what was not accepted, and nothing otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.conformance.judging import findings
from counterfoil.conformance.ledger import Did, Effect, Event, Kind, Tally

if TYPE_CHECKING:
    from collections.abc import Callable

    from counterfoil.conformance.scenario import Scenario

    Make = Callable[..., Scenario]


def call(number: int, **members) -> Event:
    plain = {"key": "k", "args": "{}", "did": Did.COMMITTED}
    return Event(number, Kind.CALL, at_ms=0, **(plain | members))


def tally(effects: int, *events: Event) -> Tally:
    return Tally(tuple(Effect(f"effect-{n}", "k") for n in range(effects)), events)


def test_an_accepted_pair_is_no_finding(make: Make) -> None:
    assert findings(make(), tally(1, call(1)), "committed") == []


def test_effects_and_outcome_must_be_accepted_together(make: Make) -> None:
    scenario = make(
        accepted=[
            {"effects": 1, "outcome": "committed"},
            {"effects": 0, "outcome": "not_run"},
        ]
    )
    assert findings(scenario, tally(0), "committed") == [
        (
            "The owner holds no effect and the runtime reported committed; "
            "accepted here: 1 effect and committed, or no effect and not_run."
        )
    ]


def test_unknown_is_accepted_only_where_the_scenario_says_so(make: Make) -> None:
    assert len(findings(make(), tally(1), "unknown")) == 1
    accepted = [{"effects": 1, "outcome": "unknown"}]
    assert findings(make(accepted=accepted), tally(1), "unknown") == []


def test_two_effects_are_found_even_without_an_outcome(make: Make) -> None:
    assert findings(make(), tally(2), None) == [
        (
            "The owner holds 2 effects and the runtime reported nothing; "
            "accepted here: 1 effect and committed."
        )
    ]


def test_a_word_that_is_no_outcome_is_named(make: Make) -> None:
    found = findings(make(), tally(1), "done")
    assert found == ["The runtime reported 'done', which is none of committed, not_run, unknown."]


def test_a_key_reused_with_other_arguments_is_found(make: Make) -> None:
    calls = (call(1, args='{"n": 1}'), call(2, key="j"), call(3, args='{"n": 2}'))
    assert findings(make(), tally(1, *calls), "committed") == [
        "Call 3 reused key 'k' with other arguments than call 1."
    ]


def test_missing_and_superseded_tokens_are_found_in_a_lease_scenario(make: Make) -> None:
    calls = (
        call(1, token=1, token_in_force=1),
        call(2, token=1, token_in_force=2),
        call(3, token_in_force=2),
    )
    scenario = make(lease={"worker": "w"})
    assert findings(scenario, tally(1, *calls), "committed") == [
        "Call 2 carried token 1 when 2 was in force.",
        "Call 3 carried no fencing token.",
    ]
    assert findings(make(), tally(1, *calls), "committed") == []


def test_a_frozen_worker_may_be_stopped_by_the_fence_and_not_by_luck(make: Make) -> None:
    scenario = make(
        lease={"worker": "w"},
        faults=[{"do": "freeze", "at": "lease_read"}],
    )
    stopped = call(1, token=1, token_in_force=2, did=Did.SUPERSEDED)
    lucky = call(1, token=1, token_in_force=2, did=Did.DEDUPLICATED)
    assert findings(scenario, tally(1, stopped), "committed") == []
    assert len(findings(scenario, tally(1, lucky), "committed")) == 1


def test_an_earlier_worker_may_be_unknowing_and_not_untrue(make: Make) -> None:
    assert findings(make(), tally(1), "committed", earlier=["unknown", "committed"]) == []
    assert findings(make(), tally(1), "committed", earlier=["not_run"]) == [
        "An earlier worker reported not_run while the owner holds 1 effect."
    ]


def test_a_request_that_could_not_be_read_is_a_finding(make: Make) -> None:
    bad = Event(1, Kind.MALFORMED, at_ms=0, answer="the body is not JSON")
    assert findings(make(), tally(1, bad), "committed") == [
        "The owner could not read request 1 of this kind: the body is not JSON."
    ]
