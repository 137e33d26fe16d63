"""Random performs under a mission: at every moment the trails account for the money, exactly."""

from __future__ import annotations

import itertools
import random
from decimal import Context, Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import counterfoil as cf
from counterfoil.coordinator import effects, mission_head
from counterfoil.coordinator.audit import audit
from counterfoil.coordinator.book import Book
from counterfoil.coordinator.worker import Worker
from counterfoil.mission import canonical_state_bytes
from counterfoil.operation.replies import Answer, Result, Status
from counterfoil.store.memory import MemoryStore
from counterfoil.testing.books import VirtualClock

EXACT = Context(prec=400)
FOREVER_MS = 9_999_999_999_999
AMOUNTS = ("0", "1", "2.5", "0.000000000000000000000000000000000001", "7")
CALLS = ("commit", "commit", "refuse", "lose before", "lose after", "silent before", "silent after")


class World:
    """One store, one owner, and a book that is opened anew now and then."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.clock = VirtualClock()
        self.store = MemoryStore(self.clock.now_us)
        self.contract = {
            "id": "c", "missionId": "m", "aiwsEdition": "0.4", "profile": "finite-v1",
            "budget": dice.choice(["12", "30.25", "1000"]), "deadline": str(FOREVER_MS),
            "criteria": [], "actions": ["change"], "resources": ["doc"],
            "requiresApproval": False, "maxAttempts": dice.choice(["1", "2", "9"]),
            "maxAuthorizationAgeMs": "0", "features": [],
        }  # fmt: skip
        self.effects: dict[str, str] = {}
        self.silent: set[str] = set()
        self.names = (f"o-{number}" for number in itertools.count())
        self.change = self.declare()
        self.book = self.open()
        run = self.book.mission.start_run("r")
        run.grant(
            "g", subject="agent", actions=["change"], resources=["doc"], limit="900",
            not_before=0, expires_at=FOREVER_MS,
        )  # fmt: skip

    def declare(self) -> Any:
        dice = self.dice
        kinds = [
            {"final_by": "answer"},
            {"final_by": "answer", "deduplicates": True, "key_retention": "forever"},
        ]

        @cf.effect("change", owner=cf.Owner("owner", **dice.choice(kinds)))
        def change(attempt: cf.Attempt) -> object:
            what, _, when = dice.choice(CALLS).partition(" ")
            cost = dice.choice(AMOUNTS)
            if what == "refuse" and attempt.key not in self.effects:
                raise cf.NoEffect("no", cost=cost)
            if what == "commit" or when == "after":
                cost = self.effects.setdefault(attempt.key, cost)
            if what == "commit":
                return cf.applied(cost=cost)
            if what == "silent":
                self.silent.add(attempt.key)
            raise ConnectionResetError

        @change.reconcile
        def find(attempt: cf.Attempt) -> object:
            if attempt.key in self.silent:
                return cf.unknown()
            if attempt.key in self.effects:
                return cf.present(effect_id=attempt.key, cost=self.effects[attempt.key])
            return cf.absent(final=True)

        return change

    def open(self) -> Book:
        return Book(self.store, Worker(None), self.clock, patience=5, mission=self.contract)

    def restart(self) -> None:
        before = canonical_state_bytes(self.book.mission.state)
        self.book = self.open()
        assert canonical_state_bytes(self.book.mission.state) == before

    def step(self) -> None:
        what = self.dice.randrange(10)
        known = [stream.operation_id for stream in self.store.streams("default")]
        try:
            if what < 5 or not known:
                self.perform(next(self.names))
            elif what == 5:
                self.perform(self.dice.choice(known))
            elif what == 6:
                self.book.retry(self.dice.choice(known))
            elif what == 7:
                self.silent.clear()
                self.book.recover()
            elif what == 8:
                self.decide(self.dice.choice(known))
            else:
                self.restart()
        except (cf.Refused, cf.OperationConflict):
            pass

    def perform(self, name: str) -> None:
        run = self.book.mission.run("r")
        reserve = self.dice.choice(AMOUNTS)
        self.book.perform(
            self.change, name, under=run.granted("g"), resource="doc", reserve=reserve
        )

    def decide(self, name: str) -> None:
        looked, people = self.book.people.look(name), self.book.people
        cost = self.dice.choice(AMOUNTS)
        if self.dice.random() < 0.5:
            outcome = self.dice.choice([Status.COMMITTED, Status.NOT_RUN])
            people.correct(looked, outcome, by="ann", evidence="R", cost=cost)
        else:
            answer = Answer(Result.PRESENT, effect_id=f"by hand {name}", cost=cost)
            people.relay(looked, answer, by="ann", evidence="R")

    def check(self) -> None:
        """Count the money again from the operations' own trails."""
        spent = held = Decimal(0)
        for stream in self.store.streams("default"):
            history = self.store.load(stream)
            assert history is not None
            if history.settled is None:
                held = EXACT.add(held, Decimal(history.opened.reserve or "0"))
        parts: Any = self.book.mission.state.plain()
        grant = parts["grants"]["g"]
        money = self.book.mission.money
        assert (money.spent, money.held) == (grant["spent"], grant["reserved"])
        assert Decimal(money.held) == held
        spent = self.spent_by_the_commands()
        assert Decimal(money.spent) == spent
        whole = EXACT.add(EXACT.add(spent, held), Decimal(money.free))
        assert whole == Decimal(money.budget)

    def spent_by_the_commands(self) -> Decimal:
        """Add up what the answers to attempts cost, the last for each attempt."""
        import json

        costs: dict[str, Decimal] = {}
        for entry in self.store.log():
            if entry.kind != "commanded":
                continue
            command = json.loads(entry.payload or "{}")["command"]
            if command["type"] in ("settle", "review", "correct"):
                costs[command["attemptId"]] = Decimal(command["actualCost"])
        total = Decimal(0)
        for cost in costs.values():
            total = EXACT.add(total, cost)
        return total


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 2**32 - 1))
def test_spent_and_held_and_free_are_the_budget_whatever_happens(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(effects, "_registry", {})
        patch.setattr(mission_head, "SNAPSHOT_LINES", 7)
        world = World(random.Random(seed))
        for _ in range(30):
            world.step()
            world.check()
        assert list(audit(world.store)) == []
