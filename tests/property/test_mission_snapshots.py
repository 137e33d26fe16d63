"""Any state is read back from its snapshot, with everything that it derives."""

from __future__ import annotations

import random
import sys
from pathlib import Path

from hypothesis import given, settings

sys.path.insert(0, str(Path(__file__).resolve().parent))

from test_mission import MANY, SEEDS, drawn, fold, mission, walk

from counterfoil.mission import (
    CommandRejected,
    Retired,
    State,
    canonical_state_bytes,
    parse_command,
    read_retired,
    read_snapshot,
    reduce,
    retire_settled,
    retired_bytes,
    snapshot_bytes,
)

FEWER = settings(MANY, max_examples=20)


class Archive:
    """Keeps what left as bytes, as a store does."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}

    def put_away(self, state: State) -> State:
        state, left = retire_settled(state)
        for retired in left:
            self.bodies[retired.operation_id] = retired_bytes(retired)
        return read_snapshot(snapshot_bytes(state))

    def all(self) -> list[Retired]:
        return [read_retired(body) for body in self.bodies.values()]

    def operation(self, operation_id: str) -> Retired | None:
        body = self.bodies.get(operation_id)
        return None if body is None else read_retired(body)

    def attempt(self, attempt_id: str) -> Retired | None:
        found = (r for r in self.all() if attempt_id in [a.id for a in r.operation.attempts])
        return next(found, None)

    def approval(self, approval_id: str) -> Retired | None:
        found = (r for r in self.all() if approval_id in [a.id for a in r.approvals])
        return next(found, None)


@FEWER
@given(SEEDS)
def test_a_state_read_back_from_its_snapshot_is_the_same_in_every_part(seed: int) -> None:
    contract, opening, steps = walk(seed)
    state = fold(mission(contract), opening)
    for step in steps:
        now, command = drawn(state, step)
        try:
            state = reduce(state, parse_command(command), now)
        except CommandRejected:
            continue
        again = read_snapshot(snapshot_bytes(state))
        assert again.parts == state.parts
        assert canonical_state_bytes(again) == canonical_state_bytes(state)


@FEWER
@given(SEEDS)
def test_a_mission_read_back_now_and_then_takes_and_refuses_the_same(seed: int) -> None:
    contract, opening, steps = walk(seed)
    dice = random.Random(seed)
    plain = tidy = fold(mission(contract), opening)
    archive = Archive()
    for step in steps:
        now, command = drawn(plain, step)
        if dice.random() < 0.3:
            tidy = archive.put_away(tidy)
        outcomes: list[State | str] = []
        for state, lookup in ((plain, None), (tidy, archive)):
            try:
                outcomes.append(reduce(state, parse_command(command), now, lookup))
            except CommandRejected as refusal:
                outcomes.append(refusal.code)
        if isinstance(outcomes[0], str):
            assert outcomes[1] == outcomes[0]
            continue
        plain, tidy = (state for state in outcomes if isinstance(state, State))
    for name in ("spent", "reserved", "events", "now", "grants", "runs"):
        assert plain.plain()[name] == tidy.plain()[name]
