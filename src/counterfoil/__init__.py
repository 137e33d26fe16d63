"""Carry one external operation to at most one effect, and keep a trail that a stranger can check.

The names below are the public face. They are loaded on first use, so that `counterfoil verify`
starts without the coordinator.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from counterfoil.coordinator.book import Book
    from counterfoil.coordinator.book import open_book as open  # noqa: A004
    from counterfoil.coordinator.effects import Effect, Owner, effect
    from counterfoil.coordinator.outcome import Outcome
    from counterfoil.errors import (
        BadInput,
        BrokenWorld,
        CounterfoilError,
        NotRun,
        OperationConflict,
        OperationInFlight,
        OutcomeUnknown,
        Refused,
        StoreError,
        ValueMissing,
    )
    from counterfoil.operation.replies import Status
    from counterfoil.owners.http import HttpOwner
    from counterfoil.owners.port import Attempt, Operation
    from counterfoil.owners.results import NoEffect, absent, applied, present, unknown

_HOME = {
    "Attempt": "owners.port",
    "BadInput": "errors",
    "Book": "coordinator.book",
    "BrokenWorld": "errors",
    "CounterfoilError": "errors",
    "Effect": "coordinator.effects",
    "HttpOwner": "owners.http",
    "NoEffect": "owners.results",
    "NotRun": "errors",
    "Operation": "owners.port",
    "OperationConflict": "errors",
    "OperationInFlight": "errors",
    "Outcome": "coordinator.outcome",
    "OutcomeUnknown": "errors",
    "Owner": "coordinator.effects",
    "Refused": "errors",
    "Status": "operation.replies",
    "StoreError": "errors",
    "ValueMissing": "errors",
    "absent": "owners.results",
    "applied": "owners.results",
    "effect": "coordinator.effects",
    "open": "coordinator.book",
    "present": "owners.results",
    "unknown": "owners.results",
}
_RENAMED = {"open": "open_book"}

__all__ = [
    "Attempt",
    "BadInput",
    "Book",
    "BrokenWorld",
    "CounterfoilError",
    "Effect",
    "HttpOwner",
    "NoEffect",
    "NotRun",
    "Operation",
    "OperationConflict",
    "OperationInFlight",
    "Outcome",
    "OutcomeUnknown",
    "Owner",
    "Refused",
    "Status",
    "StoreError",
    "ValueMissing",
    "absent",
    "applied",
    "effect",
    "open",
    "present",
    "unknown",
]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module = importlib.import_module(f"{__name__}.{home}")
    found: object = getattr(module, _RENAMED.get(name, name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
