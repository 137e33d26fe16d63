"""RFC 8785 bytes of an operation's arguments, and their sha256 (uncertain-effect, "Attempts").

What RFC 8785 cannot carry is refused here, with the place of the value, before anything is stored
or sent. Canonicalising recurses and is slow, so depth and size are measured first.
"""

from __future__ import annotations

from counterfoil import limits
from counterfoil.errors import InvalidArguments
from counterfoil.record.strict_json import pointer_token

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

PREFIX = "sha256:"
HEX_DIGITS = 64


def canonical_bytes(value: object) -> bytes:
    """Return the RFC 8785 bytes of a JSON value: None, bool, int, float, str, list, tuple, dict.

    Equal values give equal bytes. Raises InvalidArguments, with a JSON Pointer, for an integer
    beyond 2**53 - 1, NaN, an infinity, a lone surrogate, a name that is not text, any other type, a
    value that contains itself, and what is deeper or longer than limits.ARGUMENTS_* allow.
    """
    import rfc8785

    try:
        _Admission().admit(value, ())
    except _InadmissibleError as error:
        path = "".join("/" + pointer_token(name) for name in reversed(error.names))
        raise InvalidArguments(path, error.detail) from None
    # The package's type names JSON values only; `admit` has just shown that this is one.
    data: bytes = rfc8785.dumps(value)  # type: ignore[arg-type]
    if len(data) > limits.ARGUMENTS_BYTES_MAX:
        _too_long()
    return data


def arguments_digest(value: object) -> str:
    """Return ``sha256:`` and the hex digest of ``canonical_bytes(value)``. Raises as that does."""
    from hashlib import sha256

    return PREFIX + sha256(canonical_bytes(value)).hexdigest()


def is_digest(text: object) -> bool:
    """Say whether this is ``sha256:`` and 64 lower-case hex digits."""
    if type(text) is not str or len(text) != len(PREFIX) + HEX_DIGITS or text[:7] != PREFIX:
        return False
    try:
        # Skips white space, so the count of bytes tells that there was none.
        return len(bytes.fromhex(text[7:])) == HEX_DIGITS // 2 and text == text.lower()
    except ValueError:
        return False


class _InadmissibleError(Exception):
    """A value that RFC 8785 cannot carry; ``names`` is the way to it, the last step first."""

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.names: list[str] = []


class _Admission:
    """One walk over the arguments; ``_bytes`` grows with the least that each value can take.

    A container that stands in several places is walked once: its size and height are known then.
    """

    def __init__(self) -> None:
        self._bytes = 0
        self._known: dict[int, tuple[int, int]] = {}

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._bytes > limits.ARGUMENTS_BYTES_MAX:
            _too_long()

    def admit(self, value: object, parents: tuple[int, ...]) -> int:
        """Return how many containers deep the value is, itself included; 0 for all others."""
        self._count(len(value) if isinstance(value, str) else 1)
        if isinstance(value, list | tuple | dict):
            return self._admit_container(value, parents)
        if isinstance(value, str):
            _admit_text(value, "a lone surrogate in the string")
        elif isinstance(value, int):
            if abs(value) > limits.INTEGER_MAX:
                raise _InadmissibleError(
                    "an integer beyond 2**53 - 1, which JSON cannot carry; pass it as text"
                )
        elif isinstance(value, float):
            if value - value != 0:
                raise _InadmissibleError("NaN and the infinities are not JSON numbers")
        elif value is not None:
            raise _InadmissibleError(
                f"{type(value).__name__} is not a JSON type; pass text, numbers, lists, dicts"
            )
        return 0

    def _admit_container(
        self,
        value: list[object] | tuple[object, ...] | dict[object, object],
        parents: tuple[int, ...],
    ) -> int:
        if id(value) in parents:
            raise _InadmissibleError("the value contains itself")
        size, height = self._known.get(id(value), (0, 1))
        if len(parents) + height > limits.ARGUMENTS_DEPTH_MAX:
            raise _InadmissibleError(
                f"nested more than {limits.ARGUMENTS_DEPTH_MAX} deep; flatten the arguments"
            )
        if size:
            self._count(size)
            return height
        before, inside = self._bytes, (*parents, id(value))
        if isinstance(value, dict):
            self._admit_names(value)
        for name, child in value.items() if isinstance(value, dict) else enumerate(value):
            try:
                height = max(height, 1 + self.admit(child, inside))
            except _InadmissibleError as error:
                error.names.append(str(name))
                raise
        self._known[id(value)] = self._bytes - before, height
        return height

    def _admit_names(self, values: dict[object, object]) -> None:
        for name in values:
            if not isinstance(name, str):
                raise _InadmissibleError(f"a member name is {type(name).__name__}, not text")
            self._count(len(name))
            try:
                _admit_text(name, "a lone surrogate in the name")
            except _InadmissibleError as error:
                error.names.append(name)
                raise


def _admit_text(text: str, problem: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _InadmissibleError(problem) from None


def _too_long() -> NoReturn:
    raise InvalidArguments(
        "", f"longer than {limits.ARGUMENTS_BYTES_MAX} bytes; pass a reference to the content"
    )
