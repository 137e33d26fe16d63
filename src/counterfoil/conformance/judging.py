"""What was not accepted, in sentences. Pure.

A scenario passes when the owner holds an accepted number of effects and the runtime reported the
outcome accepted with it, no call reused a key with other arguments, and no call in a lease scenario
carried a missing or superseded fencing token (seed, "The runtime contract").
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from counterfoil.conformance.ledger import Did, Kind, Tally
from counterfoil.conformance.scenario import (
    Deed,
    Outcome,
    Scenario,
    effects_in_words,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class Counting(Protocol):
    """Whatever can say what was left at the owner."""

    def tally(self) -> Tally:
        """Let everything land that was sent, and return what the owner holds."""


def judge(scenario: Scenario, owner: Counting, outcome: str) -> list[str]:
    """Return what was not accepted of one run, one sentence each; an empty list is a pass."""
    return findings(scenario, owner.tally(), outcome)


def findings(
    scenario: Scenario, tally: Tally, outcome: str | None, *, earlier: Sequence[str] = ()
) -> list[str]:
    """Judge what was left and reported.

    ``outcome`` is the report of the worker that was started last, None if there is none;
    ``earlier`` are the reports of workers before it: theirs may be unknown, and must be true.
    """
    return [
        *_of_outcome(scenario, tally, outcome),
        *_of_earlier(tally, earlier),
        *_of_keys(tally),
        *(_of_tokens(scenario, tally) if scenario.worker is not None else ()),
        *(
            f"The owner could not read request {event.number} of this kind: {event.answer}."
            for event in tally.events
            if event.kind is Kind.MALFORMED
        ),
    ]


def got(tally: Tally, outcome: str | None) -> str:
    """Say what was left and reported, in the words of ``Scenario.expected``."""
    return f"{effects_in_words(len(tally.effects))} and {outcome or 'no outcome'}"


def _of_outcome(scenario: Scenario, tally: Tally, outcome: str | None) -> list[str]:
    held = len(tally.effects)
    if outcome is not None and outcome not in {str(word) for word in Outcome}:
        return [f"The runtime reported {outcome!r}, which is none of {', '.join(Outcome)}."]
    if any(pair.effects == held and outcome in (pair.outcome, None) for pair in scenario.accepted):
        return []
    reported = "reported nothing" if outcome is None else f"reported {outcome}"
    left = f"The owner holds {effects_in_words(held)} and the runtime {reported}"
    return [f"{left}; accepted here: {scenario.expected}."]


def _of_earlier(tally: Tally, earlier: Sequence[str]) -> list[str]:
    held = len(tally.effects)
    return [
        f"An earlier worker reported {word} while the owner holds {effects_in_words(held)}."
        for word in earlier
        if (word == Outcome.COMMITTED and held == 0) or (word == Outcome.NOT_RUN and held > 0)
    ]


def _of_keys(tally: Tally) -> list[str]:
    first: dict[str, tuple[int, str | None]] = {}
    found = []
    for call in tally.calls:
        assert call.key is not None
        number, args = first.setdefault(call.key, (call.number, call.args))
        if args != call.args:
            found.append(
                f"Call {call.number} reused key {call.key!r} with other arguments than "
                f"call {number}."
            )
    return found


def _of_tokens(scenario: Scenario, tally: Tally) -> list[str]:
    # A worker that was frozen cannot know that its lease has moved: there the fence is the guard,
    # and a call that it stopped is the lease at work.
    frozen = any(fault.do is Deed.FREEZE for fault in scenario.faults)
    found = []
    for call in tally.calls:
        if call.token is None:
            found.append(f"Call {call.number} carried no fencing token.")
        elif call.token < (call.token_in_force or 0) and not (
            frozen and call.did is Did.SUPERSEDED
        ):
            found.append(
                f"Call {call.number} carried token {call.token} when "
                f"{call.token_in_force} was in force."
            )
    return found
