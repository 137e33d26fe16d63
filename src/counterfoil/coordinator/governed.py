"""A mission under the coordinator: its runs, grants and words, each one command through one log.

The operations themselves are governed by ``perform(..., under=grant)``: their commands go with
their events (``bridge``). What stands here is what people and programs say besides. Every method
raises ``Refused`` with the fold's code where the command may not happen now, and ``BadInput`` for
members that cannot be used; then nothing was stored. Times are aware datetimes, or milliseconds
since 1970 as an int or a decimal string, on the store's clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from counterfoil.coordinator.bridge import attempt_name, operation_name
from counterfoil.errors import BadInput, Refused
from counterfoil.mission import State, action_digest, find_operation, write_amount
from counterfoil.mission.contract import PROFILE
from counterfoil.operation.commands import Appended
from counterfoil.operation.events import NewEvent, Verified
from counterfoil.operation.replies import Answer, Result, Status
from counterfoil.operation.values import encode_value
from counterfoil.owners.results import Unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from counterfoil.coordinator.book import Book
    from counterfoil.coordinator.effects import Effect
    from counterfoil.coordinator.mission_head import Head
    from counterfoil.coordinator.outcome import Outcome
    from counterfoil.coordinator.people import Looked
    from counterfoil.operation.identity import StreamId
    from counterfoil.owners.port import Attempt

Moment = datetime | int | str
Evidence = str | Mapping[str, object]


class Money(NamedTuple):
    """Decimal strings of one unit: ``spent`` + ``held`` + ``free`` is the ``budget``, exactly.

    ``free`` has a minus where more was spent than there was.
    """

    budget: str
    spent: str
    held: str
    free: str


def money_of(state: State) -> Money:
    """Return a mission's money."""
    parts = state.parts
    free = parts.contract.budget - parts.spent - parts.reserved
    amounts = (parts.contract.budget, parts.spent, parts.reserved, free)
    return Money(*(write_amount(cast("Any", amount)) for amount in amounts))


class Grant(NamedTuple):
    """Authority in one run, to hand to ``perform(..., under=grant)``."""

    run: Run
    id: str

    @property
    def mission_id(self) -> str:
        """The mission that it is of."""
        return self.run.mission.id

    def delegate(
        self,
        grant_id: str,
        *,
        subject: str,
        actions: Iterable[str],
        resources: Iterable[str],
        limit: str,
        not_before: Moment,
        expires_at: Moment,
        can_delegate: bool = False,
        depth: int = 0,
    ) -> Grant:
        """Hand on a part of this authority; it reserves nothing."""
        terms = _terms(
            grant_id, subject, actions, resources, limit, not_before, expires_at,
            can_delegate=can_delegate, depth=depth,
        )  # fmt: skip
        self.run.mission.do({"type": "delegate", "parentGrantId": self.id, "grant": terms})
        return Grant(self.run, grant_id)

    def revoke(self, reason: Evidence) -> None:
        """Take it back, with all below it."""
        self.run.mission.do({"type": "revokeGrant", "grantId": self.id, "reason": reason})


class Run(NamedTuple):
    """One run, as the holder of ``epoch``: whoever claims it later leaves this one stale."""

    mission: Mission
    id: str
    epoch: int

    def grant(
        self,
        grant_id: str,
        *,
        subject: str,
        actions: Iterable[str],
        resources: Iterable[str],
        limit: str,
        not_before: Moment,
        expires_at: Moment,
        can_delegate: bool = False,
        depth: int = 0,
    ) -> Grant:
        """Give authority: to whom, for which effects on which resources, until when, how much.

        ``actions`` are names of effects. ``depth`` counts the delegations that may follow below.
        """
        terms = _terms(
            grant_id, subject, actions, resources, limit, not_before, expires_at,
            can_delegate=can_delegate, depth=depth,
        )  # fmt: skip
        self.mission.do({"type": "grant", "grant": terms})
        return Grant(self, grant_id)

    def granted(self, grant_id: str) -> Grant:
        """Return a grant that was given before. Raises ``Refused`` (`grant_unknown`)."""
        if grant_id not in self.mission.state.parts.grants:
            raise Refused("grant_unknown", f"no grant {grant_id!r} in mission {self.mission.id!r}")
        return Grant(self, grant_id)

    def claim(self, owner: str) -> Run:
        """Take the run over: earlier holders can begin nothing in it any more."""
        epoch = self.mission.run(self.id).epoch + 1
        said = {"type": "claimRun", "runId": self.id, "owner": owner, "epoch": str(epoch)}
        self.mission.do(said)
        return self.mission.holding(self.id, epoch)

    def finish(self, status: str = "COMPLETED") -> None:
        """Close the run as COMPLETED, or as FAILED."""
        self._do("finishRun", status=status)

    def record_criterion(self, criterion: str, evidence: Evidence, *, met: bool = True) -> None:
        """Say whether a criterion of the contract is met in this run."""
        self._do("recordCriterion", criterion=criterion, met=met, evidence=evidence)

    def attach_graph(self, graph_id: str) -> None:
        """Let the run follow a registered graph."""
        self._do("attachGraph", graphId=graph_id)

    def complete_node(
        self,
        node: str,
        operation: str | None = None,
        *,
        original: str | None = None,
        approval: str | None = None,
        tenant: str = "default",
    ) -> None:
        """Mark a node DONE with what completed it: an operation, the one it undid, an approval."""
        mission = self.mission
        result: dict[str, object] = {}
        if operation is not None:
            result["operationId"] = mission.name_of(operation, tenant)
        if original is not None:
            result["originalOperationId"] = mission.name_of(original, tenant)
        if approval is not None:
            result["approvalId"] = approval
        self._do("completeNode", nodeId=node, result=result)

    def _do(self, kind: str, **members: object) -> None:
        self.mission.do({"type": kind, "runId": self.id, "epoch": str(self.epoch), **members})


class Mission:
    """One mission of a book. ``book.mission`` returns the one that the book was opened with."""

    def __init__(self, book: Book, head: Head) -> None:
        self._book, self._head = book, head

    @property
    def id(self) -> str:
        """The contract's missionId."""
        return self._head.stream.operation_id

    @property
    def state(self) -> State:
        """The fold's state now, as the log has it; operations at rest may have left it."""
        return self._head.refresh()

    @property
    def money(self) -> Money:
        """What is spent, held and free."""
        return money_of(self.state)

    def do(self, command: Mapping[str, object]) -> State:
        """Put one command, under its JSON names, to the fold; return the state after it.

        Attempts are not commanded here: ``perform`` does that, together with the trail.
        """
        self._book.check_process()
        return self._head.do(command)

    # --- runs and graphs -------------------------------------------------------------------------

    def start_run(self, run_id: str) -> Run:
        """Begin a run, at epoch 1."""
        self.do({"type": "startRun", "runId": run_id})
        return self.holding(run_id, 1)

    def run(self, run_id: str) -> Run:
        """Return a run at its current epoch. Raises ``Refused`` (`run_unknown`).

        Whoever calls this goes on as the run's present owner. A worker that may have been replaced
        meanwhile must not: it keeps the Run that it has, or claims.
        """
        run = self.state.parts.runs.get(run_id)
        if run is None:
            raise Refused("run_unknown", f"no run {run_id!r} in mission {self.id!r}; start it")
        return self.holding(run_id, run.epoch)

    def holding(self, run_id: str, epoch: int) -> Run:
        """Note under which epoch this process acts in a run."""
        self._book.missions.epochs[self.id, run_id] = epoch
        return Run(self, run_id, epoch)

    def register_graph(self, graph: Mapping[str, object]) -> None:
        """Make a graph known: its id, revision and nodes under their JSON names."""
        self.do({"type": "registerGraph", "graph": graph})

    def register_trigger(self, trigger_id: str) -> None:
        """Make a trigger known."""
        self.do({"type": "registerTrigger", "triggerId": trigger_id})

    def fire_trigger(self, trigger_id: str, firing_id: str, run_id: str) -> Run:
        """Start a run once for a firing; the same firing again starts nothing."""
        said = {"type": "fireTrigger", "triggerId": trigger_id, "firingId": firing_id}
        self.do({**said, "runId": run_id})
        return self.run(run_id)

    # --- authority -------------------------------------------------------------------------------

    def revoke(self, grant_id: str, reason: Evidence) -> None:
        """Take a grant back, with all below it."""
        self.do({"type": "revokeGrant", "grantId": grant_id, "reason": reason})

    def digest_of(
        self,
        effect: Effect[..., Any],
        *,
        resource: str,
        preconditions: Mapping[str, object] | None = None,
        **arguments: object,
    ) -> str:
        """Return the digest of what ``perform`` would do: what an approval names."""
        effect.bind(arguments)
        return action_digest(
            {
                "capability": effect.name,
                "resource": resource,
                "payload": arguments,
                "preconditions": dict(preconditions or {}),
            }
        )

    def approve(
        self,
        approval_id: str,
        *,
        operation_id: str,
        action_digest: str,
        max_amount: str,
        approver: str,
        expires_at: Moment,
        decision: str = "APPROVED",
        tenant: str = "default",
    ) -> None:
        """Record an approver's word (APPROVED or REJECTED) on one operation's action."""
        approval = {
            "id": approval_id,
            "operationId": self.name_of(operation_id, tenant),
            "actionDigest": action_digest,
            "maxAmount": max_amount,
            "approver": approver,
            "decision": decision,
            "expiresAt": _ms(expires_at),
        }
        self.do({"type": "approve", "approval": approval})

    def stop(self, reason: Evidence, by: str) -> None:
        """Admit and dispatch nothing any more; what is under way may still be settled."""
        self.do({"type": "stopMission", "reason": reason, "by": by})

    # --- facts -----------------------------------------------------------------------------------

    def review(
        self,
        looked: Looked,
        decision: str,
        *,
        reviewer: str,
        evidence: str,
        actual_cost: str | None = None,
    ) -> Outcome[Any]:
        """Record a person's finding on an unknown attempt: APPLIED, NOT_APPLIED, STILL_UNKNOWN.

        The first two are relayed answers of the owner (``book.people.relay``), believed or not
        under the same rule; the third keeps the money held and forbids a redelivery until somebody
        knows. ``looked`` is ``book.people.look(id)``, taken before the owner was asked.
        """
        answers = {
            "APPLIED": Answer(Result.PRESENT, cost=actual_cost),
            "NOT_APPLIED": Answer(Result.ABSENT, says_final=True, cost=actual_cost),
        }
        people = self._book.people
        if decision in answers:
            return people.relay(looked, answers[decision], by=reviewer, evidence=evidence)
        name = operation_name(looked.stream)
        known = find_operation(self.state, name)  # what is unknown is live
        said = {"type": "review", "reviewer": reviewer, "decision": decision, "actualCost": "0"}
        count = 1 if known is None else len(known.attempts)
        self.do({**said, "attemptId": attempt_name(name, count), "evidence": evidence})
        return self._book.outcome(looked.stream.operation_id, tenant=looked.stream.tenant)

    def name_of(self, operation_id: str, tenant: str = "default") -> str:
        """Return an operation's id in the state's tables, which know no tenants."""
        return operation_name(self._book.stream(operation_id, tenant))


def _terms(
    grant_id: str,
    subject: str,
    actions: Iterable[str],
    resources: Iterable[str],
    limit: str,
    not_before: Moment,
    expires_at: Moment,
    *,
    can_delegate: bool,
    depth: int,
) -> dict[str, object]:
    for name, given in (("actions", actions), ("resources", resources)):
        if isinstance(given, str):
            raise BadInput(f"{name}: give a list of names, not one text")
    return {
        "id": grant_id,
        "subject": subject,
        "profile": PROFILE,
        "actions": list(actions),
        "resources": list(resources),
        "notBefore": _ms(not_before),
        "expiresAt": _ms(expires_at),
        "limit": limit,
        "canDelegate": can_delegate,
        "depth": str(depth),
    }


def _ms(moment: Moment) -> str:
    """Return a time as the fold writes it."""
    if not isinstance(moment, datetime):
        return str(moment)
    if moment.tzinfo is None:
        raise BadInput(f"{moment} has no time zone; give an aware datetime, or milliseconds")
    return str((moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1))


# --- compensation --------------------------------------------------------------------------------


def verify(
    book: Book,
    stream: StreamId,
    attempt: Attempt,
    look: Callable[[Attempt], object],
    outcome: Outcome[Any],
) -> Outcome[Any]:
    """Read the target after a compensation committed, and record what it showed.

    A look that raises proves nothing; that it raised is recorded, and it may be asked again.
    """
    try:
        answer, missing = encode_value(_shown(look(attempt)))
    except Exception as error:  # noqa: BLE001 - whatever a look raises is no answer
        answer, missing = None, f"it raised {type(error).__name__}"
    body = Verified(answer, None if answer is not None else missing or "it said nothing")
    while True:
        history = book.store.load(stream)
        assert history is not None, "it has just been carried"
        event = NewEvent(book.new_id(), book.worker_id, body)
        result = book.missions.append(stream, history, [event], None)
        if isinstance(result, Appended):
            return replace(outcome, verified=body)


def may_verify(outcome: Outcome[Any]) -> bool:
    """Say whether there is something to verify that was not answered yet."""
    seen = outcome.verified
    return outcome.status is Status.COMMITTED and (seen is None or seen.answer is None)


def _shown(said: object) -> object:
    if isinstance(said, Answer):
        return {"result": str(said.result), "value": said.value}
    if isinstance(said, Unknown):
        return {"result": "unknown", "value": said.detail}
    return said
