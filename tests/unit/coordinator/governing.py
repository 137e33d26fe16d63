"""A mission over an owner in memory: what the tests of governed operations share."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import counterfoil as cf

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from counterfoil.coordinator.governed import Grant

FOREVER_MS = 9_999_999_999_999
CONTRACT: dict[str, Any] = {
    "id": "c",
    "missionId": "m",
    "aiwsEdition": "0.4",
    "profile": "finite-v1",
    "budget": "100",
    "deadline": str(FOREVER_MS),
    "criteria": ["review"],
    "actions": ["change"],
    "resources": ["doc", "sheet"],
    "requiresApproval": False,
    "maxAttempts": "3",
    "maxAuthorizationAgeMs": "0",
    "features": ["graphs", "triggers"],
}


@dataclass
class Desk:
    """An owner whose replies are scripted: "commit", "refuse", "lose before", "lose after".

    A cost is named after a colon: "commit:3". ``answers`` is what it says when it is asked: None
    for the truth. ``meanwhile`` runs while a call is under way.
    """

    script: list[str] = field(default_factory=list)
    answers: bool = True
    meanwhile: Callable[[], object] | None = None
    effects: dict[str, str | None] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    def call(self, attempt: cf.Attempt) -> object:
        self.calls.append(attempt.key)
        if self.meanwhile is not None:
            self.meanwhile()
        what, _, cost = (self.script.pop(0) if self.script else "commit").partition(":")
        if what == "refuse":
            raise cf.NoEffect("not_allowed", cost=cost or None)
        if what != "lose before":
            self.effects[attempt.key] = cost or None
        if what == "commit":
            return cf.applied({"n": len(self.effects)}, cost=cost or None)
        raise ConnectionResetError

    def find(self, attempt: cf.Attempt) -> object:
        if not self.answers:
            return cf.unknown()
        if attempt.key in self.effects:
            return cf.present(effect_id=f"e-{attempt.key}", cost=self.effects[attempt.key])
        return cf.absent(final=True)

    def declare(self, name: str = "change", *, asks: bool = True, **promises: Any) -> Any:
        owner = cf.Owner(f"owner of {name}", **promises)

        @cf.effect(name, owner=owner)
        def change(attempt: cf.Attempt, *, value: object = 1) -> object:
            return self.call(attempt)

        if asks:
            change.reconcile(self.find)
        return change


def opened(path: Path, contract: object = CONTRACT, **options: Any) -> cf.Book:
    options = {"create": True, "patience": 0.3, **options}
    return cf.open(path, mission=contract, **options)  # type: ignore[arg-type]


def grant_in(book: cf.Book, run_id: str = "r", grant_id: str = "g", **terms: Any) -> Grant:
    """Start a run with a grant over everything, but for the terms that are given."""
    all_of_it = {
        "subject": "agent",
        "actions": ["change"],
        "resources": ["doc"],
        "limit": "100",
        "not_before": 0,
        "expires_at": FOREVER_MS,
        "can_delegate": True,
        "depth": 2,
    }
    return book.mission.start_run(run_id).grant(grant_id, **{**all_of_it, **terms})


def commands_of(book: cf.Book) -> list[str]:
    """Return the types of the commands in the log, in order."""
    said = [json.loads(e.payload or "{}") for e in book.store.log() if e.kind == "commanded"]
    return [each["command"]["type"] for each in said]


def operation_of(book: cf.Book, operation_id: str) -> Any:
    return book.mission.state["operations"][operation_id]  # type: ignore[index]


def attempt_of(book: cf.Book, attempt_id: str) -> Any:
    return book.mission.state["attempts"][attempt_id]  # type: ignore[index]


def money(book: cf.Book) -> tuple[str, str]:
    """Return what is spent and what is held."""
    return book.mission.money.spent, book.mission.money.held
