"""What a user declares: owners and their promises, effects and their look-ups.

Nothing here opens a database or sends anything; a registry maps an action to its adapter, so that
recovery in another process finds the same code under the same name.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, overload

from counterfoil.errors import BadInput, DuplicateRegistration, InvalidPromise
from counterfoil.operation.identity import check_name
from counterfoil.operation.promises import Duration, Fences, Promises, seconds
from counterfoil.owners.callables import CallableAdapter

if TYPE_CHECKING:
    from collections.abc import Callable

    from counterfoil.owners.port import Adapter, Attempt

P = ParamSpec("P")
R = TypeVar("R")

RESERVED = frozenset(
    {
        "key",
        "reserve",
        "preconditions",
        "tenant",
        "under",
        "resource",
        "node",
        "patience",
        "wait_if_in_flight",
    }
)
"""Options of ``perform``: an effect's own arguments cannot have these names."""

FencesWord = Literal["no", "on_send", "on_ask", "by_call", "by_lease"]


class Owner:
    """A service that holds effects, and what it promises. Said once; stored with each operation.

    ``deduplicates``: the same key and arguments make one effect; then ``key_retention`` says for
    how long ("24h"), or "forever". ``settles_within``: this long after a call ended it can commit
    no more. ``final_by="answer"``: the owner's own answer says when absent is final. ``fences``:
    how it learns of fencing tokens. ``replays_refusals``: a refused key is spent.
    ``sender_pause_max``: the longest that a sender of yours may freeze. ``knows_keys``: it can be
    asked by key.

    Raises ``InvalidPromise`` for a promise that contradicts itself or cannot be read.
    """

    def __init__(
        self,
        name: str,
        *,
        deduplicates: bool = False,
        key_retention: Duration | None = None,
        settles_within: Duration | None = None,
        final_by: Literal["answer"] | None = None,
        fences: FencesWord = "no",
        replays_refusals: bool = False,
        sender_pause_max: Duration | None = None,
        knows_keys: bool = True,
    ) -> None:
        self.name = check_name(name, "owner name")
        if deduplicates and key_retention is None:
            raise InvalidPromise(
                f'owner {name!r} deduplicates: say for how long, key_retention="24h" or "forever"'
            )
        if key_retention is not None and not deduplicates:
            raise InvalidPromise(
                f"owner {name!r}: key_retention means nothing without deduplicates=True"
            )
        if final_by not in (None, "answer"):
            raise InvalidPromise(f'owner {name!r}: final_by is "answer" or left out')
        try:
            how = Fences(fences)
        except ValueError:
            words = ", ".join(Fences)
            raise InvalidPromise(f"owner {name!r}: fences is one of {words}") from None
        limited = key_retention not in (None, "forever")
        self.promises = Promises(
            deduplicates=deduplicates,
            key_retention_s=seconds(key_retention, of="key_retention") if limited else None,
            settles_within_s=_optional(settles_within, "settles_within"),
            final_by_answer=final_by == "answer",
            fences=how,
            replays_refusals=replays_refusals,
            sender_pause_max_s=_optional(sender_pause_max, "sender_pause_max"),
            knows_keys=knows_keys,
        )
        self.promises_to_store = self.promises.to_json()

    def __repr__(self) -> str:
        return f"Owner({self.name!r})"


def _optional(duration: Duration | None, of: str) -> float | None:
    return None if duration is None else seconds(duration, of=of)


@dataclass(eq=False)
class Effect(Generic[P, R]):
    """A named external change: how to make it, and how to ask whether it happened.

    Made by ``effect``. ``execute`` is the plain function.
    """

    name: str
    owner: Owner
    deadline_s: float | None
    execute: Callable[..., Any]
    look_up: Callable[..., Any] | None = None
    token_reader: Callable[[], object] | None = None
    fence_raiser: Callable[[Attempt], object] | None = None
    ready: Adapter | None = None

    def reconcile(self, look_up: Callable[[Attempt], Any]) -> Callable[[Attempt], Any]:
        """Register the look-up: it returns ``present``, ``absent`` or ``unknown``."""
        if self.look_up is not None:
            raise DuplicateRegistration(f"effect {self.name!r} has a look-up already")
        self.look_up = look_up
        return look_up

    def read_token(self, reader: Callable[[], int]) -> Callable[[], int]:
        """Register how to read the token of the lease that the owner grants (`by_lease`)."""
        self.token_reader = reader
        return reader

    def raise_fence(self, raiser: Callable[[Attempt], bool]) -> Callable[[Attempt], bool]:
        """Register the call that makes the owner refuse older tokens (`by_call`)."""
        self.fence_raiser = raiser
        return raiser

    @property
    def adapter(self) -> Adapter:
        """Our side of the owner, for this action."""
        if self.ready is None or (self.look_up is not None and not self.ready.can_ask):
            function = self.execute

            if inspect.iscoroutinefunction(function):

                async def execute(attempt: Attempt) -> object:
                    return await function(attempt, **attempt.arguments)
            else:

                def execute(attempt: Attempt) -> object:  # type: ignore[misc]
                    return function(attempt, **attempt.arguments)

            self.ready = CallableAdapter(
                execute, self.look_up, self.token_reader, self.fence_raiser
            )
        return self.ready

    def bind(self, arguments: dict[str, Any]) -> None:
        """Check arguments against the effect's own signature. Raises ``BadInput``."""
        required, allowed = _argument_names(self.execute)
        if allowed is not None and required <= arguments.keys() <= allowed:
            return
        try:
            _signature(self.execute).bind(None, **arguments)
        except TypeError as error:
            raise BadInput(f"effect {self.name!r}: {error}") from None


_signatures: dict[Any, inspect.Signature] = {}


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    found = _signatures.get(function)
    if found is None:
        found = _signatures[function] = inspect.signature(function)
    return found


_names: dict[Any, tuple[frozenset[str], frozenset[str] | None]] = {}


def _argument_names(function: Callable[..., Any]) -> tuple[frozenset[str], frozenset[str] | None]:
    """Return the names that must be given, and those that may; None where any may."""
    found = _names.get(function)
    if found is None:
        named = list(_signature(function).parameters.values())[1:]
        plain = [p for p in named if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
        required = frozenset(p.name for p in plain if p.default is p.empty)
        allowed = frozenset(p.name for p in plain) if len(plain) == len(named) else None
        found = _names[function] = (required, allowed)
    return found


_registry: dict[str, Effect[..., Any]] = {}


def registered(name: str) -> Effect[..., Any] | None:
    """Return the effect of this name, or None if this process has not registered it."""
    return _registry.get(name)


class _Decorator:
    """What ``effect(...)`` returns: takes a function, a class with execute and reconcile, or one
    of its instances."""

    def __init__(self, name: str, owner: Owner, deadline: Duration | None) -> None:
        self.name, self.owner = name, owner
        self.deadline_s = None if deadline is None else seconds(deadline, of="deadline")

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, declared: Callable[Concatenate[Attempt, P], R]
    ) -> Effect[P, R]: ...
    @overload
    def __call__(self, declared: object) -> Effect[..., Any]: ...
    def __call__(self, declared: Any) -> Effect[..., Any]:
        if inspect.isfunction(declared):
            _check_names(self.name, declared)
            made: Effect[..., Any] = Effect(self.name, self.owner, self.deadline_s, declared)
        else:
            made = self._from_class(declared() if inspect.isclass(declared) else declared)
        if self.name in _registry:
            raise DuplicateRegistration(
                f"effect {self.name!r} is registered already; one name stands for one effect"
            )
        _registry[self.name] = made
        return made

    def _from_class(self, declared: Any) -> Effect[..., Any]:
        execute = getattr(declared, "execute", None)
        look_up = getattr(declared, "reconcile", None)
        if not callable(execute):
            raise BadInput(
                f"effect {self.name!r}: decorate a function, or a class with execute(operation, "
                "attempt) and reconcile(operation, attempt)"
            )
        bounds = bool(getattr(declared, "bounds_calls", False))
        adapter = CallableAdapter(
            _of_class(execute),
            _of_class(look_up) if callable(look_up) else None,
            getattr(declared, "read_token", None),
            getattr(declared, "raise_fence", None),
            bounds_calls=bounds,
        )
        deadline_s = self.deadline_s
        if deadline_s is None and bounds:
            deadline_s = float(declared.deadline_s)
        return Effect(self.name, self.owner, deadline_s, _any_arguments, ready=adapter)


def _of_class(method: Callable[..., Any]) -> Callable[[Attempt], Any]:
    """Return the seed's form, ``execute(operation, attempt)``, as a function of the attempt."""
    if inspect.iscoroutinefunction(method):

        async def of_attempt_async(attempt: Attempt) -> object:
            return await method(attempt.operation, attempt)

        return of_attempt_async

    def of_attempt(attempt: Attempt) -> object:
        return method(attempt.operation, attempt)

    return of_attempt


def _any_arguments(attempt: object, **arguments: object) -> None:
    """The signature of a class form: any named arguments."""


def _check_names(name: str, function: Callable[..., Any]) -> None:
    parameters = list(_signature(function).parameters.values())
    if not parameters:
        raise BadInput(f"effect {name!r}: its first parameter is the attempt")
    taken = sorted({p.name for p in parameters[1:]} & RESERVED)
    if taken:
        raise BadInput(
            f"effect {name!r}: {', '.join(taken)} is an option of perform; rename the argument"
        )


def effect(name: str, *, owner: Owner, deadline: Duration | None = None) -> _Decorator:
    """Declare an external change under a stable name.

    Decorate a function whose first parameter is the attempt and whose others are named arguments,
    or a class with ``execute(operation, attempt)`` and ``reconcile(operation, attempt)``. Where a
    ``deadline`` is named, a plain function runs on a thread of its own and `perform` does not wait
    for it longer than that. Raises ``DuplicateRegistration`` for a name that is taken, ``BadInput``
    for a function that cannot be an effect.
    """
    if not isinstance(owner, Owner):
        raise BadInput(f"effect {name!r}: owner must be a counterfoil.Owner")
    return _Decorator(check_name(name, "effect name"), owner, deadline)
