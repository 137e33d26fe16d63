"""From what a caller hands to ``perform`` to what is stored as the operation's opening."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from counterfoil.errors import BadInput
from counterfoil.operation.events import Opened
from counterfoil.operation.identity import StreamId, check_amount, check_key, make_key
from counterfoil.record.digests import canonical_bytes

if TYPE_CHECKING:
    from counterfoil.coordinator.effects import Effect


class Options(NamedTuple):
    """The options of ``perform`` that are no arguments of the effect, taken out of what was given.

    Their names are ``effects.RESERVED``: an effect's own arguments cannot have them.
    """

    key: Any
    reserve: Any
    preconditions: Mapping[str, Any]
    tenant: Any
    patience: Any
    wait_if_in_flight: bool
    under: Any
    resource: Any
    node: Any

    @classmethod
    def taken_from(cls, given: dict[str, Any]) -> Options:
        """Take them; what is left are the effect's arguments. Raises ``BadInput``."""
        preconditions = given.pop("preconditions", None) or {}
        if not isinstance(preconditions, Mapping):
            raise BadInput("preconditions: give a mapping of names to JSON values")
        return cls(
            given.pop("key", None),
            given.pop("reserve", None),
            preconditions,
            given.pop("tenant", "default"),
            given.pop("patience", None),
            given.pop("wait_if_in_flight", True),
            given.pop("under", None),
            given.pop("resource", None),
            given.pop("node", None),
        )


def opened_of(
    effect: Effect[..., Any],
    stream: StreamId,
    options: Options,
    given: dict[str, Any],
    under: Mapping[str, str] | None,
) -> Opened:
    """Return the opening of an operation. Raises ``BadInput`` for what cannot be stored."""
    arguments = canonical_bytes(given)
    digest = _digest(arguments)
    kept_preconditions = None
    if options.preconditions:
        preconditions = dict(options.preconditions)
        kept_preconditions = canonical_bytes(preconditions).decode()
        both = {"arguments": given, "preconditions": preconditions}
        digest = _digest(canonical_bytes(both))
    key, reserve = options.key, options.reserve
    return Opened(
        action=effect.name,
        owner=effect.owner.name,
        key=make_key(stream, effect.name) if key is None else check_key(key),
        args_digest=digest,
        arguments=arguments.decode(),
        preconditions=kept_preconditions,
        promises=effect.owner.promises_to_store,
        reserve=None if reserve is None else check_amount(reserve, "reserve"),
        own_key=key is not None,
        under=under,
    )


def _digest(canonical: bytes) -> str:
    return "sha256:" + hashlib.sha256(canonical).hexdigest()
