"""What an operation's events mean to its mission: a pure map from events to the fold's commands.

The events are about to be appended and the commands go into the same transaction (coordinator,
"Money"). The trail counts dispatches; the fold counts attempts: a redelivery is one more of the
first and none of the second.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from counterfoil.errors import BadInput
from counterfoil.mission import write_amount
from counterfoil.mission.vocabulary import AttemptStatus, Effect
from counterfoil.operation.events import (
    Answered,
    Corrected,
    Dispatched,
    Opened,
    Reopened,
    Replied,
    Settled,
    Supposed,
)
from counterfoil.operation.replies import ReplyKind, Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from counterfoil.mission.state import Operation
    from counterfoil.operation.events import NewEvent
    from counterfoil.operation.history import History
    from counterfoil.operation.identity import StreamId

Plain = dict[str, object]
"""A command as JSON members, without the gate that the moment of the append gives it."""

GATED = frozenset({"admit", "dispatch", "retry", "compensate"})
"""Commands that say when authority was checked: in the very transaction that uses it."""

_CONCERN = (Opened, Dispatched, Supposed, Reopened, Settled, Corrected)
_OPERATION_ID_CHARACTERS_MAX = 250
"""Of the 256 that the fold takes, some are left for the number of an attempt."""


def concerns(events: Sequence[NewEvent]) -> bool:
    """Say whether any of these events means a command."""
    return any(isinstance(event.body, _CONCERN) for event in events)


def operation_name(stream: StreamId) -> str:
    """Return an operation's id in the fold, which knows no tenants. Raises ``BadInput``.

    No name holds a tab, so two operations never get the same one.
    """
    name = stream.operation_id
    if stream.tenant != "default":
        name = f"{stream.tenant}\t{name}"
    if len(name) > _OPERATION_ID_CHARACTERS_MAX:
        raise BadInput(
            f"operation id: tenant and id have {len(name)} characters; under a mission they may "
            f"have {_OPERATION_ID_CHARACTERS_MAX}"
        )
    return name


def attempt_name(operation: str, number: int) -> str:
    """Return the id of the fold's ``number``-th attempt of an operation."""
    return f"{operation}#{number}"


def operation_of_attempt(attempt: str) -> str:
    """Return which operation an attempt's id belongs to."""
    return attempt.rpartition("#")[0]


def action_of(opened: Opened) -> Plain:
    """Return the action as the fold knows it: what an approval's digest is over."""
    under = opened.under or {}
    return {
        "capability": opened.action,
        "resource": under.get("resource", ""),
        "payload": json.loads(opened.arguments or "{}"),
        "preconditions": json.loads(opened.preconditions or "{}"),
    }


def commands_for(
    stream: StreamId,
    before: History | None,
    events: Sequence[NewEvent],
    known: Operation | None,
    subject: str,
    epoch: int | None,
) -> list[Plain]:
    """Return the commands that these events mean, in order.

    ``known`` is the operation as the fold has it, ``subject`` that of its grant, ``epoch`` the one
    under which this process acts (None: that of the operation's own opening).
    """
    first = events[0].body
    opened = before.opened if before is not None else first
    assert isinstance(opened, Opened)
    plan = _Plan(operation_name(stream), opened, known, subject, epoch)
    refused_cost = _cost_of_refusal(before)
    relayed: Answered | None = None
    for event in events:
        body = event.body
        match body:
            case Opened():
                plan.admit()
            case Replied():
                left_none = body.kind is ReplyKind.NO_EFFECT
                refused_cost = body.cost if left_none else None
            case Supposed():
                plan.suppose(refused_cost or "0")
                refused_cost = None
            case Dispatched(redelivery=False):
                plan.dispatch(refused_cost or "0")
                refused_cost = None
            case Dispatched():
                plan.redeliver()
            case Reopened():
                plan.prepare("0")
            case Answered(by=str()):
                relayed = body
            case Settled():
                plan.settle(body, relayed)
            case Corrected():
                plan.correct(body)
            case _:
                pass  # it says nothing of authority or money
    return plan.commands


def _cost_of_refusal(before: History | None) -> str | None:
    """What the last attempt cost although it left no effect."""
    last = before.attempts[-1] if before is not None and before.attempts else None
    if last is None or not last.left_no_effect or last.reply is None:
        return None
    return last.reply.cost


class _Now(NamedTuple):
    """Where the last attempt stands after the commands so far."""

    attempt_id: str
    status: AttemptStatus
    effect: Effect | None = None
    epoch: int | None = None


class _Plan:
    """The commands so far, and where they lead the operation's last attempt."""

    def __init__(
        self,
        name: str,
        opened: Opened,
        known: Operation | None,
        subject: str,
        epoch: int | None,
    ) -> None:
        self.commands: list[Plain] = []
        self._name, self._opened, self._subject = name, opened, subject
        self._under: Mapping[str, str] = opened.under or {}
        self._amount = opened.reserve or "0"
        self._epoch = str(epoch) if epoch is not None else self._under.get("epoch", "1")
        self._count = 0 if known is None else len(known.attempts)
        attempts = () if known is None else known.attempts[-2:]
        stands = [_Now(each.id, each.status, each.effect, each.epoch) for each in attempts]
        self._now: _Now | None = stands[-1] if stands else None
        self._earlier: _Now | None = stands[0] if len(stands) > 1 else None
        if attempts:
            self._amount = write_amount(attempts[-1].amount)

    def admit(self) -> None:
        """A new operation and its first attempt; where it undoes another, a compensation."""
        self._count = 1
        attempt_id = attempt_name(self._name, 1)
        members: Plain = {
            "runId": self._under["run"],
            "operationId": self._name,
            "attemptId": attempt_id,
            "grantId": self._under["grant"],
            "subject": self._subject,
            "action": action_of(self._opened),
            "amount": self._amount,
            "epoch": self._epoch,
        }
        original = self._under.get("compensates")
        if original is None:
            self._say("admit", members)
        else:
            self._say("compensate", {**members, "originalOperationId": original})
        self._now = _Now(attempt_id, AttemptStatus.PREPARED)

    def prepare(self, cost_before: str) -> _Now:
        """See to it that an attempt is prepared: a fresh one, once the one before has an answer."""
        if self._now is None:
            self.admit()
        assert self._now is not None
        if self._now.status is AttemptStatus.DISPATCHED:
            # Its absence was believed, or it left no effect: the trail permits the next one.
            self._answer(Effect.CONFIRMED_NOT_APPLIED, cost_before, "a later attempt may be sent")
        if self._now.status is not AttemptStatus.PREPARED:
            self._count += 1
            attempt_id = attempt_name(self._name, self._count)
            self._say(
                "retry",
                {
                    "operationId": self._name,
                    "attemptId": attempt_id,
                    "amount": self._amount,
                    "epoch": self._epoch,
                },
            )
            self._earlier = self._now
            self._now = _Now(attempt_id, AttemptStatus.PREPARED)
        return self._now

    def dispatch(self, cost_before: str) -> None:
        """Dispatch what is prepared, or a fresh attempt."""
        now = self.prepare(cost_before)
        members: Plain = {"attemptId": now.attempt_id, "epoch": self._epoch}
        if "node" in self._under:
            members["nodeId"] = self._under["node"]
        self._say("dispatch", members)
        self._now = now._replace(status=AttemptStatus.DISPATCHED)

    def suppose(self, cost_before: str) -> None:
        """A dispatch that may be forgotten: an attempt that is out is charged for it already."""
        if self._now is None or self._now.status is not AttemptStatus.DISPATCHED:
            self.dispatch(cost_before)

    def redeliver(self) -> None:
        """The same attempt once more under its key: no second reservation."""
        if self._now is None or self._now.status is not AttemptStatus.DISPATCHED:
            self.dispatch("0")
            return
        self._say("redeliver", {"attemptId": self._now.attempt_id, "epoch": self._epoch})

    def settle(self, settled: Settled, relayed: Answered | None) -> None:
        """Spend or release, once; an answer that a person brought is that person's review."""
        effect = _effect_of(settled.outcome)
        applied = effect is Effect.CONFIRMED_APPLIED
        cost = settled.cost or (self._amount if applied else "0")
        now = self._now
        if now is None:
            return
        if now.status is AttemptStatus.DISPATCHED and relayed is not None:
            self._review(effect, cost, relayed.by or "", relayed.evidence or "")
        elif now.status is AttemptStatus.DISPATCHED:
            self._answer(effect, cost, str(settled.code))
        elif now.status is AttemptStatus.PREPARED:
            self._release(now)
            if applied and self._earlier is not None:  # nothing was dispatched since
                self._now = self._earlier
        now = self._now
        if now is not None and now.status is AttemptStatus.SETTLED and now.effect is not effect:
            self._correct(effect, cost, "the trail", f"{settled.code}: {settled.text}")

    def correct(self, corrected: Corrected) -> None:
        """A person set it right."""
        effect = _effect_of(corrected.outcome)
        applied = effect is Effect.CONFIRMED_APPLIED
        cost = corrected.cost or (self._amount if applied else "0")
        now = self._now
        if now is None or (now.status is AttemptStatus.RELEASED and not applied):
            return
        if now.status is AttemptStatus.PREPARED and not applied:
            self._release(now)
        elif now.status is AttemptStatus.DISPATCHED:
            self._review(effect, cost, corrected.by, corrected.evidence)
        else:
            self._correct(effect, cost, corrected.by, corrected.evidence)

    # --- one command each ------------------------------------------------------------------------

    def _say(self, kind: str, members: Plain) -> None:
        self.commands.append({"type": kind, **members})

    def _answer(self, effect: Effect, cost: str, evidence: str) -> None:
        assert self._now is not None
        members: Plain = {"attemptId": self._now.attempt_id, "evidence": evidence}
        # A fact is taken under the epoch of its dispatch, whoever owns the run now.
        members["epoch"] = self._epoch if self._now.epoch is None else str(self._now.epoch)
        self._say("settle", {**members, "effect": effect.value, "actualCost": cost})
        self._now = self._now._replace(status=AttemptStatus.SETTLED, effect=effect)

    def _review(self, effect: Effect, cost: str, by: str, evidence: str) -> None:
        assert self._now is not None
        applied = effect is Effect.CONFIRMED_APPLIED
        self._say(
            "review",
            {
                "attemptId": self._now.attempt_id,
                "reviewer": by,
                "decision": "APPLIED" if applied else "NOT_APPLIED",
                "actualCost": cost,
                "evidence": evidence,
            },
        )
        self._now = self._now._replace(status=AttemptStatus.SETTLED, effect=effect)

    def _release(self, now: _Now) -> None:
        self._say("release", {"attemptId": now.attempt_id})
        self._now = now._replace(status=AttemptStatus.RELEASED)

    def _correct(self, effect: Effect, cost: str, by: str, evidence: str) -> None:
        assert self._now is not None
        self._say(
            "correct",
            {
                "attemptId": self._now.attempt_id,
                "effect": effect.value,
                "actualCost": cost,
                "by": by,
                "evidence": evidence,
            },
        )
        self._now = self._now._replace(effect=effect)


def _effect_of(outcome: Status) -> Effect:
    committed = outcome is Status.COMMITTED
    return Effect.CONFIRMED_APPLIED if committed else Effect.CONFIRMED_NOT_APPLIED
