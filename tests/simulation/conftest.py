"""What shows that a rule is needed: with it all is right, without it the named wrong is found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest

from counterfoil.simulate.deletions import without
from counterfoil.simulate.explore import follow, search
from counterfoil.simulate.space import Space
from counterfoil.simulate.timeline import timeline

if TYPE_CHECKING:
    from counterfoil.simulate.deletions import Deletion
    from counterfoil.simulate.world import Bounds, Owner


class RuleIsNeeded(Protocol):
    def __call__(
        self, owner: Owner, bounds: Bounds, script: str, deleted: tuple[Deletion, ...], wrong: str
    ) -> None: ...


@pytest.fixture
def rule_is_needed() -> RuleIsNeeded:
    """Follow a script, then search all that can come after it: with the rules, and without some.

    A script is steps between semicolons. ``wrong`` is the wrong that has to be found then.
    """

    def check(
        owner: Owner, bounds: Bounds, script: str, deleted: tuple[Deletion, ...], wrong: str
    ) -> None:
        steps = [step.strip() for step in script.split(";") if step.strip()]
        space = Space(owner, bounds)
        found = search(space, follow(space, steps))
        assert found.wrong is None, timeline(space, found)
        with without(*deleted):
            space = Space(owner, bounds)
            found = search(space, follow(space, steps), frozenset({wrong}))
        print(f"after: {script}\n{timeline(space, found)}")
        assert found.wrong == wrong

    return check
