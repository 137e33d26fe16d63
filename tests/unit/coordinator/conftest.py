"""A book on a real SQLite file, and an owner in memory that can lose, refuse and commit late."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

import counterfoil as cf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass
class Service:
    """Counts effects by key. ``script`` says, call by call, what happens; then all is well."""

    script: list[str] = field(default_factory=list)
    answers: list[object] = field(default_factory=list)
    effects: dict[str, int] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    questions: int = 0

    def call(self, attempt: cf.Attempt) -> object:
        self.calls.append(attempt.key)
        what = self.script.pop(0) if self.script else "commit"
        if what == "refuse":
            raise cf.NoEffect("not_allowed")
        if what != "lose before":
            self.effects[attempt.key] = self.effects.get(attempt.key, 0) + 1
        if what == "commit":
            return {"id": f"e-{attempt.key}"}
        if what == "time out":
            raise TimeoutError
        raise ConnectionResetError

    def find(self, attempt: cf.Attempt) -> object:
        self.questions += 1
        if self.answers:
            said = self.answers.pop(0)
            if isinstance(said, Exception):
                raise said
            return said
        if self.effects.get(attempt.key):
            return cf.present({"id": f"e-{attempt.key}"}, effect_id=f"e-{attempt.key}")
        return cf.absent(final=True)

    @property
    def count(self) -> int:
        return sum(self.effects.values())


@pytest.fixture
def service() -> Service:
    return Service()


@pytest.fixture
def book(tmp_path: Path) -> Iterator[cf.Book]:
    with cf.open(tmp_path / "effects.db", create=True, patience=0.3) as opened:
        yield opened


def declare(service: Service, *, asks: bool = True, **promises: object) -> cf.Effect[..., object]:
    owner = cf.Owner("service", **promises)  # type: ignore[arg-type]

    @cf.effect("change", owner=owner)
    def change(attempt: cf.Attempt, *, amount: str = "1", note: object = None) -> object:
        return service.call(attempt)

    if asks:
        change.reconcile(service.find)
    return change
