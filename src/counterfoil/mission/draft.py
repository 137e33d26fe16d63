"""The working copy that one command writes on. A refusal abandons it: the state is as it was.

Every write to an operation goes through ``put``, which moves the derived counts by what changed,
so that no check ever walks over the operations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from counterfoil.mission.state import (
    NO_LINKS,
    Operation,
    Parts,
    Run,
    State,
    Words,
)
from counterfoil.mission.vocabulary import AttemptStatus, Disposition

if TYPE_CHECKING:
    from counterfoil.mission.commands import Approval


class Retired(NamedTuple):
    """An operation that has left the live state, with its attempts and what was said of it."""

    operation_id: str
    operation: Operation
    approvals: tuple[Approval, ...]
    words: Words | None


class Lookup(Protocol):
    """Finds what has left the live state. Each returns None for an id that never left it."""

    def operation(self, operation_id: str, /) -> Retired | None:
        """Return the retired operation of this id."""

    def attempt(self, attempt_id: str, /) -> Retired | None:
        """Return the retired operation that has this attempt."""

    def approval(self, approval_id: str, /) -> Retired | None:
        """Return the retired operation that this approval is about."""


class Draft:
    """The parts of one state, open for one command."""

    __slots__ = (
        "approvals",
        "attempts",
        "contract",
        "events",
        "grants",
        "graphs",
        "lookup",
        "now_ms",
        "operations",
        "reserved",
        "runs",
        "spent",
        "stopped",
        "triggers",
        "words",
    )

    def __init__(self, state: State, lookup: Lookup | None) -> None:
        (
            self.contract,
            self.now_ms,
            self.spent,
            self.reserved,
            self.events,
            self.stopped,
            self.runs,
            self.grants,
            self.approvals,
            self.words,
            self.operations,
            self.attempts,
            self.graphs,
            self.triggers,
        ) = state.parts
        self.lookup = lookup

    def close(self) -> State:
        """Return the state that the command leads to."""
        return State(
            Parts(
                self.contract,
                self.now_ms,
                self.spent,
                self.reserved,
                self.events,
                self.stopped,
                self.runs,
                self.grants,
                self.approvals,
                self.words,
                self.operations,
                self.attempts,
                self.graphs,
                self.triggers,
            )
        )

    # --- what may have left the live state --------------------------------------------------------

    def operation(self, operation_id: str) -> Operation | None:
        """Return an operation, brought back from the lookup if it had left."""
        found = self.operations.get(operation_id)
        if found is None and self.lookup is not None:
            self._bring_back(self.lookup.operation(operation_id))
            return self.operations.get(operation_id)
        return found

    def holder(self, attempt_id: str) -> str | None:
        """Return the id of the operation that has an attempt, brought back if it had left."""
        found = self.attempts.get(attempt_id)
        if found is None and self.lookup is not None:
            self._bring_back(self.lookup.attempt(attempt_id))
            return self.attempts.get(attempt_id)
        return found

    def approval(self, approval_id: str) -> Approval | None:
        """Return an approval, brought back with its operation if it had left."""
        found = self.approvals.get(approval_id)
        if found is None and self.lookup is not None:
            self._bring_back(self.lookup.approval(approval_id))
            return self.approvals.get(approval_id)
        return found

    def _bring_back(self, retired: Retired | None) -> None:
        if retired is None or retired.operation_id in self.operations:
            return
        self.operations = self.operations.set(retired.operation_id, retired.operation)
        for attempt in retired.operation.attempts:
            self.attempts = self.attempts.set(attempt.id, retired.operation_id)
        for approval in retired.approvals:
            self.approvals = self.approvals.set(approval.id, approval)
        if retired.words is not None:
            self.words = self.words.set(retired.operation_id, retired.words)

    # --- writing ----------------------------------------------------------------------------------

    def put_run(self, run_id: str, run: Run) -> None:
        """Write a run."""
        self.runs = self.runs.set(run_id, run)

    def put(self, operation_id: str, old: Operation | None, new: Operation) -> None:
        """Write an operation, and move what is derived from it by what changed."""
        self.operations = self.operations.set(operation_id, new)
        self._count_in_run(old, new)
        if new.links is not NO_LINKS:
            self._count_in_nodes(old, new)
            if new.links.undoes is not None:
                self._count_in_original(old, new, new.links.undoes)

    def _count_in_run(self, old: Operation | None, new: Operation) -> None:
        # Only the last attempt of an operation may be prepared or dispatched.
        attempt = new.attempts[-1]
        now = attempt.status
        was = None if old is None else old.attempts[-1].status
        if now is was:
            return
        run_id = new.admission.run_id
        run = self.runs[run_id]
        prepared, unknown = run.prepared, run.unknown
        if now is AttemptStatus.PREPARED:
            prepared = prepared.set(attempt.id, None)
        elif was is AttemptStatus.PREPARED:
            prepared = prepared.without(attempt.id)
        if now is AttemptStatus.DISPATCHED:
            unknown += 1
        elif was is AttemptStatus.DISPATCHED:
            unknown -= 1
        self.runs = self.runs.set(run_id, run.counting(unknown, prepared))

    def _count_in_nodes(self, old: Operation | None, new: Operation) -> None:
        before = () if old is None or not _is_busy(old) else old.links.nodes
        after = new.links.nodes if _is_busy(new) else ()
        if before == after:
            return
        run_id = new.admission.run_id
        run = self.runs[run_id]
        nodes = run.nodes
        for names, step in ((before, -1), (after, 1)):
            for name in names:
                node = nodes[name]
                nodes = nodes.set(name, node._replace(busy=node.busy + step))
        self.put_run(run_id, run._replace(nodes=nodes))

    def _count_in_original(self, old: Operation | None, new: Operation, original_id: str) -> None:
        # An operation that undoes nothing yet was not counted before.
        counted = old if old is not None and old.links.undoes is not None else None
        blocking = new.blocks - (counted is not None and counted.blocks)
        undone = (new.applied > 0) - (counted is not None and counted.applied > 0)
        if not blocking and not undone:
            return
        original = self.operation(original_id)
        assert original is not None, "what is undone was admitted"
        links = original.links
        links = links._replace(blocking=links.blocking + blocking, undone=links.undone + undone)
        self.operations = self.operations.set(original_id, original._replace(links=links))


def _is_busy(operation: Operation) -> bool:
    return operation.disposition is not Disposition.CONFIRMED_NOT_APPLIED
