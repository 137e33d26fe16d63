"""Money: what is spent and reserved, in the mission and in each grant up to its root.

A reservation counts in the grant it was made under and in every grant above. Exactly the limit
is fine. A cost above its reservation is the truth and is recorded: then more is spent than there
was, and these checks let nothing further through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from counterfoil.mission.amounts import ZERO, Amount, write_amount
from counterfoil.mission.errors import Code, CommandRejected

if TYPE_CHECKING:
    from counterfoil.mission.draft import Draft


def check_money(draft: Draft, grant_id: str, amount: Amount = ZERO) -> None:
    """Refuse an amount that a grant (nearest first) or the budget does not hold.

    With nothing to add it asks whether the money has been passed already.
    """
    name: str | None = grant_id
    while name is not None:
        grant = draft.grants[name]
        if grant.spent + grant.reserved + amount > grant.terms.limit:
            limit = write_amount(grant.terms.limit)
            raise CommandRejected(
                Code.GRANT_LIMIT_EXCEEDED, f"grant {name!r} holds {limit}; ask for less"
            )
        name = grant.parent_id
    if draft.spent + draft.reserved + amount > draft.contract.budget:
        budget = write_amount(draft.contract.budget)
        raise CommandRejected(Code.BUDGET_EXCEEDED, f"the budget is {budget}; ask for less")


def move(draft: Draft, grant_id: str, *, reserved: int = 0, spent: int = 0) -> None:
    """Add to what is reserved and spent, in the mission and in the grant and all above it."""
    if not reserved and not spent:
        return
    draft.reserved = Amount(draft.reserved + reserved)
    draft.spent = Amount(draft.spent + spent)
    name: str | None = grant_id
    while name is not None:
        grant = draft.grants[name]
        draft.grants = draft.grants.set(name, grant.charged(spent, reserved))
        name = grant.parent_id
