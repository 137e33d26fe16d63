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
    from collections.abc import Iterable
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

    _Admission().admit(value, "", ())
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


class _Admission:
    """One walk over the arguments; ``_bytes`` grows with the least that each value can take."""

    def __init__(self) -> None:
        self._bytes = 0

    def admit(self, value: object, path: str, parents: tuple[int, ...]) -> None:
        self._bytes += len(value) if isinstance(value, str) else 1
        if self._bytes > limits.ARGUMENTS_BYTES_MAX:
            _too_long()
        if value is None or isinstance(value, bool):
            return
        if isinstance(value, str):
            _admit_text(value, path, "a lone surrogate in the string")
        elif isinstance(value, int):
            if abs(value) > limits.INTEGER_MAX:
                raise InvalidArguments(
                    path, "an integer beyond 2**53 - 1, which JSON cannot carry; pass it as text"
                )
        elif isinstance(value, float):
            if value - value != 0:
                raise InvalidArguments(path, "NaN and the infinities are not JSON numbers")
        elif isinstance(value, list | tuple):
            self._admit_all(value, ((str(i), item) for i, item in enumerate(value)), path, parents)
        elif isinstance(value, dict):
            self._admit_all(value, self._members(value, path), path, parents)
        else:
            raise InvalidArguments(
                path, f"{type(value).__name__} is not a JSON type; pass text, numbers, lists, dicts"
            )

    def _admit_all(
        self,
        container: object,
        children: Iterable[tuple[str, object]],
        path: str,
        parents: tuple[int, ...],
    ) -> None:
        if id(container) in parents:
            raise InvalidArguments(path, "the value contains itself")
        parents = (*parents, id(container))
        if len(parents) > limits.ARGUMENTS_DEPTH_MAX:
            raise InvalidArguments(
                path, f"nested more than {limits.ARGUMENTS_DEPTH_MAX} deep; flatten the arguments"
            )
        for token, child in children:
            self.admit(child, f"{path}/{token}", parents)

    def _members(self, values: dict[object, object], path: str) -> Iterable[tuple[str, object]]:
        for name, child in values.items():
            if not isinstance(name, str):
                raise InvalidArguments(path, f"a member name is {type(name).__name__}, not text")
            token = pointer_token(name)
            _admit_text(name, f"{path}/{token}", "a lone surrogate in the name")
            self._bytes += len(name)
            yield token, child


def _admit_text(text: str, path: str, problem: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArguments(path, problem) from None


def _too_long() -> NoReturn:
    raise InvalidArguments(
        "", f"longer than {limits.ARGUMENTS_BYTES_MAX} bytes; pass a reference to the content"
    )
