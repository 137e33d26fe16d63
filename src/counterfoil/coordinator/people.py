"""What a person may decide: relay the owner's answer, close without it, correct, declare dead.

Each decision is made against the version that the person looked at, names who decided and on what
evidence, and is refused if the operation has moved since. What forbids belief in an absent answer
forbids a person's "not applied" too (coordinator, "People and corrections").
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from counterfoil.coordinator.outcome import Outcome, outcome_of
from counterfoil.errors import BadInput, OperationNotFound, Refused
from counterfoil.operation import belief
from counterfoil.operation.commands import Appended, Claimed, Denied
from counterfoil.operation.events import (
    FORGOTTEN,
    Answered,
    Body,
    Closed,
    Corrected,
    Event,
    Excluded,
    NewEvent,
    Settled,
    Supposed,
)
from counterfoil.operation.history import History, advance
from counterfoil.operation.next_step import attempts_since_reopened, known_effect
from counterfoil.operation.observations import answered, supposed
from counterfoil.operation.promises import Promises
from counterfoil.operation.replies import Answer, Code, Reason, Result, Status
from counterfoil.operation.task import Ended

if TYPE_CHECKING:
    from counterfoil.coordinator.book import Book
    from counterfoil.operation.identity import StreamId


class Looked(NamedTuple):
    """An operation as a person saw it. A relayed question begins here (T8)."""

    stream: StreamId
    version: int
    asked_at_us: int
    end_known_s: dict[int, float]


class People:
    """Decisions about a book's operations."""

    def __init__(self, book: Book) -> None:
        self._book = book

    def look(self, operation_id: str, *, tenant: str = "default") -> Looked:
        """Open an operation for a decision; ask the owner after this, not before.

        Raises ``OperationNotFound``.
        """
        stream = self._book.stream(operation_id, tenant)
        history = self._history(stream)
        return Looked(
            stream, history.n, self._book.now_us(), self._book.ends_known_s(stream, history)
        )

    def relay(self, looked: Looked, answer: Answer, *, by: str, evidence: str) -> Outcome[Any]:
        """Record the owner's answer that a person brings, with the evidence for it.

        A present answer settles as committed. An absent one settles as not run if it may be
        believed; else it is kept as a note, and the outcome stays unknown. The owner's own words
        may be relayed as final. Raises ``Refused`` for a stale decision.
        """
        _check(by, evidence)
        history = self._fresh(looked)
        attempt = history.attempts[-1] if history.attempts else None
        if attempt is None:
            raise Refused("nothing_was_sent", "nothing was dispatched, so there is no answer to it")
        key = history.uncovered[0].key if history.uncovered else attempt.key
        bodies: list[Body] = []
        forgotten = self._forgotten(history)
        if forgotten is not None:
            bodies.append(forgotten)
            history = _seen(history, forgotten)
        question = belief.Question(
            key, looked.version, looked.asked_at_us, end_known_s=looked.end_known_s
        )
        promises = replace(Promises.from_json(history.opened.promises), final_by_answer=True)
        basis = belief.basis_of_belief(history, question, answer, promises)
        body = answered(question, answer, basis)._replace(by=by, evidence=evidence)
        settled = _settlement(history, body)
        bodies += [body] if settled is None else [body, settled]
        return self._append(looked, bodies, claim=answer.effect_id)

    def close(self, looked: Looked, *, says: str, by: str, evidence: str) -> Outcome[Any]:
        """Close without the owner's answer: for us only, the trail stays unknown and charged.

        ``says`` is what the person takes to be so, in a word or two. Raises ``Refused``.
        """
        _check(by, evidence)
        history = self._fresh(looked)
        if history.settled is not None and history.disputed is None:
            raise Refused("settled", "it is settled; correct it, with evidence, if that is wrong")
        return self._append(looked, [Closed(says, by, evidence)])

    def correct(
        self, looked: Looked, outcome: Status, *, by: str, evidence: str, cost: str | None = None
    ) -> Outcome[Any]:
        """Set a settled or disputed operation right; the old answers stay. Raises ``Refused``."""
        _check(by, evidence)
        history = self._fresh(looked)
        if outcome is Status.UNKNOWN:
            raise BadInput("a correction says committed or not_run; leave it as it is otherwise")
        if history.settled is None and history.disputed is None and history.closed is None:
            raise Refused("not_settled", "it is not settled; relay the owner's answer instead")
        return self._append(looked, [Corrected(outcome, by, evidence, cost)])

    def cancel(self, looked: Looked, *, by: str, evidence: str) -> Outcome[Any]:
        """Settle as not run what was recorded, or reopened, and not dispatched since.

        What a mission held for it is free again. Raises ``Refused``.
        """
        _check(by, evidence)
        history = self._fresh(looked)
        dispatched = history.uncovered or attempts_since_reopened(history)
        if dispatched or history.settled is not None:
            raise Refused("dispatched", "it was dispatched or settled; relay the owner's answer")
        if self._forgotten(history) is not None:
            raise Refused(
                "forgotten", "a dispatch of it may be forgotten; resume it, to ask the owner"
            )
        text = f"{by} cancelled it before anything was dispatched: {evidence}"
        settled = Settled(Status.NOT_RUN, Code.SETTLED_BY_PERSON, text)
        return self._append(looked, [settled])

    def worker_dead(self, worker: str, *, by: str, evidence: str) -> list[str]:
        """Declare a worker dead on a person's word, and return the ids of the operations freed.

        The word is trusted: a worker that can still send may make a second effect. ``forgotten``
        stands for every worker before a suspect store was opened.
        """
        _check(by, evidence)
        book, freed = self._book, []
        if worker == book.worker_id:
            raise BadInput("that is this very worker")
        for row in book.store.unsettled(book.namespace, limit=1_000_000):
            history = self._history(row.stream)
            open_by = {a.worker for a in history.uncovered if a.ended_n is None}
            leased = {history.leases[-1].worker} if history.leases else set()
            if worker not in open_by | leased or worker in history.excluded_workers:
                continue
            body = Excluded(worker, "a person declared it dead", by, evidence)
            looked = Looked(row.stream, history.n, 0, {})
            self._append(looked, [body])
            freed.append(row.stream.operation_id)
        if not freed and worker != FORGOTTEN and book.store.worker(worker) is None:
            raise Refused("worker_unknown", f"no worker {worker!r} is known to this database")
        return freed

    # --- parts -----------------------------------------------------------------------------------

    def _history(self, stream: StreamId) -> History:
        history = self._book.store.load(stream)
        if history is None:
            raise OperationNotFound(stream.operation_id)
        return history

    def _fresh(self, looked: Looked) -> History:
        history = self._history(looked.stream)
        if history.n != looked.version:
            raise _stale(looked)
        return history

    def _forgotten(self, history: History) -> Supposed | None:
        """What a suspect store may have forgotten of an operation that is not settled."""
        return supposed(history, self._book.store.suspect) if history.settled is None else None

    def _append(self, looked: Looked, bodies: list[Body], claim: str | None = None) -> Outcome[Any]:
        book = self._book
        history = self._fresh(looked)
        events = [NewEvent(book.new_id(), book.worker_id, body) for body in bodies]
        result = book.missions.append(looked.stream, history, events, claim)
        if isinstance(result, Denied):
            raise Refused(result.code, result.detail)
        if isinstance(result, Claimed):
            raise Refused(
                "effect_claimed", f"that effect belongs to operation {result.operation_id!r}"
            )
        if not isinstance(result, Appended):
            raise _stale(looked)
        return outcome_of(looked.stream.operation_id, standing_of(result.history))


def _seen(history: History, body: Body) -> History:
    """The history as if this were stored."""
    return advance(history, Event(history.n + 1, history.last_at_us, "", None, body))


def _settlement(history: History, body: Answered) -> Settled | None:
    """What a relayed answer settles, if it settles anything."""
    if history.settled is not None:
        return None
    view = _seen(history, body)
    known = known_effect(view)
    if known is not None:
        return Settled(known.outcome, known.reason.code, known.reason.text, known.cost)
    if body.result is Result.ABSENT and not view.uncovered:
        text = f"{body.by} relayed the owner's answer: it holds no effect"
        return Settled(Status.NOT_RUN, Code.SETTLED_BY_PERSON, text, body.cost)
    return None


def standing_of(history: History) -> Ended:
    """Return how an operation stands, without a step taken."""
    settled = history.settled
    if history.disputed is not None:
        status, reason = Status.UNKNOWN, history.disputed
    elif history.closed is not None:
        text = f"{history.closed.by} closed it without the owner's answer"
        status, reason = Status.UNKNOWN, Reason(Code.CLOSED_BY_PERSON, text)
    elif settled is not None:
        status, reason = settled.outcome, Reason(settled.code, settled.text)
    else:
        text = "it is not settled; perform it again, or resume it"
        status, reason = Status.UNKNOWN, Reason(Code.AWAITING_ANSWER, text)
    return Ended(status, reason, history, replayed=True)


def _check(by: str, evidence: str) -> None:
    if not by.strip() or not evidence.strip():
        raise BadInput("a decision names who decides and the evidence for it")


def _stale(looked: Looked) -> Refused:
    return Refused(
        "stale_decision",
        f"operation {looked.stream.operation_id!r} has moved since version {looked.version}; "
        "look at it again, then decide",
    )
