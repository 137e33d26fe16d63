"""The lifecycle as literal tables: an absent row is the refusal. Nothing here decides by code.

Rules (design page of the mission):
- An attempt goes PREPARED -> DISPATCHED -> SETTLED, or PREPARED -> RELEASED; there is no way back.
- UNKNOWN is no end: it keeps the attempt DISPATCHED, and its reservation.
- An operation's disposition is read off its attempts; no command assigns it.
- A fact is taken at any time: a settlement asks for no open run, no deadline, and no stop.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from counterfoil.mission import commands as c
from counterfoil.mission.errors import Code, CommandRejected
from counterfoil.mission.vocabulary import AttemptStatus, Disposition, Feature


class Step(Enum):
    """What happens to one attempt."""

    DISPATCH = auto()
    REDELIVER = auto()
    RELEASE = auto()
    STAY_UNKNOWN = auto()
    ANSWER = auto()
    CORRECT = auto()


_S, _T = AttemptStatus, Step

ATTEMPTS: dict[tuple[AttemptStatus, Step], AttemptStatus] = {
    (_S.PREPARED, _T.DISPATCH): _S.DISPATCHED,
    (_S.PREPARED, _T.RELEASE): _S.RELEASED,
    (_S.DISPATCHED, _T.REDELIVER): _S.DISPATCHED,
    (_S.DISPATCHED, _T.STAY_UNKNOWN): _S.DISPATCHED,
    (_S.DISPATCHED, _T.ANSWER): _S.SETTLED,
    (_S.SETTLED, _T.CORRECT): _S.SETTLED,
    # A settled attempt answered again the same way stays as it is; another answer is refused
    # before this table is asked, and only CORRECT may change it.
    (_S.SETTLED, _T.ANSWER): _S.SETTLED,
}

REFUSALS: dict[Step, Code] = {
    _T.DISPATCH: Code.ATTEMPT_NOT_PREPARED,
    _T.RELEASE: Code.ATTEMPT_NOT_PREPARED,
    _T.REDELIVER: Code.ATTEMPT_NOT_DISPATCHED,
    _T.STAY_UNKNOWN: Code.ATTEMPT_NOT_DISPATCHED,
    _T.ANSWER: Code.ATTEMPT_NOT_DISPATCHED,
    _T.CORRECT: Code.ATTEMPT_NOT_SETTLED,
}


def step(status: AttemptStatus, happens: Step, attempt_id: str) -> AttemptStatus:
    """Return where an attempt stands after a step; CommandRejected where the table has no row."""
    then = ATTEMPTS.get((status, happens))
    if then is None:
        raise CommandRejected(REFUSALS[happens], f"attempt {attempt_id!r} is {status.value}")
    return then


_D = Disposition

# (an attempt is dispatched, one was applied, one was settled) -> what is known of the operation
DISPOSITIONS: dict[tuple[bool, bool, bool], Disposition] = {
    (False, False, False): _D.NOT_DISPATCHED,
    (False, False, True): _D.CONFIRMED_NOT_APPLIED,
    (False, True, True): _D.CONFIRMED_APPLIED,
    (True, False, False): _D.UNKNOWN,
    (True, False, True): _D.UNKNOWN,
    # Reached by a correction only: an earlier attempt was applied after all.
    (True, True, True): _D.UNKNOWN,
}

# disposition -> why a fresh attempt may not be made; None where it may
RETRY: dict[Disposition, Code | None] = {
    _D.NOT_DISPATCHED: None,
    _D.CONFIRMED_NOT_APPLIED: None,
    _D.CONFIRMED_APPLIED: Code.ALREADY_APPLIED,
    _D.UNKNOWN: Code.EFFECT_UNKNOWN,
}

# (disposition, an attempt is prepared) -> whether a compensation stands in another one's way
BLOCKS: dict[tuple[Disposition, bool], bool] = {
    (_D.NOT_DISPATCHED, False): False,  # fully released
    (_D.NOT_DISPATCHED, True): True,
    (_D.CONFIRMED_NOT_APPLIED, False): False,
    (_D.CONFIRMED_NOT_APPLIED, True): False,
    (_D.CONFIRMED_APPLIED, False): True,
    (_D.CONFIRMED_APPLIED, True): True,
    (_D.UNKNOWN, False): True,
}


class Rule(NamedTuple):
    """What holds for one command before anything else is looked at.

    ``widens``: it uses or widens authority, so its time may not go back. ``after_stop``: it is
    taken on a stopped mission. ``feature``: what the contract must have switched on.
    """

    widens: bool
    after_stop: bool
    feature: Feature | None = None


_USES = Rule(widens=True, after_stop=False)
_FACT = Rule(widens=False, after_stop=True)

RULES: dict[type, Rule] = {
    c.StartRun: _USES,
    c.ClaimRun: _FACT,
    c.FinishRun: _FACT,
    c.MakeGrant: _USES,
    c.Delegate: _USES,
    c.RevokeGrant: _FACT,
    c.Approve: _USES,
    c.Admit: _USES,
    c.Dispatch: _USES,
    c.Redeliver: _USES,
    c.Settle: _FACT,
    c.Review: _FACT,
    c.Correct: _FACT,
    c.Retry: _USES,
    c.Release: _FACT,
    c.Compensate: _USES,
    c.RegisterGraph: Rule(widens=True, after_stop=False, feature=Feature.GRAPHS),
    c.AttachGraph: Rule(widens=True, after_stop=False, feature=Feature.GRAPHS),
    c.CompleteNode: Rule(widens=False, after_stop=True, feature=Feature.GRAPHS),
    c.RecordCriterion: _FACT,
    c.RegisterTrigger: Rule(widens=True, after_stop=False, feature=Feature.TRIGGERS),
    c.FireTrigger: Rule(widens=True, after_stop=False, feature=Feature.TRIGGERS),
    c.StopMission: Rule(widens=False, after_stop=False),
}
