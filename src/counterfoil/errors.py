"""Every error that Counterfoil raises on purpose, in three families.

``BadInput``: what was handed in cannot be used; change it and call again.
``Refused``: the call is understood and may not happen now; ``code`` says why.
``BrokenWorld``: a file, a database or a service failed; mend it and call again.

Each message is one line and says what to do next. Standard library only and cheap to import:
``counterfoil verify`` starts with it.
"""

from __future__ import annotations


class CounterfoilError(Exception):
    """The root of all errors raised on purpose; the command line exits with ``exit_code``."""

    exit_code = 2


class BadInput(CounterfoilError, ValueError):
    """What was handed in cannot be used. Nothing was stored and nothing was sent."""

    exit_code = 2


class Refused(CounterfoilError):
    """The call was understood and may not happen now. ``code`` is stable, the text is not."""

    exit_code = 1

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail


class BrokenWorld(CounterfoilError):
    """A file, a database or a service failed. What was durable before is durable still."""

    exit_code = 3


# --- bad input -----------------------------------------------------------------------------------


class MalformedRecord(BadInput):
    """Bytes that are no uncertain-effect/v1 record: nothing was judged.

    ``path`` is a JSON Pointer (empty for the document), ``detail`` a short phrase.
    """

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(f"{path or 'the document'}: {detail}")
        self.path = path
        self.detail = detail


class InvalidArguments(BadInput):
    """Arguments that RFC 8785 cannot carry; ``path`` is a JSON Pointer to the value."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(f"argument {path or '(the whole)'}: {detail}")
        self.path = path
        self.detail = detail


class InvalidOperationId(BadInput):
    """An operation id that is empty, too long, or not text."""


class EffectNotRegistered(BadInput):
    """An effect name that this process has not registered."""


class DuplicateRegistration(BadInput):
    """Two effects under one name."""


class InvalidPromise(BadInput):
    """What was said of an owner contradicts itself or cannot be read."""


# --- refusals ------------------------------------------------------------------------------------


class OperationConflict(Refused):
    """An operation id used again with something else; ``members`` names what differs."""

    def __init__(self, operation_id: str, members: tuple[str, ...]) -> None:
        super().__init__(
            "operation_conflict",
            f"operation {operation_id!r} exists with another {', '.join(members)}; "
            "use a new id for a new operation, or the first arguments for the old one",
        )
        self.operation_id = operation_id
        self.members = members


class KeyInUse(Refused):
    """Another operation has this idempotency key at this owner."""

    def __init__(self, key: str, operation_id: str) -> None:
        super().__init__(
            "key_in_use",
            f"key {key!r} belongs to operation {operation_id!r}; a key stands for one operation",
        )


class OperationInFlight(Refused):
    """Another worker is carrying this operation out now, and the caller chose not to wait."""

    def __init__(self, operation_id: str) -> None:
        super().__init__(
            "operation_in_flight",
            f"operation {operation_id!r} is being carried out by another worker; "
            "wait for it, or call again later",
        )
        self.operation_id = operation_id


class OperationNotFound(Refused):
    """No operation has this id in this book."""

    def __init__(self, operation_id: str) -> None:
        super().__init__(
            "operation_not_found",
            f"no operation {operation_id!r} in this database; check the id and the tenant",
        )
        self.operation_id = operation_id


class OutcomeUnknown(Refused):
    """The operation's effect may or may not exist. It must not be sent again by hand."""


class NotRun(Refused):
    """The operation is known to have left no effect."""


class ValueMissing(Refused):
    """The operation committed, and the value it returned was not kept."""


# --- a broken world ------------------------------------------------------------------------------


class StoreError(BrokenWorld):
    """The database cannot be used."""


class StoreNotFound(StoreError):
    """No database there; ``create=True`` makes one."""


class StoreCorrupt(StoreError):
    """The database is damaged, or is no database of ours."""


class StoreTooNew(StoreError):
    """The database was written by a later version than this program understands."""


class StoreUnwritable(StoreError):
    """The database, or its folder, cannot be written."""


class StoreUnsafe(StoreError):
    """An engine, file system or setting under which durability cannot be promised."""


class StoreFailed(StoreError):
    """A write or sync failed: this process sends nothing more from this store."""
