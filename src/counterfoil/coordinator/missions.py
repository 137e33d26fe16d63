"""A book's missions: every append of a governed operation goes through here, with its commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from counterfoil.coordinator.bridge import commands_for, concerns, operation_name
from counterfoil.coordinator.mission_head import Batch, Head
from counterfoil.errors import BadInput, Refused
from counterfoil.mission import CommandRejected, Contract, find_operation, parse_contract
from counterfoil.operation.commands import Denied, Moved
from counterfoil.operation.events import Dispatched, Opened
from counterfoil.operation.identity import StreamId, check_name
from counterfoil.store.mission_log import mission_stream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from counterfoil.coordinator.bridge import Plain
    from counterfoil.coordinator.governed import Grant
    from counterfoil.mission import State
    from counterfoil.mission.draft import Lookup
    from counterfoil.operation.commands import Appended, Claimed
    from counterfoil.operation.events import NewEvent
    from counterfoil.operation.history import History
    from counterfoil.store.port import Store, WorkerRecord


def contract_of(source: object) -> Contract | None:
    """Return a contract from JSON text, UTF-8 bytes, a mapping, or one; None for none.

    Raises ``BadInput``.
    """
    if source is None:
        return None
    if isinstance(source, Contract):
        contract = source
    elif isinstance(source, str | bytes | Mapping):
        contract = parse_contract(source)
    else:
        raise BadInput("mission: give the contract as JSON text, as a mapping, or parsed")
    check_name(contract.mission_id, "missionId")
    return contract


class Missions:
    """The missions in one namespace of a store: ``current`` is the one that the book was opened
    with, None where it was opened with none. Others are loaded when an operation is under them.
    """

    def __init__(
        self,
        store: Store,
        by: WorkerRecord,
        new_id: Callable[[], bytes],
        namespace: str,
        contract: Contract | None,
    ) -> None:
        self._store, self._by, self._new_id = store, by, new_id
        self._namespace = namespace
        self._heads: dict[str, Head] = {}
        self.current: Head | None = None
        self.epochs: dict[tuple[str, str], int] = {}
        """(mission, run) -> the epoch under which this process acts in it."""
        if contract is not None:
            stream = mission_stream(namespace, contract.mission_id)
            self.current = Head.create(store, stream, by, new_id, contract)
            self._heads[contract.mission_id] = self.current

    def head(self, mission_id: str) -> Head:
        """Return a mission's head, loaded from the log. Raises ``StoreCorrupt`` if it is not
        there."""
        head = self._heads.get(mission_id)
        if head is None:
            stream = mission_stream(self._namespace, mission_id)
            head = self._heads[mission_id] = Head(self._store, stream, self._by, self._new_id)
        return head

    def authority(
        self, under: Grant | None, resource: object, node: object, compensates: StreamId | None
    ) -> dict[str, str] | None:
        """Return what to store with an operation of the authority it acts by. ``BadInput``."""
        from counterfoil.coordinator.governed import Grant

        current = self.current
        if current is None:
            given = {"under": under, "resource": resource, "node": node}
            named = [name for name, value in given.items() if value is not None]
            if named or compensates is not None:
                what = ", ".join(named) or "a compensation"
                raise BadInput(f"{what} needs a mission: open the book with mission=contract")
            return None
        if not isinstance(under, Grant):
            raise BadInput("this book has a mission: say under=grant, by whose authority to act")
        if under.mission_id != current.stream.operation_id:
            raise BadInput(f"under: grant {under.id!r} is of another mission than this book's")
        if resource is None:
            raise BadInput("under: say resource=..., on what the operation acts")
        kept = {
            "mission": under.mission_id,
            "run": under.run.id,
            "epoch": str(under.run.epoch),
            "grant": under.id,
            "resource": check_name(resource, "resource"),
        }
        if node is not None:
            kept["node"] = check_name(node, "node")
        if compensates is not None:
            kept["compensates"] = operation_name(compensates)
        return kept

    def append(
        self,
        stream: StreamId,
        before: History | None,
        events: Sequence[NewEvent],
        claim: str | None,
    ) -> Appended | Moved | Claimed | Denied:
        """Append an operation's events and, where a mission governs it, what they mean to it.

        Both are one durable transaction. ``Denied``: the fold refused, nothing was stored.
        """
        opened = events[0].body if before is None else before.opened
        assert isinstance(opened, Opened)
        under = opened.under
        if under is None:
            if self.current is not None and any(isinstance(e.body, Dispatched) for e in events):
                text = "it was begun without a mission; carry it on in a book without one"
                return Denied("not_governed", text)
            return self._store.append(stream, before, events, claim=claim, by=self._by)
        batch = self._batch(under, stream, before, events) if concerns(events) else None
        try:
            result = self._store.append(
                stream, before, events, claim=claim, by=self._by, beside=batch
            )
        except CommandRejected as refusal:
            return Denied(refusal.code, refusal.detail)
        if batch is not None and isinstance(result, Moved):
            self.head(under["mission"]).refresh()
        return result

    def _batch(
        self,
        under: Mapping[str, str],
        stream: StreamId,
        before: History | None,
        events: Sequence[NewEvent],
    ) -> Batch:
        name, grant_id = operation_name(stream), under["grant"]
        epoch = self.epochs.get((under["mission"], under["run"]))

        def plan(state: State, lookup: Lookup) -> list[Plain]:
            grant = state.parts.grants.get(grant_id)
            subject = "nobody" if grant is None else grant.terms.subject
            known = find_operation(state, name, lookup)
            return commands_for(stream, before, events, known, subject, epoch)

        return Batch(self.head(under["mission"]), plan)

    def check_original(self, original: History | None) -> None:
        """Refuse to compensate what is disputed: the fold knows of no contradiction."""
        if original is not None and original.disputed is not None:
            raise Refused(
                "original_unsettled",
                f"the original is disputed ({original.disputed.text}); correct it first",
            )
