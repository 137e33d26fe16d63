"""The API: a book of operations, kept in one store, carried out by one worker."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast, overload

from counterfoil.coordinator import governed
from counterfoil.coordinator.clock import SystemClock
from counterfoil.coordinator.drive import Clock, Shell, drive
from counterfoil.coordinator.drive_async import drive_async
from counterfoil.coordinator.effects import Effect, registered
from counterfoil.coordinator.hands import Hands
from counterfoil.coordinator.heart import Heart
from counterfoil.coordinator.missions import Missions, contract_of
from counterfoil.coordinator.opening import Options, opened_of
from counterfoil.coordinator.outcome import Outcome, outcome_of
from counterfoil.coordinator.people import People, standing_of
from counterfoil.coordinator.worker import Worker
from counterfoil.errors import (
    BadInput,
    EffectNotRegistered,
    OperationNotFound,
    Refused,
    StoreError,
)
from counterfoil.limits import LEASE_MARGIN_S, LEASE_S, PATIENCE_S
from counterfoil.operation import protocol
from counterfoil.operation.identity import StreamId, check_name
from counterfoil.operation.next_step import Policy
from counterfoil.operation.promises import Duration, seconds
from counterfoil.operation.task import Ended, Memory, Task
from counterfoil.store.sqlite import SqliteStore
from counterfoil.store.witness import Witness

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from counterfoil.mission import Contract
    from counterfoil.operation.events import Opened
    from counterfoil.operation.history import History
    from counterfoil.operation.replies import Reply
    from counterfoil.operation.task import Carrying
    from counterfoil.owners.port import Attempt
    from counterfoil.store.port import Store, WorkerRecord

P = ParamSpec("P")
R = TypeVar("R")

ATTEMPTS_MAX = 3
"""Dispatches of one operation, the first included, before it is left as it is."""


def open_book(
    where: str | os.PathLike[str],
    *,
    create: bool = False,
    namespace: str = "default",
    patience: Duration = PATIENCE_S,
    lease: Duration = LEASE_S,
    attempts_max: int = ATTEMPTS_MAX,
    witness: str | os.PathLike[str] | None = None,
    witness_key: str | os.PathLike[str] | None = None,
    mission: Contract | Mapping[str, object] | str | bytes | None = None,
) -> Book:
    """Open the book at ``where``, a SQLite file; ``create=True`` makes one that is not there.

    ``namespace`` keeps staging and production apart. ``patience`` is how long ``perform`` waits for
    an owner's answer, ``lease`` how long a worker's right to dispatch lasts. ``witness`` is a file
    that remembers how far the log had come, so that a restored older copy is found out: beside the
    database unless you name another place; "each" writes it with every commit, one more sync.
    ``witness_key`` signs it. ``mission`` is the contract that governs every operation begun here.
    Raises ``StoreError`` with what to do next, ``BadInput`` for a contract that is none.
    """
    contract = contract_of(mission)
    path = Path(where)
    clock = SystemClock()
    beside = path.with_name(path.name + ".witness")
    seen = Witness(
        beside if witness in (None, "each") else Path(cast("str", witness)),
        each=witness == "each",
        key=None if witness_key is None else Path(witness_key),
    )
    store = SqliteStore(path, create=create, now_us=clock.now_us, witness=seen)
    worker = None
    try:
        worker = Worker(path.with_name(path.name + ".workers"))
        return Book(
            store,
            worker,
            clock,
            namespace=namespace,
            patience=patience,
            lease=lease,
            attempts_max=attempts_max,
            mission=contract,
        )
    except BaseException:
        store.close()
        if worker is not None:
            worker.end(leave_no_trace=True)
        raise


class Book:
    """Operations under one namespace. Safe for several threads; not across a fork.

    Use it as a context manager. ``open_book`` makes one over a file.
    """

    def __init__(
        self,
        store: Store,
        worker: Worker,
        clock: Clock,
        *,
        namespace: str = "default",
        patience: Duration = PATIENCE_S,
        lease: Duration = LEASE_S,
        attempts_max: int = ATTEMPTS_MAX,
        mission: Contract | Mapping[str, object] | str | bytes | None = None,
    ) -> None:
        if attempts_max < 1:
            raise BadInput("attempts_max must be at least 1")
        self.store = store
        self.namespace = check_name(namespace, "namespace")
        self._worker, self._clock = worker, clock
        self._patience_s = seconds(patience, of="patience")
        self._lease_s = seconds(lease, of="lease")
        self._attempts_max = attempts_max
        self._hands = Hands(clock)
        contract = contract_of(mission)
        self.missions = Missions(store, worker.record, _new_id, self.namespace, contract)
        self._heart = Heart(store, worker, clock, self._lease_s, _new_id)
        self._memories: dict[StreamId, Memory] = {}

    @property
    def worker_id(self) -> str:
        """The random name under which this book dispatches."""
        return self._worker.id

    # --- carrying out ----------------------------------------------------------------------------

    @overload
    def perform(
        self, effect: Effect[P, R], operation_id: str, /, *args: P.args, **kwargs: P.kwargs
    ) -> Outcome[R]: ...
    @overload
    def perform(
        self,
        effect: Effect[..., R],
        operation_id: str,
        /,
        *,
        key: str | None = None,
        reserve: str | None = None,
        preconditions: Mapping[str, Any] | None = None,
        tenant: str = "default",
        under: governed.Grant | None = None,
        resource: str | None = None,
        node: str | None = None,
        patience: Duration | None = None,
        wait_if_in_flight: bool = True,
        **arguments: Any,
    ) -> Outcome[R]: ...
    def perform(
        self, effect: Effect[..., Any], operation_id: str, /, *args: Any, **given: Any
    ) -> Any:
        """Carry the operation to at most one effect, and return how it stands.

        Performed again under the same id it continues, or answers from the book. ``key``: your own
        idempotency key; ``reserve``: a decimal amount held until it settles; ``preconditions``:
        what must hold at the owner, part of the digest; ``patience``: how long to wait for an
        answer. With a mission, ``under`` is the grant to act by, ``resource`` what is acted on,
        ``node`` the node of the run's graph. Raises ``BadInput`` before anything is stored,
        ``OperationConflict`` for an id that was used with something else, ``OperationInFlight`` if
        ``wait_if_in_flight=False``, ``Refused`` where the mission does not allow it, and
        ``StoreError`` if nothing could be recorded; then nothing was sent.
        """
        task = self._task(effect, operation_id, args, given)
        self._check_sync(effect)
        with self._hands.on(task):
            ended = drive(protocol.carry(task), self._shell(task, effect))
        return self._outcome(task, ended)

    @overload
    async def perform_async(
        self, effect: Effect[P, R], operation_id: str, /, *args: P.args, **kwargs: P.kwargs
    ) -> Outcome[R]: ...
    @overload
    async def perform_async(
        self,
        effect: Effect[..., R],
        operation_id: str,
        /,
        *,
        key: str | None = None,
        reserve: str | None = None,
        preconditions: Mapping[str, Any] | None = None,
        tenant: str = "default",
        under: governed.Grant | None = None,
        resource: str | None = None,
        node: str | None = None,
        patience: Duration | None = None,
        wait_if_in_flight: bool = True,
        **arguments: Any,
    ) -> Outcome[R]: ...
    async def perform_async(
        self, effect: Effect[..., Any], operation_id: str, /, *args: Any, **given: Any
    ) -> Any:
        """As ``perform``, under asyncio; the effect may be a plain or an async function."""
        task = self._task(effect, operation_id, args, given)
        async with self._hands.on_async(task):
            ended = await drive_async(protocol.carry(task), self._shell(task, effect))
        return self._outcome(task, ended)

    def retry(
        self, operation_id: str, *, tenant: str = "default", by: str | None = None
    ) -> Outcome[Any]:
        """Try a refused operation again: one that is settled as not run, and only that.

        Where the owner replays refusals, its key is spent and a new generation of it is used.
        Raises ``OperationNotFound``, ``EffectNotRegistered`` or ``Refused``.
        """
        effect, task = self._existing(operation_id, tenant, self._patience_s)
        self._check_sync(effect)
        with self._hands.on(task):
            ended = drive(protocol.carry_again(task, by), self._shell(task, effect))
        return self._outcome(task, ended)

    def resume(
        self, operation_id: str, *, tenant: str = "default", patience: Duration | None = None
    ) -> Outcome[Any]:
        """Carry a recorded operation on, from its stored arguments.

        Raises ``OperationNotFound`` or ``EffectNotRegistered``.
        """
        patience_s = self._patience_s if patience is None else seconds(patience, of="patience")
        effect, task = self._existing(operation_id, tenant, patience_s)
        return self._carry_on(effect, task)

    def recover(
        self, *, limit: int = 1000, until: Callable[[], bool] = lambda: False
    ) -> list[Outcome[Any]]:
        """Take one step with each unsettled operation, those changed longest ago first.

        Each is asked about at most once, on a schedule that widens from call to call; what a live
        worker carries is left to it. Operations of effects that this process has not registered
        are returned as they stand. ``until`` ends it early when it says True. Call it again, or
        let `counterfoil work` do so.
        """
        self.check_process()
        outcomes = []
        for row in self.store.unsettled(self.namespace, limit):
            if until():
                break
            stream = row.stream
            effect = registered(row.action)
            if effect is None or effect.adapter.calls_async or effect.adapter.asks_async:
                outcomes.append(self.outcome(stream.operation_id, tenant=stream.tenant))
                continue
            memory = self._memories.setdefault(stream, Memory())
            task = self._make_task(effect, stream, None, 0.0, wait=False)._replace(memory=memory)
            try:
                outcomes.append(self._carry_on(effect, task))
            except Refused:  # another worker carries it, or its mission allows no more
                outcomes.append(self.outcome(stream.operation_id, tenant=stream.tenant))
        return outcomes

    def _carry_on(self, effect: Effect[..., Any], task: Task) -> Outcome[Any]:
        self._check_sync(effect)
        with self._hands.on(task):
            ended = drive(protocol.carry(task), self._shell(task, effect))
        return self._outcome(task, ended)

    def _outcome(self, task: Task, ended: Ended) -> Outcome[Any]:
        """Keep what this process knows of an operation only while it is not settled."""
        if ended.history.settled is not None:
            self._memories.pop(task.stream, None)
        elif task.memory is not None:
            self._memories[task.stream] = task.memory
        return outcome_of(task.stream.operation_id, ended)

    def outcome(self, operation_id: str, *, tenant: str = "default") -> Outcome[Any]:
        """Return how an operation stands, without sending or asking.

        Raises ``OperationNotFound``.
        """
        self.check_process()
        stream = self.stream(operation_id, tenant)
        history = self.store.load(stream)
        if history is None:
            raise OperationNotFound(operation_id)
        return outcome_of(operation_id, standing_of(history))

    def compensate(
        self,
        operation_id: str,
        effect: Effect[..., R],
        new_id: str,
        /,
        *,
        verify: Callable[[Attempt], object] | None = None,
        tenant: str = "default",
        **given: Any,
    ) -> Outcome[R]:
        """Undo an applied operation by a new one of its own, under the mission; both trails stay.

        Takes the options of ``perform``. ``verify`` reads the target once the new one committed;
        what it returns is recorded, as ``Outcome.verified``. Raises ``Refused`` with the fold's
        code while the original is unknown, disputed, never applied or compensated already.
        """
        original = self.stream(operation_id, tenant)
        task = self._task(effect, new_id, (), {**given, "tenant": tenant}, original)
        if self.store.load(task.stream) is None:
            self.missions.check_original(self.store.load(original))
        outcome = self._carry_on(effect, task)
        if verify is None or not governed.may_verify(outcome):
            return outcome
        shell = self._shell(task, effect)
        shell.history = history = self.store.load(task.stream)
        assert history is not None
        last = history.attempts[-1]
        return governed.verify(self, task.stream, shell.view(last, last.token), verify, outcome)

    # --- parts -----------------------------------------------------------------------------------

    @property
    def people(self) -> People:
        """What a person may decide about this book's operations."""
        return People(self)

    @property
    def mission(self) -> governed.Mission:
        """The mission that governs this book's operations. Raises ``BadInput`` without one."""
        if self.missions.current is None:
            raise BadInput("this book has no mission: open it with mission=contract")
        return governed.Mission(self, self.missions.current)

    @property
    def worker_record(self) -> WorkerRecord:
        """What the store keeps of this book's worker."""
        return self._worker.record

    def now_us(self) -> int:
        """The wall clock, in microseconds since 1970."""
        return self._clock.now_us()

    def new_id(self) -> bytes:
        """Return a random event id."""
        return _new_id()

    def ends_known_s(self, stream: StreamId, history: History) -> dict[int, float]:
        """How long this process has known each attempt's end, in seconds of its own clock."""
        now_s = self._clock.monotonic_s()
        ends = self._memories.setdefault(stream, Memory()).ends
        for attempt in history.attempts:
            if attempt.ended_n is not None:
                ends.setdefault(attempt.number, now_s)
        return {number: now_s - at_s for number, at_s in ends.items()}

    def stream(self, operation_id: str, tenant: str) -> StreamId:
        """Return which operation an id names here. Raises ``InvalidOperationId``."""
        check_name(operation_id, "operation id")
        return StreamId(self.namespace, check_name(tenant, "tenant"), operation_id)

    def _task(
        self,
        effect: Effect[..., Any],
        operation_id: str,
        args: tuple[Any, ...],
        given: dict[str, Any],
        compensates: StreamId | None = None,
    ) -> Task:
        if not isinstance(effect, Effect):
            raise EffectNotRegistered(
                f"{effect!r} is not an effect; declare it with @counterfoil.effect(name, owner=...)"
            )
        if args:
            raise BadInput(f"effect {effect.name!r}: give its arguments by name")
        self.check_process()
        options = Options.taken_from(given)
        stream = self.stream(operation_id, options.tenant)
        effect.bind(given)
        under = self.missions.authority(options.under, options.resource, options.node, compensates)
        opened = opened_of(effect, stream, options, given, under)
        patience = options.patience
        patience_s = self._patience_s if patience is None else seconds(patience, of="patience")
        wait = options.wait_if_in_flight
        return self._make_task(effect, stream, opened, patience_s, wait=wait)

    def _make_task(
        self,
        effect: Effect[..., Any],
        stream: StreamId,
        opened: Opened | None,
        patience_s: float,
        *,
        wait: bool,
    ) -> Task:
        deadline_s = effect.deadline_s
        ends_by_itself = effect.adapter.bounds_calls or effect.adapter.calls_async
        return Task(
            stream=stream,
            opened=opened,
            worker=self._worker.id,
            promises=effect.owner.promises,
            policy=Policy(
                attempts_max=self._attempts_max,
                can_ask=effect.adapter.can_ask,
                deadline_s=deadline_s,
                ends_within_s=deadline_s if ends_by_itself else None,
            ),
            new_id=_new_id,
            lease_s=max(self._lease_s, (deadline_s or 0.0) + 2 * LEASE_MARGIN_S),
            patience_s=patience_s,
            wait_if_in_flight=wait,
            memory=self._remembered(stream),
            suspect=self.store.suspect,
        )

    def _remembered(self, stream: StreamId) -> Memory:
        """Begin a new asking schedule, and go on counting from the ends that were read before."""
        known = self._memories.get(stream)
        return Memory(ends=known.ends if known is not None else {})

    def _existing(
        self, operation_id: str, tenant: str, patience_s: float
    ) -> tuple[Effect[..., Any], Task]:
        self.check_process()
        stream = self.stream(operation_id, tenant)
        history = self.store.load(stream)
        if history is None:
            raise OperationNotFound(operation_id)
        effect = registered(history.opened.action)
        if effect is None:
            raise EffectNotRegistered(
                f"effect {history.opened.action!r} is not registered in this process; import the "
                "module that declares it"
            )
        return effect, self._make_task(effect, stream, None, patience_s, wait=True)

    def _shell(self, task: Task, effect: Effect[..., Any]) -> Shell:
        def late(number: int, reply: Reply) -> None:
            self._record_late(task, effect, number, reply)

        return Shell(
            self.store, self._worker, self._clock, task.stream, effect.adapter, late, self._heart,
            self.missions,
        )  # fmt: skip

    def _record_late(self, task: Task, effect: Effect[..., Any], number: int, reply: Reply) -> None:
        carrying: Carrying = protocol.record_late_reply(task, number, reply)
        try:
            drive(carrying, self._shell(task, effect))
        except StoreError:
            # The attempt stays without an end, and so unknown: the next start asks the owner.
            return

    def _check_sync(self, effect: Effect[..., Any]) -> None:
        if effect.adapter.calls_async or effect.adapter.asks_async:
            raise BadInput(f"effect {effect.name!r} is async; use await book.perform_async(...)")

    def check_process(self) -> None:
        """Raise ``Refused`` in a child that was forked after the book was opened."""
        if not self._worker.is_this_process:
            raise Refused(
                "forked", "this book was opened before a fork; open it again in this process"
            )

    # --- closing ---------------------------------------------------------------------------------

    def close(self) -> None:
        """Close the store and let go of the worker's lock. A call that still runs keeps its attempt
        open, and the next worker asks the owner."""
        if self._worker.is_this_process:
            self._heart.close()
            self.store.close()
            self._worker.end(leave_no_trace=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _new_id() -> bytes:
    return os.urandom(16)
