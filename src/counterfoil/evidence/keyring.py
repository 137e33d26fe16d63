"""Ed25519 keys as text and as values, and the keyring: t of n trusted public keys.

A key is its 32 bytes, in the one canonical encoding; its id is their SHA-256 and decides nothing.
Weak keys are refused when they are loaded, because a signature under one proves nothing: with a
point of low order anybody can sign anything (faults, signature rules 3 to 5).

Public key files hold one key a line, with a validity window after it where there is one, or one
PEM block::

    counterfoil-ed25519-public:<base64> not_before=2025-01-01T00:00:00Z not_after=<time>
"""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256

from counterfoil.errors import BadInput
from counterfoil.evidence import base64_text
from counterfoil.record import instants
from counterfoil.record.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from counterfoil.record.instants import Instant

PUBLIC_PREFIX = "counterfoil-ed25519-public:"
PRIVATE_PREFIX = "counterfoil-ed25519-private:"
PEM_BEGIN = "-----BEGIN "
RAW_BYTES = 32
KEYS_MAX = 16
"""Trusted keys in a keyring: every signature may have to be tried under every key."""

FIELD = 2**255 - 19
CURVE_D = -121665 * pow(121666, -1, FIELD) % FIELD
ROOT_OF_MINUS_ONE = pow(2, (FIELD - 1) // 4, FIELD)


class KeyFault(StrEnum):
    """What is wrong with a key, or with keys together."""

    KEY_UNREADABLE = "key_unreadable"
    KEY_NOT_CANONICAL = "key_not_canonical"
    KEY_LOW_ORDER = "key_low_order"
    KEY_DUPLICATE = "key_duplicate"
    KEYRING_SIZE = "keyring_size"
    THRESHOLD = "threshold"


class UnusableKey(BadInput):
    """A key, or keys together, that cannot be used. ``fault`` is stable, the text is not."""

    def __init__(self, fault: KeyFault, detail: str) -> None:
        super().__init__(detail)
        self.fault = fault
        self.detail = detail


class PublicKey(Value):
    """A public key and the time in which it is trusted, both ends inside; None is no end.

    ``raw`` is the canonical encoding, 32 bytes. Made by ``public_key`` and ``read_public_keys``,
    which refuse weak keys.
    """

    raw: bytes
    not_before: Instant | None = None
    not_after: Instant | None = None

    @property
    def key_id(self) -> str:
        """The SHA-256 of the raw key, in lower-case hex."""
        return sha256(self.raw).hexdigest()

    @property
    def has_window(self) -> bool:
        """Whether the key is trusted for a time only."""
        return self.not_before is not None or self.not_after is not None

    def is_valid_at(self, moment: Instant) -> bool:
        """Say whether the key is trusted at this moment."""
        started = self.not_before is None or self.not_before <= moment
        return started and (self.not_after is None or moment <= self.not_after)


class SigningKey:
    """A private key, made of its 32-byte seed. It never shows the seed."""

    __slots__ = ("_private", "public")

    def __init__(self, seed: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

        self._private = Ed25519PrivateKey.from_private_bytes(seed)
        self.public = PublicKey(self._private.public_key().public_bytes_raw())

    def __repr__(self) -> str:
        return f"<SigningKey {self.public.key_id}>"

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature of a message."""
        return self._private.sign(message)


class Keyring(Value):
    """Trusted public keys, no two alike, and how many of them must have signed.

    Made by ``keyring_of``.
    """

    keys: tuple[PublicKey, ...]
    threshold: int = 1


def keyring_of(keys: Iterable[PublicKey], threshold: int = 1) -> Keyring:
    """Return the keyring of these keys, ``threshold`` of which must have signed.

    Raises UnusableKey for one key twice (whatever its names and windows), for no keys or more than
    ``KEYS_MAX``, and for a threshold outside 1 to their number.
    """
    found = tuple(keys)
    if not 1 <= len(found) <= KEYS_MAX:
        raise UnusableKey(
            KeyFault.KEYRING_SIZE, f"{len(found)} trusted keys; name 1 to {KEYS_MAX} of them"
        )
    seen: set[bytes] = set()
    for key in found:
        if key.raw in seen:
            raise UnusableKey(
                KeyFault.KEY_DUPLICATE, f"key {key.key_id} stands twice; name each key once"
            )
        seen.add(key.raw)
    if not 1 <= threshold <= len(found):
        raise UnusableKey(
            KeyFault.THRESHOLD,
            f"a threshold of {threshold} for {len(found)} trusted keys; "
            "ask for at least 1 and at most all of them",
        )
    return Keyring(found, threshold)


def public_key(
    raw: bytes, not_before: Instant | None = None, not_after: Instant | None = None
) -> PublicKey:
    """Return the public key with this encoding, trusted in this window.

    Raises UnusableKey for what is no point of the curve, for a second spelling of one, for a point
    of low order, and for a window that ends before it begins.
    """
    _refuse_weak(raw)
    if not_before is not None and not_after is not None and not_after < not_before:
        raise _unreadable("its window ends before it begins; swap not_before and not_after")
    return PublicKey(raw, not_before, not_after)


# --- text ----------------------------------------------------------------------------------------


def read_public_keys(data: bytes) -> tuple[PublicKey, ...]:
    """Return the keys that the bytes of a public key file hold, at least one.

    One line a key, blank lines and lines that begin with ``#`` left out; or one PEM block with an
    Ed25519 SubjectPublicKeyInfo. Raises UnusableKey.
    """
    text = _text(data)
    if text.startswith(PEM_BEGIN):
        return (public_key(_raw_of_pem(text)),)
    lines = [line.strip() for line in text.split("\n")]
    keys = tuple(_read_line(line) for line in lines if line and not line.startswith("#"))
    if not keys:
        raise _unreadable("there is no key in it; `counterfoil keygen` makes a pair")
    return keys


def public_line(key: PublicKey) -> str:
    """Return the line of a public key file for this key, without a line end."""
    line = PUBLIC_PREFIX + base64_text.encode(key.raw)
    if key.not_before is not None:
        line += f" not_before={key.not_before}"
    if key.not_after is not None:
        line += f" not_after={key.not_after}"
    return line


def read_private_key(data: bytes) -> SigningKey:
    """Return the key that the bytes of a private key file hold. Raises UnusableKey.

    No message ever quotes from the bytes.
    """
    text = _text(data)
    if text.startswith(PUBLIC_PREFIX):
        raise _unreadable("it is a public key; sign with the private one")
    seed = base64_text.decode(text.removeprefix(PRIVATE_PREFIX))
    if not text.startswith(PRIVATE_PREFIX) or seed is None or len(seed) != RAW_BYTES:
        raise _unreadable(f"no line {PRIVATE_PREFIX}<base64 of 32 bytes>; make one with keygen")
    return SigningKey(seed)


def private_line(seed: bytes) -> str:
    """Return the line of a private key file for a 32-byte seed, without a line end."""
    return PRIVATE_PREFIX + base64_text.encode(seed)


def _text(data: bytes) -> str:
    try:
        return data.decode("ascii").strip()
    except UnicodeDecodeError:
        raise _unreadable("not a key file: it is not ASCII text") from None


def _read_line(line: str) -> PublicKey:
    word, *options = line.split()
    if word.startswith(PRIVATE_PREFIX):
        raise _unreadable("it is a private key; trust the public one, and keep this one secret")
    raw = base64_text.decode(word.removeprefix(PUBLIC_PREFIX))
    if not word.startswith(PUBLIC_PREFIX) or raw is None or len(raw) != RAW_BYTES:
        raise _unreadable(
            f"no line {PUBLIC_PREFIX}<base64 of 32 bytes> and no PEM public key; "
            "give the file that keygen wrote"
        )
    window: dict[str, Instant] = {}
    for option in options:
        name, _, value = option.partition("=")
        if name not in {"not_before", "not_after"} or name in window:
            raise _unreadable("after a key only not_before=TIME and not_after=TIME may stand, once")
        try:
            window[name] = instants.parse(value)
        except BadInput as error:
            raise _unreadable(f"{name} {error}") from None
    return public_key(raw, window.get("not_before"), window.get("not_after"))


def _raw_of_pem(text: str) -> bytes:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if "PRIVATE KEY" in text:
        raise _unreadable("it is a private key; trust the public one, and keep this one secret")
    try:
        found = load_pem_public_key(text.encode())
    except (ValueError, UnsupportedAlgorithm):
        raise _unreadable("not a PEM public key; give an Ed25519 one") from None
    # Rule 4: the algorithm is the trusted key's, and Ed25519 is the only one.
    if not isinstance(found, Ed25519PublicKey):
        raise _unreadable("a PEM public key of another kind; give an Ed25519 one")
    return found.public_bytes_raw()


def _unreadable(detail: str) -> UnusableKey:
    return UnusableKey(KeyFault.KEY_UNREADABLE, detail)


# --- the curve -----------------------------------------------------------------------------------


def _refuse_weak(raw: bytes) -> None:
    """Raise UnusableKey unless these bytes are the one spelling of a point of high order.

    The library that verifies signatures does not look: it takes any 32 bytes for a key.
    """
    if len(raw) != RAW_BYTES:
        raise _unreadable(f"a public key has {RAW_BYTES} bytes, not {len(raw)}")
    number = int.from_bytes(raw, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    if y >= FIELD:
        raise UnusableKey(KeyFault.KEY_NOT_CANONICAL, "a second spelling of a key; make a new key")
    x = _root((y * y - 1) * pow(CURVE_D * y * y + 1, -1, FIELD) % FIELD)
    if x is None:
        raise _unreadable("32 bytes that are no point of the curve; make a new key")
    if x == 0 and sign:
        raise UnusableKey(KeyFault.KEY_NOT_CANONICAL, "a second spelling of a key; make a new key")
    for _ in range(3):  # times 8, the curve's cofactor: points of low order come to (0, 1)
        x, y = _double(x, y)
    if (x, y) == (0, 1):
        raise UnusableKey(
            KeyFault.KEY_LOW_ORDER,
            "a key of low order, under which anybody can sign anything; make a new key",
        )


def _root(square: int) -> int | None:
    """Return a square root in the field, or None (RFC 8032, section 5.1.3)."""
    root = pow(square, (FIELD + 3) // 8, FIELD)
    for candidate in (root, root * ROOT_OF_MINUS_ONE % FIELD):
        if candidate * candidate % FIELD == square:
            return candidate
    return None


def _double(x: int, y: int) -> tuple[int, int]:
    both = CURVE_D * x * x * y * y
    doubled_x = 2 * x * y * pow(1 + both, -1, FIELD) % FIELD
    return doubled_x, (y * y + x * x) * pow(1 - both, -1, FIELD) % FIELD
