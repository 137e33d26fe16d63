"""What an effect and its look-up may say: applied, no effect, present, absent, unknown."""

from __future__ import annotations

from dataclasses import dataclass

from counterfoil.operation.identity import check_amount
from counterfoil.operation.replies import Answer, NoAnswer, Reply, ReplyKind, Result


@dataclass(frozen=True, slots=True)
class Unknown:
    """Neither present nor absent can be said; ``detail`` is one line for people."""

    detail: str


class NoEffect(Exception):
    """Raise it from an effect when the owner documents that nothing happened.

    ``code`` is the owner's own word for it, ``cost`` what the refused call cost all the same.
    Raised out of a time-out or a broken connection it proves nothing, and counts as unknown.
    """

    def __init__(self, code: str, *, cost: str | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.cost = None if cost is None else check_amount(cost, "cost")


def applied(
    value: object = None, *, cost: str | None = None, effect_id: str | None = None
) -> Reply:
    """Say that the owner confirmed the effect; ``cost`` is a decimal string.

    Raises ``BadInput`` for a cost that is no exact amount.
    """
    cost = None if cost is None else check_amount(cost, "cost")
    return Reply(ReplyKind.CONFIRMED, value=value, effect_id=effect_id, cost=cost)


def present(
    value: object = None, *, effect_id: str | None = None, cost: str | None = None
) -> Answer:
    """Say that the owner holds the effect. Raises ``BadInput`` for a cost that is no amount."""
    cost = None if cost is None else check_amount(cost, "cost")
    return Answer(Result.PRESENT, value=value, effect_id=effect_id, cost=cost)


def absent(*, final: bool = False, partial: bool = False) -> Answer:
    """Say that the owner does not show the effect.

    ``final``: the owner's own answer says that no earlier request can commit any more; it counts
    only where the owner promises ``final_by="answer"``. ``partial``: the view that was asked does
    not show every effect, so absent there is never final.
    """
    return Answer(Result.ABSENT, says_final=final, partial=partial)


def unknown(detail: str = "the owner could not say") -> Unknown:
    """Say that it cannot be told now; it will be asked again."""
    return Unknown(detail)


def as_no_answer(said: Unknown) -> NoAnswer:
    """Return what an unknown means as an answer to a question."""
    return NoAnswer(said.detail)
