"""One mission as it stands: the fold's state, rebuilt from the log and kept up with it.

The log is the truth. A snapshot shortens a start and is believed only if the log itself says its
digest; the operations that left with it are kept beside it, each under its own digest. Where either
cannot be believed the mission is folded from its first line.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

from counterfoil.coordinator.bridge import GATED, operation_of_attempt
from counterfoil.errors import Refused, StoreCorrupt
from counterfoil.mission import (
    CommandRejected,
    Contract,
    Retired,
    State,
    create_mission,
    parse_command,
    parse_contract,
    read_retired,
    read_snapshot,
    reduce,
    retire_settled,
    retired_bytes,
    snapshot_bytes,
)
from counterfoil.mission.errors import MissionInput
from counterfoil.operation.plain_json import encode
from counterfoil.store.mission_log import Left, Line, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from counterfoil.mission.draft import Lookup
    from counterfoil.operation.identity import StreamId
    from counterfoil.store.mission_log import MissionStore, StoredLine
    from counterfoil.store.port import WorkerRecord

    Plan = Callable[[State, Lookup], Sequence[Mapping[str, object]]]

OPENED = "mission_opened"
COMMANDED = "commanded"
SNAPSHOTTED = "snapshotted"

SNAPSHOT_LINES = 1000
"""Lines between two snapshots, so that a start folds no more than these; more where more than this
many operations are live, so that writing snapshots costs a line the same at any size."""


TRIES = 5
"""Times that a snapshot written by somebody else may come between two reads of a start."""


class At(NamedTuple):
    """A state, the number of lines that led to it, and the line of the snapshot before it.

    ``archive`` holds all that left, where the lines were folded from the first; None where the
    store finds it.
    """

    version: int
    state: State
    snapshot_n: int
    archive: Archive | None


class Distrusted(Exception):
    """What is kept beside the log is damaged, or newer than this state; never seen outside."""


class Head:
    """The state of one mission for one process. Safe for several threads."""

    def __init__(
        self, store: MissionStore, stream: StreamId, by: WorkerRecord, new_id: Callable[[], bytes]
    ) -> None:
        self.store, self.stream = store, stream
        self.by, self.new_id = by, new_id
        self.distrusted = False
        self.at = loaded(store, stream)

    @classmethod
    def create(
        cls,
        store: MissionStore,
        stream: StreamId,
        by: WorkerRecord,
        new_id: Callable[[], bytes],
        contract: Contract,
    ) -> Head:
        """Open the mission under this contract, or find it opened under the same one.

        Raises ``Refused`` where it was opened under another.
        """
        opening = _Opening(stream, new_id(), encode({"contract": contract.plain()}))
        if not store.version(stream):
            store.command(opening, by=by)  # else somebody else has just opened it
        head = cls(store, stream, by, new_id)
        if head.at.state.parts.contract != contract:
            raise Refused(
                "contract_differs",
                f"mission {contract.mission_id!r} was opened under another contract; "
                "open it with that one, or give the new mission its own missionId",
            )
        return head

    def do(self, command: Mapping[str, object]) -> State:
        """Put one command to the fold and into the log; return the state after it.

        Raises ``Refused`` with the fold's code, ``MissionInput`` for a command that is none.
        """
        while True:
            batch = Batch(self, lambda _state, _lookup: [command])
            try:
                if self.store.command(batch, by=self.by):
                    return batch.then.state
            except CommandRejected as refusal:
                raise Refused(refusal.code, refusal.detail) from None
            self.refresh()

    def refresh(self) -> State:
        """Take in what other processes have appended; return the state."""
        if self.distrusted:
            self.at, self.distrusted = rebuilt(self.store, self.stream), False
        elif self.store.version(self.stream) != self.at.version:
            found = loaded(self.store, self.stream, self.at)
            if found.version >= self.at.version:
                self.at = found
        return self.at.state


def loaded(store: MissionStore, stream: StreamId, known: At | None = None) -> At:
    """Return a mission as the log has it now, from the last snapshot if that can be believed.

    ``known`` is where this process stands already. Raises ``StoreCorrupt``.
    """
    for _ in range(TRIES):
        start = known
        snapshot = store.snapshot(stream)
        if snapshot is not None and (start is None or start.snapshot_n < snapshot.n):
            start = believed(store, stream, snapshot)
        if start is None:
            break
        try:
            return followed(store, stream, start)
        except Distrusted:
            continue  # a snapshot was written meanwhile; or else what is kept is damaged
    return rebuilt(store, stream)


def believed(store: MissionStore, stream: StreamId, snapshot: Snapshot) -> At | None:
    """Return the state of a snapshot, if the log has a line that says its digest."""
    line = next(iter(store.mission_lines(stream, snapshot.n - 1)), None)
    if line is None or line.kind != SNAPSHOTTED:
        return None
    if json.loads(line.payload).get("sha256") != snapshot.digest.hex():
        return None
    try:
        return At(snapshot.n, read_snapshot(snapshot.body), snapshot.n, None)
    except (MissionInput, KeyError):
        return None  # of another version of this program


def followed(store: MissionStore, stream: StreamId, start: At) -> At:
    """Fold the lines after ``start``. Raises Distrusted where a snapshot lies among them."""
    state, version = start.state, start.version
    lookup = _lookup(store, stream, start)
    for line in store.mission_lines(stream, version):
        if line.kind == SNAPSHOTTED:
            raise Distrusted
        state, version = folded(state, line, lookup), line.n
    return start._replace(version=version, state=state)


def rebuilt(store: MissionStore, stream: StreamId) -> At:
    """Return a mission folded from its first line. Raises ``StoreCorrupt``."""
    lines = iter(store.mission_lines(stream, 0))
    first = next(lines, None)
    if first is None or first.kind != OPENED:
        raise StoreCorrupt(
            f"mission {stream.operation_id!r} has no opening in this database; run audit"
        )
    state = create_mission(parse_contract(json.loads(first.payload)["contract"]))
    archive = Archive()
    version = first.n
    for line in lines:
        version = line.n
        if line.kind == SNAPSHOTTED:
            state, left = retire_settled(state)
            archive.take(left)
        else:
            state = folded(state, line, archive)
    return At(version, state, 0, archive)


def folded(state: State, line: StoredLine, lookup: Lookup) -> State:
    """Return the state after a line. Raises ``StoreCorrupt`` for one that the fold refuses."""
    try:
        said = json.loads(line.payload)
        return reduce(state, parse_command(said["command"]), said["now"], lookup)
    except (CommandRejected, MissionInput, KeyError) as error:
        raise StoreCorrupt(
            f"line {line.n} of the mission cannot be folded ({error}); run audit"
        ) from error


class _Opening:
    """The first line of a mission: its contract."""

    snapshot = None
    left: Sequence[Left] = ()

    def __init__(self, stream: StreamId, event_id: bytes, payload: str) -> None:
        self.stream = stream
        self._line = Line(event_id, OPENED, payload)

    def lines(self, version: int, at_us: int) -> Sequence[Line] | None:
        """Return the opening where nothing is yet."""
        del at_us
        return None if version else [self._line]

    def stored(self) -> None:
        """Nothing to note."""


class Batch:
    """Commands on their way into the log, made against the state of that very moment.

    ``plan`` is given the state and what finds the operations that left it, and returns commands.
    """

    def __init__(self, head: Head, plan: Plan) -> None:
        self._head, self._plan = head, plan
        self.stream = head.stream
        self.then = head.at
        self.snapshot: Snapshot | None = None
        self.left: Sequence[Left] = ()

    def lines(self, version: int, at_us: int) -> Sequence[Line] | None:
        """Fold the commands at their stamps, in milliseconds; see ``store.mission_log.Beside``."""
        at = self._head.at
        self.snapshot, self.left = None, ()
        if version != at.version or self._head.distrusted:
            return None
        state, lookup = at.state, _lookup(self._head.store, self.stream, at)
        lines: list[Line] = []
        try:
            for said in self._plan(state, lookup):
                now = str((at_us + len(lines)) // 1000)
                command = said
                if said["type"] in GATED:
                    checked = {"authorizationCheckedAt": now, "policy": "ALLOW"}
                    command = {**said, **checked, "mandatoryChecksOk": True}
                state = reduce(state, parse_command(command), now, lookup)
                payload = encode({"now": now, "command": command})
                lines.append(Line(self._head.new_id(), COMMANDED, payload))
        except Distrusted:
            self._head.distrusted = True
            return None
        self.then = at._replace(version=version + len(lines), state=state)
        if lines and self._is_due():
            lines.append(self._take_snapshot())
        return lines

    def _is_due(self) -> bool:
        then = self.then
        if then.archive is not None and then.archive.operations:
            return True  # what is kept beside the log could not be believed: write it anew
        since = then.version - then.snapshot_n
        return since >= max(SNAPSHOT_LINES, len(then.state.parts.operations))

    def _take_snapshot(self) -> Line:
        state, left = retire_settled(self.then.state)
        body, n = snapshot_bytes(state), self.then.version + 1
        self.snapshot = Snapshot(n, body, hashlib.sha256(body).digest())
        archive = self.then.archive
        gone = {} if archive is None else dict(archive.operations)
        gone |= {each.operation_id: each for each in left}
        self.left = [_left(each, n, retired_bytes(each)) for each in gone.values()]
        self.then = At(n, state, n, None)
        said = encode({"sha256": self.snapshot.digest.hex()})
        return Line(self._head.new_id(), SNAPSHOTTED, said)

    def stored(self) -> None:
        """The lines are durable: this process's state is the one after them."""
        self._head.at = self.then


def _left(retired: Retired, n: int, body: bytes) -> Left:
    approvals = tuple(approval.id for approval in retired.approvals)
    return Left(retired.operation_id, approvals, n, body, hashlib.sha256(body).digest())


def _lookup(store: MissionStore, stream: StreamId, at: At) -> Lookup:
    return at.archive if at.archive is not None else _Gone(store, stream, at.snapshot_n)


class _Gone:
    """Finds in the store what had left the live state with the snapshot at a line.

    Raises Distrusted for what is damaged, or left later.
    """

    def __init__(self, store: MissionStore, stream: StreamId, snapshot_n: int) -> None:
        self._store, self._stream, self._snapshot_n = store, stream, snapshot_n

    def operation(self, operation_id: str, /) -> Retired | None:
        """Return the retired operation of this id."""
        return self._read(self._store.left(self._stream, operation_id))

    def attempt(self, attempt_id: str, /) -> Retired | None:
        """Return the retired operation that has this attempt."""
        return _holding(self.operation(operation_of_attempt(attempt_id)), attempt_id)

    def approval(self, approval_id: str, /) -> Retired | None:
        """Return the retired operation that this approval is about."""
        return self._read(self._store.left_with_approval(self._stream, approval_id))

    def _read(self, left: Left | None) -> Retired | None:
        if left is None:
            return None
        if left.n > self._snapshot_n or hashlib.sha256(left.body).digest() != left.digest:
            raise Distrusted
        try:
            return read_retired(left.body)
        except (MissionInput, KeyError):
            raise Distrusted from None


class Archive:
    """What left, while a whole log is folded."""

    def __init__(self) -> None:
        self.operations: dict[str, Retired] = {}
        self._approvals: dict[str, str] = {}

    def take(self, left: Iterable[Retired]) -> None:
        """Keep what has just left."""
        for retired in left:
            self.operations[retired.operation_id] = retired
            for approval in retired.approvals:
                self._approvals[approval.id] = retired.operation_id

    def operation(self, operation_id: str, /) -> Retired | None:
        """Return the retired operation of this id."""
        return self.operations.get(operation_id)

    def attempt(self, attempt_id: str, /) -> Retired | None:
        """Return the retired operation that has this attempt."""
        return _holding(self.operations.get(operation_of_attempt(attempt_id)), attempt_id)

    def approval(self, approval_id: str, /) -> Retired | None:
        """Return the retired operation that this approval is about."""
        return self.operations.get(self._approvals.get(approval_id, ""))


def _holding(retired: Retired | None, attempt_id: str) -> Retired | None:
    if retired is None or all(a.id != attempt_id for a in retired.operation.attempts):
        return None
    return retired
