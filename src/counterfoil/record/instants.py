"""Instants: RFC 3339 with an offset, compared exactly at any number of fraction digits.

Readings (uncertain-effect, "What comes in"): lower-case ``t`` and ``z`` and ``-00:00`` are fine; a
space, a comma, no offset, ``24:00``, ``:60``, an offset beyond 23:59, a written year 0000 and
digits other than ASCII are not. An offset may carry an instant outside the years 1 to 9999.
"""

from __future__ import annotations

import sys

from counterfoil.errors import BadInput
from counterfoil.record.strict_json import Real
from counterfoil.record.value import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import UTC, datetime, timedelta
else:
    # The C types by themselves: before them, `datetime` defines the same once more in Python.
    try:
        from _datetime import UTC, datetime, timedelta
    except ImportError:
        from datetime import UTC, datetime, timedelta

BEGIN = datetime(1, 1, 1, tzinfo=UTC)
END = timedelta(days=3_652_059)  # 10000-01-01, counted from BEGIN
UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC) - BEGIN
WIDEST_OFFSET = timedelta(hours=23, minutes=59)
SECOND = timedelta(seconds=1)
MICROSECOND = timedelta(microseconds=1)

SEPARATORS = "--T::"  # every third character, from the fifth, of YYYY-MM-DDTHH:MM:SS
WHOLE_SECOND = SEPARATORS + "Z"  # of the same, and what follows
FRACTION = SEPARATORS + "."
DATE_AND_TIME = 19  # characters
MICROSECOND_DIGITS = 6
EXPONENT_DIGITS_MAX = 18  # an exponent below -10**18 is beyond any text that fits a record

_new = tuple.__new__
_from_iso = datetime.fromisoformat
_READS_HOUR_24 = sys.version_info >= (3, 14)
_IN_C = not hasattr(_from_iso, "__func__")  # the reader in Python takes what `int` takes


class Instant(Value):
    """A point in time: what passed since 0001-01-01T00:00:00Z, and the digits finer than that.

    ``finer`` has no trailing zero: text order is numeric order, and instants compare as tuples.
    """

    since: timedelta
    finer: str = ""

    def __str__(self) -> str:
        """Return the instant as RFC 3339, in UTC where its year has four digits there."""
        since, offset = self.since, "Z"
        if since < timedelta():
            since, offset = since + WIDEST_OFFSET, "+23:59"
        elif since >= END:
            since, offset = since - WIDEST_OFFSET, "-23:59"
        written = (BEGIN + since).isoformat(timespec="microseconds")
        whole, _, fraction = written.partition("+")[0].partition(".")
        fraction = (fraction + self.finer).rstrip("0")
        return f"{whole}.{fraction}{offset}" if fraction else whole + offset


def from_unix_us(microseconds: int) -> Instant:
    """Return the instant so many microseconds after 1970-01-01T00:00:00Z.

    Raises BadInput outside the years 1 to 9999: RFC 3339 cannot write it.
    """
    try:
        since = UNIX_EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        since = END
    if not timedelta() <= since < END:
        raise BadInput(f"{microseconds} us is outside the years 1 to 9999; give a time within them")
    return Instant(since)


def parse(text: object) -> Instant:
    """Return the instant that RFC 3339 text names. Raises BadInput for anything else."""
    try:
        return _new(Instant, (parse_common(text) - BEGIN, ""))
    except (ValueError, TypeError, KeyError):
        pass
    try:
        return _parse_any(text)
    except ValueError:
        shown = ascii(text[:40]) if isinstance(text, str) else f"a {type(text).__name__}"
        raise BadInput(f"must be an RFC 3339 time with an offset, not {shown}") from None


def parse_common(text: object) -> datetime:
    """Return the time of a text in the common form: UTC as ``Z``, at most six fraction digits.

    Raises ValueError, TypeError or KeyError for any other text or value.
    """
    # The standard library reads more than RFC 3339. Of texts with these marks it does not, but for
    # what follows a NUL, and an hour 24 in its later versions.
    marks = text[4:20:3]  # type: ignore[index] # what is no text is told by what it raises
    if marks == WHOLE_SECOND:
        common = len(text) == 20  # type: ignore[arg-type]
    elif marks == FRACTION:
        common = 22 <= len(text) <= 27 and text[-1] == "Z"  # type: ignore[arg-type, index]
    else:
        common = False
    if not common or "\x00" in text or not _IN_C:  # type: ignore[operator]
        raise ValueError(text)
    if _READS_HOUR_24 and text[11:13] == "24":  # type: ignore[index]
        raise ValueError(text)
    return _from_iso(text)  # type: ignore[arg-type]


def _parse_any(text: object) -> Instant:
    """Read RFC 3339 in all its forms. Raises ValueError for what is none."""
    if type(text) is not str or text[4:17:3].upper() != SEPARATORS:
        raise ValueError(text)
    whole, tail, fraction = text[:DATE_AND_TIME].upper(), text[DATE_AND_TIME:], ""
    digits = whole[:4] + whole[5:7] + whole[8:10] + whole[11:13] + whole[14:16] + whole[17:]
    if len(digits) != 14 or not _are_digits(digits) or whole[11:13] == "24":
        raise ValueError(text)
    if tail[:1] == ".":
        length = -1 if tail[-1] in "Zz" else -6
        fraction, tail = tail[1:length], tail[length:]
        if not _are_digits(fraction):
            raise ValueError(text)
    since = _from_iso(whole + "Z") - BEGIN - _offset(tail)
    since += int(fraction[:MICROSECOND_DIGITS].ljust(MICROSECOND_DIGITS, "0")) * MICROSECOND
    return _new(Instant, (since, fraction[MICROSECOND_DIGITS:].rstrip("0")))


def _offset(text: str) -> timedelta:
    if text in {"Z", "z"}:
        return timedelta()
    digits = text[1:3] + text[4:]
    if text[:1] not in {"+", "-"} or text[3:4] != ":" or not _are_digits(digits):
        raise ValueError(text)
    if len(digits) != 4 or digits > "2359" or digits[2:] > "59":
        raise ValueError(text)
    offset = timedelta(hours=int(digits[:2]), minutes=int(digits[2:]))
    return offset if text[0] == "+" else -offset


def _are_digits(text: str) -> bool:
    return text.isdigit() and text.isascii()


# --- durations -----------------------------------------------------------------------------------


def more_than_apart(earlier: Instant, later: Instant, seconds: float) -> bool:
    """Say whether ``later - earlier``, signed, is more than ``seconds`` (at least 0), exactly.

    A ``Real`` counts as the decimal it was written as, any other float as its shortest decimal.
    """
    places = MICROSECOND_DIGITS + max(len(earlier.finer), len(later.finer))
    if type(seconds) is int:
        whole, fraction = seconds, ""
    else:
        text = seconds.text if isinstance(seconds, Real) else repr(seconds)
        whole, fraction = _cut_decimal(text, places)
    apart, rest = divmod(later.since - earlier.since, SECOND)
    spare = apart - whole
    if not -1 <= spare <= 1:
        return spare > 0
    from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal

    exact = Context(prec=places + 3, Emin=MIN_EMIN, Emax=MAX_EMAX)
    micro = f"{rest // MICROSECOND:06}"
    left = exact.add(Decimal(spare), Decimal(f"0.{micro}{later.finer}"))
    return left > exact.add(Decimal(f"0.{fraction}"), Decimal(f"0.000000{earlier.finer}"))


def _cut_decimal(text: str, places: int) -> tuple[int, str]:
    """Return the whole part of a JSON number >= 0 and the first ``places`` digits after its point.

    Both times have at most ``places`` digits, so what is cut off decides no comparison.
    """
    mantissa, _, exponent = text.lower().lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = whole + fraction
    if not digits.strip("0"):
        return 0, ""
    if len(exponent.lstrip("+-0")) > EXPONENT_DIGITS_MAX:
        return 0, ""  # not zero, so below zero places: a number that overflows is no JSON of ours
    point = len(whole) + int(exponent or "0")
    if point <= 0:
        return 0, ("0" * min(-point, places) + digits)[:places]
    whole = digits[:point].lstrip("0")
    return int(whole + "0" * (point - len(digits)) if whole else "0"), digits[point:][:places]
