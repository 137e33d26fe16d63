"""An owner in this process that does what a test tells it to, and counts effects."""

from __future__ import annotations

import contextlib
import json
import threading
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from counterfoil.errors import BadInput
from counterfoil.operation.promises import Duration, seconds
from counterfoil.testing.sandbox import Fault, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from counterfoil.coordinator.drive import Clock
    from counterfoil.owners.port import Attempt


class OnCall(StrEnum):
    """What the owner does with one call."""

    COMMIT = "commit"
    LOSE = "lose"  # commits, and the connection breaks before the reply
    TIME_OUT = "time out"  # commits, and the caller hears nothing
    DROP = "drop"  # the connection breaks, and nothing ever arrives
    REFUSE = "refuse"
    LATE = "late"  # the caller times out; the request lands later
    TWICE = "twice"  # the request arrives twice


class OnFind(StrEnum):
    """What the owner shows to one question."""

    TRUTH = "truth"
    STALE = "stale"  # what it held before the last call
    PARTIAL = "partial"  # a view in which nothing is shown, and which says that it is partial
    FAIL = "fail"  # the connection breaks


class View(NamedTuple):
    """What the owner shows under a key.

    ``partial``: the view does not show every effect. ``final``: nothing under this key is on its
    way to the owner any more.
    """

    effect: Mapping[str, Any] | None
    partial: bool = False
    final: bool = False


class OwnerRefusal(Exception):
    """The owner refuses a call: it documents that nothing happened. ``code`` is its word."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class _Held(NamedTuple):
    key: str
    args: Mapping[str, Any]
    token: int | None
    due_s: float | None


class ScriptedOwner:
    """A counting owner. Write an effect against ``call`` and its look-up against ``find``.

    ``calls`` and ``finds`` say what happens, call by call ("commit", "lose", "time out", "drop",
    "refuse", "late", "twice") and question by question ("truth", "stale", "partial", "fail");
    when they run out all goes well. A late request lands at ``release()``, or ``late_by`` after the
    call on ``clock``. ``deduplicates``: the same key makes one effect. ``fences``: a token
    below one that it has seen, in a call or a question, is refused.

    Raises ``BadInput`` for a word that is not in the script's vocabulary.
    """

    def __init__(
        self,
        calls: Iterable[str] = (),
        finds: Iterable[str] = (),
        *,
        deduplicates: bool = False,
        fences: bool = False,
        clock: Clock | None = None,
        late_by: Duration | None = None,
    ) -> None:
        if (clock is None) != (late_by is None):
            raise BadInput("ScriptedOwner: give clock and late_by together, or neither")
        self._calls = [_word(OnCall, word) for word in calls]
        self._finds = [_word(OnFind, word) for word in finds]
        self._deduplicates = deduplicates
        self._fences = fences
        self._clock = clock
        self._late_by_s = None if late_by is None else seconds(late_by, of="late_by")
        self._lock = threading.RLock()
        self._made: dict[str, list[dict[str, Any]]] = {}
        self._before: dict[str, list[dict[str, Any]]] = {}
        self._held: list[_Held] = []
        self._bar = 0
        self._forced: OnCall | None = None
        self._frozen: dict[str, list[dict[str, Any]]] | None = None
        self.heard: list[Request] = []

    # --- what an effect is written against -------------------------------------------------------

    def call(
        self, key: str, args: Mapping[str, Any], token: int | None = None
    ) -> Mapping[str, Any]:
        """Make the effect and return it: ``{"id", "key", "args"}``.

        Raises ``OwnerRefusal`` (also for a token that is superseded),
        ``ConnectionResetError`` or ``TimeoutError``, as the script says.
        """
        with self._lock:
            self._land_what_is_due()
            self.heard.append(Request(True, f"call {key}", f"{key} {_text(args)}"))
            move = self._forced or (self._calls.pop(0) if self._calls else OnCall.COMMIT)
            self._before = self._copy()
            if move is OnCall.REFUSE:
                raise OwnerRefusal("refused")
            if move is OnCall.DROP:
                raise ConnectionResetError("the connection broke before anything arrived")
            if move is OnCall.LATE:
                self._hold(key, args, token)
                raise TimeoutError("no reply")
            if move is OnCall.TWICE:
                self._commit(key, args, token)
            made = self._commit(key, args, token)
            if move is OnCall.LOSE:
                raise ConnectionResetError("the connection broke before the reply")
            if move is OnCall.TIME_OUT:
                raise TimeoutError("no reply")
            return made

    def find(self, key: str, token: int | None = None) -> View:
        """Return what is held under a key; where it fences, a token makes it refuse older ones.

        Raises ``ConnectionResetError`` where the script says "fail".
        """
        with self._lock:
            self._land_what_is_due()
            self.heard.append(Request(False, f"find {key}", key))
            self._bar = max(self._bar, token or 0)
            move = self._finds.pop(0) if self._finds else OnFind.TRUTH
            if move is OnFind.FAIL:
                raise ConnectionResetError("the connection broke")
            if move is OnFind.PARTIAL:
                return View(None, partial=True)
            if move is OnFind.STALE or self._frozen is not None:
                old = self._before if move is OnFind.STALE else self._frozen
                found = (old or {}).get(key)
                return View(found[0] if found else None)
            found = self._made.get(key)
            on_its_way = any(held.key == key for held in self._held)
            return View(found[0] if found else None, final=not on_its_way)

    # --- what a test looks at --------------------------------------------------------------------

    @property
    def effects(self) -> dict[str, int]:
        """How many effects there are under each key."""
        with self._lock:
            self._land_what_is_due()
            return {key: len(made) for key, made in self._made.items()}

    @property
    def count(self) -> int:
        """How many effects there are."""
        return sum(self.effects.values())

    def release(self) -> None:
        """Let every late request land now."""
        with self._lock:
            self._frozen = None
            for held in self._held:
                self._land(held)
            self._held.clear()

    def sandbox(self, arguments: Callable[[], Mapping[str, Any]]) -> ScriptedSandbox:
        """Return this owner as a sandbox for `check_effect`; ``arguments`` makes new ones."""
        return ScriptedSandbox(self, arguments)

    # --- parts -----------------------------------------------------------------------------------

    def force(self, move: OnCall | None, *, freeze_reads: bool = False) -> None:
        """Let every call meet this move until told otherwise; frozen reads thaw at `release`."""
        with self._lock:
            self._forced = move
            if freeze_reads:
                self._frozen = self._copy()

    def _copy(self) -> dict[str, list[dict[str, Any]]]:
        return {key: list(made) for key, made in self._made.items()}

    def _hold(self, key: str, args: Mapping[str, Any], token: int | None) -> None:
        due_s = None
        if self._clock is not None and self._late_by_s is not None:
            due_s = self._clock.monotonic_s() + self._late_by_s
        self._held.append(_Held(key, dict(args), token, due_s))

    def _land_what_is_due(self) -> None:
        if self._clock is None:
            return
        now_s = self._clock.monotonic_s()
        due = [held for held in self._held if held.due_s is not None and held.due_s <= now_s]
        self._held = [held for held in self._held if held not in due]
        for held in due:
            self._land(held)

    def _land(self, held: _Held) -> None:
        with contextlib.suppress(OwnerRefusal):  # nobody is there to hear it
            self._commit(held.key, held.args, held.token)

    def _commit(self, key: str, args: Mapping[str, Any], token: int | None) -> dict[str, Any]:
        if self._fences and token is not None and token < self._bar:
            raise OwnerRefusal("token_superseded")
        self._bar = max(self._bar, token or 0)
        made = self._made.setdefault(key, [])
        if not (self._deduplicates and made):
            number = sum(len(each) for each in self._made.values()) + 1
            made.append({"id": f"effect-{number}", "key": key, "args": dict(args)})
        return made[-1]


class ScriptedSandbox:
    """A `Sandbox` over a `ScriptedOwner`, without a network."""

    def __init__(self, owner: ScriptedOwner, arguments: Callable[[], Mapping[str, Any]]) -> None:
        self.owner = owner
        self._arguments = arguments

    def arguments(self) -> Mapping[str, Any]:
        """Return named arguments for one new operation."""
        return self._arguments()

    def effects(self, attempt: Attempt) -> int:
        """Return how many effects the owner holds in all."""
        del attempt
        return self.owner.count

    def set_fault(self, fault: Fault | None) -> bool:
        """Let calls meet this fault, or pass."""
        self.owner.force(
            None if fault is None else _MOVES[fault], freeze_reads=fault is Fault.STALE_READ
        )
        return True

    def release(self) -> None:
        """Let late requests land, and show the truth again."""
        self.owner.release()

    def requests(self) -> Sequence[Request]:
        """Return every call and question so far."""
        return tuple(self.owner.heard)


_MOVES = {
    Fault.NO_REPLY: OnCall.TIME_OUT,
    Fault.CUT_REPLY: OnCall.LOSE,
    Fault.LATE_COMMIT: OnCall.LATE,
    Fault.STALE_READ: OnCall.LOSE,
    Fault.SENT_TWICE: OnCall.TWICE,
}


_Word = TypeVar("_Word", bound=StrEnum)


def _word(vocabulary: type[_Word], word: str) -> _Word:
    try:
        return vocabulary(word)
    except ValueError:
        words = ", ".join(vocabulary)
        raise BadInput(f"ScriptedOwner: {word!r} is not in its script; use {words}") from None


def _text(args: Mapping[str, Any]) -> str:
    return json.dumps(dict(args), default=str)
