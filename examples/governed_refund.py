"""Refunds under a mission: a budget, a grant, a lost reply, and a compensation that is looked at.

Run it with ``python examples/governed_refund.py``. The shop stands in memory; the book is a file in
a temporary folder.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import counterfoil as cf

CONTRACT = {
    "id": "refunds-7",
    "missionId": "refunds",
    "aiwsEdition": "0.4",
    "profile": "finite-v1",
    "budget": "50.00",
    "deadline": "9999999999999",
    "criteria": [],
    "actions": ["refund", "charge"],
    "resources": ["shop"],
    "requiresApproval": False,
    "maxAttempts": "3",
    "maxAuthorizationAgeMs": "1000",
    "features": [],
}
SHOP: dict[str, str] = {}
"""What the shop holds, by key: it answers for itself when it is asked."""

shop = cf.Owner("shop", final_by="answer")


@cf.effect("refund", owner=shop)
def refund(attempt: cf.Attempt, *, order: str, amount: str) -> object:
    """Pay back; the reply for order 18 is lost on its way."""
    SHOP[attempt.key] = f"-{amount}"
    if order == "18":
        raise ConnectionResetError
    return cf.applied(cost=amount)


@cf.effect("charge", owner=shop)
def charge(attempt: cf.Attempt, *, order: str, amount: str) -> object:
    """Take it again."""
    SHOP[attempt.key] = amount
    return cf.applied({"order": order}, cost="0")


@refund.reconcile
@charge.reconcile
def find(attempt: cf.Attempt) -> object:
    """Ask the shop."""
    held = SHOP.get(attempt.key)
    if held is None:
        return cf.absent(final=True)
    return cf.present(effect_id=attempt.key, cost=held.lstrip("-"))


def main() -> None:
    """Tell the story."""
    with (
        tempfile.TemporaryDirectory() as folder,
        cf.open(Path(folder) / "shop.db", create=True, mission=CONTRACT) as book,
    ):
        grant = book.mission.start_run("monday").grant(
            "desk", subject="clerk", actions=["refund", "charge"], resources=["shop"],
            limit="50", not_before=0, expires_at=9999999999999,
        )  # fmt: skip
        for order in ("17", "18"):
            outcome = book.perform(
                refund, f"refund-{order}", under=grant, resource="shop", reserve="20",
                order=order, amount="20",
            )  # fmt: skip
            print(f"refund-{order}: {outcome.status}, {book.mission.money}")
        try:
            book.perform(
                refund, "refund-19", under=grant, resource="shop", reserve="20",
                order="19", amount="20",
            )  # fmt: skip
        except cf.Refused as refusal:
            print(f"refund-19: refused, {refusal.code}")
        undone = book.compensate(
            "refund-17", charge, "charge-17", under=grant, resource="shop", reserve="1",
            order="17", amount="20", verify=lambda attempt: SHOP[attempt.key],
        )  # fmt: skip
        print(f"charge-17: {undone.status}, the shop shows {undone.verified}")
        print(book.mission.money)


if __name__ == "__main__":
    main()
