"""Carries one operation: a generator that yields what it needs and is sent what happened.

It does no I/O and reads no clock. A driver performs each command against a store, an owner and the
machine, and sends back a ``Sent``. Every observation is appended together with what it permits: an
answer and the resend or settlement that it licenses are one transaction (coordinator, "Order of
writes").
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from counterfoil.errors import (
    BrokenWorld,
    OperationConflict,
    OperationInFlight,
    OperationNotFound,
    Refused,
    StoreError,
)
from counterfoil.limits import LEASE_MARGIN_S
from counterfoil.operation import belief
from counterfoil.operation.commands import (
    Append,
    Appended,
    Call,
    Claimed,
    Command,
    Denied,
    Happened,
    Load,
    Pause,
    Prove,
    Question,
    RaiseFence,
    ReadToken,
    Sent,
)
from counterfoil.operation.conflict import differing
from counterfoil.operation.events import (
    Body,
    Dispatched,
    Event,
    Excluded,
    Leased,
    NewEvent,
    Reopened,
    Replied,
    Settled,
    Supposed,
)
from counterfoil.operation.history import Attempt, History, advance, begin
from counterfoil.operation.next_step import (
    DEDUPLICATED,
    Ask,
    Dispatch,
    Done,
    HandOver,
    Moment,
    Policy,
    Settle,
    Step,
    Wait,
    attempts_since_reopened,
    next_step,
    why_in_doubt,
)
from counterfoil.operation.observations import (
    answered,
    check_reopening,
    effect_to_claim,
    not_sent,
    replied,
    supposed,
)
from counterfoil.operation.promises import Fences, Promises, weaker
from counterfoil.operation.replies import (
    Answer,
    Code,
    Reason,
    Reply,
    ReplyKind,
    Result,
    Status,
)
from counterfoil.operation.takeover import Standing, standing, workers_in_question
from counterfoil.operation.task import Carrying, Ended, Memory, Task

POLL_S = 0.05
"""Seconds between two looks at an operation that another worker is carrying."""


def carry(task: Task) -> Carrying:
    """Carry one operation as far as it may go now; return how far that was.

    Raises ``OperationConflict``, ``OperationInFlight`` and ``OperationNotFound``; whatever a driver
    throws in goes through.
    """
    return _Carrier(task).run()


def carry_again(task: Task, by: str | None) -> Carrying:
    """Open a refused operation once more, because ``by`` asked for it, and carry it.

    Raises ``Refused`` unless it is settled as not run.
    """
    return _Carrier(task, seen=[Reopened(by)]).run()


def record_late_reply(task: Task, attempt: int, reply: Reply) -> Carrying:
    """Record the reply of a call that returned late, and the settlement if it settles."""
    return _Carrier(task, seen=[replied(attempt, reply)], stopped=True).run()


class _AnswerSeen(NamedTuple):
    question: belief.Question
    answer: Answer


@dataclass(slots=True)
class _Carrier:
    """The state of one ``carry``: the history as stored, and what was seen and is not stored yet.

    Observations are kept raw and turned into events against the history of the moment, so that an
    answer is judged against every attempt then in the store (T6).
    """

    task: Task
    history: History | None = None
    seen: list[Body | _AnswerSeen] = field(default_factory=list)
    opening: bool = False
    now_us: int = 0
    monotonic_s: float = 0.0
    stopped: bool = False
    memory: Memory = field(default_factory=Memory)
    in_doubt_since_s: float | None = None
    lease_taken_at_s: float = 0.0
    claimed_by: str | None = None
    live_value: object = None
    acted: bool = False
    denied: bool = False

    def run(self) -> Carrying:
        """Carry; a store that fails after a dispatch leaves it unknown, never committed."""
        try:
            return (yield from self.steps())
        except StoreError as error:
            history = self.history
            if history is None or not history.attempts or history.settled is not None:
                raise
            seen = [f"; the call came back {b.kind}" for b in self.seen if isinstance(b, Replied)]
            reason = Reason(Code.STORE_FAILED, f"{error}{''.join(seen)}")
            return Ended(Status.UNKNOWN, reason, history, not self.acted)

    def steps(self) -> Carrying:
        if self.task.memory is not None:
            self.memory = self.task.memory
        yield from self.load()
        while True:
            events, view = self.view()
            self.note_ends(view)
            step = next_step(view, self.promises(view), self.policy, self.moment())
            match step:
                case _ if self.stopped or isinstance(step, Settle | Done):
                    if (yield from self.settle(step, events)):
                        return self.ended(step)
                case Dispatch():
                    yield from self.dispatch(step, events)
                case Ask():
                    if (yield from self.store(events)) and (yield from self.hold_lease(step)):
                        if self.out_of_patience():
                            return self.ended(step)
                        yield from self.ask(step)
                case Wait() | HandOver():
                    if not (yield from self.store(events)):
                        continue
                    if isinstance(step, HandOver) or self.out_of_patience():
                        return self.ended(step)
                    yield from self.wait(step)

    def settle(self, step: Step, events: tuple[NewEvent, ...]) -> Generator[Command, Sent, bool]:
        if isinstance(step, Settle):
            body = Settled(step.outcome, step.reason.code, step.reason.text, step.cost)
            events = (*events, self.event(body))
        return (yield from self.store(events))

    # --- reading and writing ---------------------------------------------------------------------

    def do(self, command: Command) -> Generator[Command, Sent, Happened]:
        sent = yield command
        self.now_us, self.monotonic_s = sent.now_us, sent.monotonic_s
        self.stopped = self.stopped or sent.stop
        return sent.happened

    def load(self) -> Generator[Command, Sent, None]:
        loaded = yield from self.do(Load())
        assert loaded is None or isinstance(loaded, History)
        task = self.task
        if loaded is None:
            if task.opened is None:
                raise OperationNotFound(task.stream.operation_id)
            self.opening = True
            return
        self.opening = False
        self.history = loaded
        if task.opened is not None:
            members = differing(loaded.opened, task.opened)
            if members:
                raise OperationConflict(task.stream.operation_id, members)
        if loaded.settled is None:
            yield from self.prove(loaded)

    def prove(self, history: History) -> Generator[Command, Sent, None]:
        workers = workers_in_question(history, self.task.worker)
        if workers:
            dead = yield from self.do(Prove(workers))
            assert isinstance(dead, Mapping)
            already = {body.worker for body in self.seen if isinstance(body, Excluded)}
            already |= history.excluded_workers
            self.seen += [Excluded(w, why) for w, why in dead.items() if w not in already]

    def view(self) -> tuple[tuple[NewEvent, ...], History]:
        """The events that are not stored yet, and the history as if they were."""
        history = self.history
        events: list[NewEvent] = []
        for item in [*self.first_bodies(), *self.seen]:
            if isinstance(item, _AnswerSeen):
                assert history is not None
                asked, answer = item
                basis = belief.basis_of_belief(history, asked, answer, self.promises(history))
                body: Body = answered(asked, answer, basis)._replace(claimed_by=self.claimed_by)
            elif self.claimed_by is not None and isinstance(item, Replied):
                body = item._replace(claimed_by=self.claimed_by)
            else:
                body = item
            if isinstance(body, Reopened):
                check_reopening(history, self.task.stream)
            events.append(self.event(body))
            n = 1 if history is None else history.n + 1
            provisional = Event(n, self.now_us, self.task.worker, None, body)
            history = begin(provisional) if history is None else advance(history, provisional)
        assert history is not None
        return tuple(events), history

    def first_bodies(self) -> list[Body]:
        """What opens an operation, and a dispatch that a suspect store may have forgotten."""
        opened, suspect, history = self.task.opened, self.task.suspect, self.history
        if self.opening and opened is not None:
            first: list[Body] = [opened]
            return first if suspect is None else [*first, Supposed(1, opened.key, suspect)]
        carried = history is not None and (history.settled is None or self.reopens)
        forgotten = supposed(history, suspect) if history is not None and carried else None
        return [] if forgotten is None else [forgotten]

    @property
    def reopens(self) -> bool:
        return any(isinstance(body, Reopened) for body in self.seen)

    def store(self, events: tuple[NewEvent, ...]) -> Generator[Command, Sent, bool]:
        """Append; True when stored. False: the history is new, decide again."""
        if not events:
            return True
        expected = 0 if self.history is None else self.history.n
        dispatched = self.history is not None and self.history.attempts  # else it is a baseline
        claim = effect_to_claim(events) if dispatched and self.claimed_by is None else None
        before_s = self.monotonic_s
        result = yield from self.do(Append(expected, events, claim))
        match result:
            case Appended():
                self.history = result.history
                if isinstance(events[-1].body, Leased | Dispatched):
                    self.lease_taken_at_s = before_s
                self.seen.clear()
                self.opening = False
                return True
            case Claimed():
                self.claimed_by = result.operation_id
                return False
            case Denied():
                self.note_denial(result)
                return False
            case _:
                yield from self.load()
                return False

    def note_denial(self, denial: Denied) -> None:
        """Without authority for one more attempt, keep what was seen; without any, refuse all."""
        _, view = self.view()
        if self.denied or not attempts_since_reopened(view):
            raise Refused(denial.code, denial.detail)
        self.denied = True

    def event(self, body: Body, token: int | None = None, *, takes: bool = False) -> NewEvent:
        return NewEvent(self.task.new_id(), self.task.worker, body, token, takes)

    # --- acting ----------------------------------------------------------------------------------

    def dispatch(
        self, step: Dispatch, events: tuple[NewEvent, ...]
    ) -> Generator[Command, Sent, None]:
        task = self.task
        token: int | None = None
        if task.promises.fences is Fences.BY_LEASE:
            read = yield from self.do(ReadToken())
            if not isinstance(read, int):
                raise BrokenWorld(f"the owner's lease cannot be read ({read}); nothing was sent")
            token = read
        body = Dispatched(
            step.attempt,
            step.key,
            task.lease_s,
            task.policy.deadline_s,
            step.basis,
            step.redelivery,
        )
        dispatched = self.event(body, token, takes=token is None)
        if not (yield from self.store((*events, dispatched))):
            return
        self.acted = True
        assert self.history is not None
        attempt = self.history.attempts[-1]
        reply = yield from self.look_before_sending(attempt, step.basis)
        sent_at_us = None
        if reply is None:
            sent_at_us = self.now_us
            happened = yield from self.do(Call(attempt))
            assert isinstance(happened, Reply)
            reply = happened
        self.live_value = reply.value if reply.kind is ReplyKind.CONFIRMED else None
        self.seen.append(replied(attempt.number, reply, sent_at_us))

    def look_before_sending(
        self, attempt: Attempt, basis: str
    ) -> Generator[Command, Sent, Reply | None]:
        """The look before the first byte: it narrows a gap and licenses nothing."""
        left_s = self.lease_taken_at_s + self.task.lease_s - self.monotonic_s
        if left_s < (attempt.deadline_s or 0.0) + LEASE_MARGIN_S:
            return not_sent("too little of its lease was left")
        history = self.history
        if basis == DEDUPLICATED and history is not None and not self.may_send_again(history):
            # A retention window runs on while a decision waits for its commit.
            return not_sent("the owner may soon forget its key")
        if self.task.promises.fences is Fences.BY_LEASE:
            # Compared, never adopted: a frozen worker that adopts has un-fenced itself (T2).
            current = yield from self.do(ReadToken())
            if current != attempt.token:
                return not_sent("the owner's lease has moved to another token")
        return None

    def hold_lease(self, step: Ask) -> Generator[Command, Sent, bool]:
        """Ask under a lease; where the owner takes a fence, under a token above every attempt's."""
        assert self.history is not None
        history, fences = self.history, self.task.promises.fences
        mine = standing(history, self.task.worker, self.now_us) is Standing.MINE
        takes = step.fence and fences is not Fences.BY_LEASE
        above = max((a.token for a in history.attempts), default=0)
        if mine and not (takes and history.leases[-1].token <= above):
            return True
        token: int | None = None
        if fences is Fences.BY_LEASE:
            read = yield from self.do(ReadToken())
            if not isinstance(read, int):
                return True  # unread: the question goes out without a fence
            token = read
        leased = self.event(Leased(self.task.lease_s), token, takes=token is None)
        return (yield from self.store((leased,)))

    def ask(self, step: Ask) -> Generator[Command, Sent, None]:
        history = self.history
        assert history is not None
        attempt = next((a for a in reversed(history.attempts) if a.key == step.key), None)
        fence = yield from self.fence(attempt)
        began_s, began_us = self.monotonic_s, self.now_us
        question = belief.Question(
            key=step.key,
            asked_after=history.n,
            asked_at_us=began_us,
            fence=fence,
            end_known_s={n: began_s - at for n, at in self.memory.ends.items()},
        )
        carried = fence if self.task.promises.fences is Fences.ON_ASK else None
        answer = yield from self.do(Question(step.key, attempt, carried))
        self.acted = True
        self.memory.questions += 1
        self.memory.last_question_at_s = self.monotonic_s
        if self.in_doubt_since_s is None:
            self.in_doubt_since_s = began_s
        if isinstance(answer, Answer) and self.tells_something_new(question, answer):
            self.live_value = answer.value
            self.seen.append(_AnswerSeen(question, answer))

    def fence(self, attempt: Attempt | None) -> Generator[Command, Sent, int | None]:
        """Put a token in force at the owner before the question, where it takes one."""
        assert self.history is not None
        if attempt is None or not self.history.leases:
            return None  # a baseline: there is nothing to stop
        token = self.history.leases[-1].token
        match self.task.promises.fences:
            case Fences.ON_ASK:
                return token
            case Fences.BY_CALL:
                raised = yield from self.do(RaiseFence(token, attempt))
                return token if raised is True else None
            case Fences.BY_LEASE:
                read = yield from self.do(ReadToken())
                return read if isinstance(read, int) and not isinstance(read, bool) else None
            case _:
                return None

    def tells_something_new(self, question: belief.Question, answer: Answer) -> bool:
        """An absent answer that is not believed is stored once, not at every question."""
        history = self.history
        assert history is not None
        if answer.result is Result.PRESENT:
            return True
        last = history.answers[-1].n if history.answers else 0
        if last < max((a.dispatched_n for a in history.attempts), default=1):
            return True
        promises = self.promises(history)
        return belief.basis_of_belief(history, question, answer, promises) is not None

    def wait(self, step: Wait) -> Generator[Command, Sent, None]:
        if step.reason.code is Code.IN_FLIGHT and not self.task.wait_if_in_flight:
            raise OperationInFlight(self.task.stream.operation_id)
        if self.in_doubt_since_s is None:
            self.in_doubt_since_s = self.monotonic_s
        until_s = min(step.until_s, self.in_doubt_since_s + self.task.patience_s)
        if step.reason.code in LOOK_AGAIN:
            until_s = min(until_s, self.monotonic_s + POLL_S)
        yield from self.do(Pause(until_s))
        if step.reason.code in LOOK_AGAIN and not self.stopped:
            yield from self.load()

    # --- small things ----------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """How far to go; no further than the attempts there are, once another was denied."""
        policy = self.task.policy
        return policy._replace(attempts_max=1) if self.denied else policy

    def may_send_again(self, history: History) -> bool:
        return belief.may_send_again(
            history, self.promises(history), self.now_us, self.task.policy.ends_within_s
        )

    def promises(self, history: History) -> Promises:
        stored = history.opened.promises
        if self.task.opened is not None and stored == self.task.opened.promises:
            return self.task.promises
        return weaker(Promises.from_json(stored), self.task.promises)

    def moment(self) -> Moment:
        return Moment(
            worker=self.task.worker,
            now_us=self.now_us,
            monotonic_s=self.monotonic_s,
            end_known_at_s=self.memory.ends,
            questions=self.memory.questions,
            last_question_at_s=self.memory.last_question_at_s,
        )

    def note_ends(self, view: History) -> None:
        for attempt in view.attempts:
            if attempt.ended_n is not None:
                self.memory.ends.setdefault(attempt.number, self.monotonic_s)

    def out_of_patience(self) -> bool:
        since = self.in_doubt_since_s
        return self.stopped or (
            since is not None and self.monotonic_s >= since + self.task.patience_s
        )

    def ended(self, step: Step) -> Ended:
        assert self.history is not None
        if isinstance(step, Settle | Done):
            status, reason = step.outcome, step.reason
        elif isinstance(step, Wait | HandOver):
            status, reason = Status.UNKNOWN, step.reason
        else:
            status = Status.UNKNOWN
            reason = why_in_doubt(self.history, self.task.policy, self.moment())
        return Ended(status, reason, self.history, not self.acted, self.live_value)


LOOK_AGAIN = frozenset({Code.IN_FLIGHT, Code.SENDER_MAY_STILL_SEND, Code.CALL_STILL_RUNNING})
