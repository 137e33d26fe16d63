"""Money of one mission: exact at any size, one unit, never a float.

An input has at most 64 characters, so it has at most 62 decimals. An amount is therefore held
as a whole number of 10**-62 units: sums and comparisons are those of integers, exact and quick,
and no context, precision or rounding exists that could be set wrong.
"""

from __future__ import annotations

import re
from typing import NewType

AMOUNT_CHARACTERS_MAX = 64
"""Characters of one decimal string; sums may be longer when written."""

_DECIMALS = AMOUNT_CHARACTERS_MAX - 2  # "0." leaves this many
_ONE = 10**_DECIMALS
_DECIMAL = re.compile(r"(0|[1-9][0-9]*)(?:\.([0-9]+))?")

Amount = NewType("Amount", int)
"""A number of 10**-62 units. Never negative in an input; a difference may be."""

ZERO = Amount(0)


def parse_amount(text: str) -> Amount:
    """Read a decimal string.

    Raises ValueError with a phrase for anything but ASCII digits with one optional point between
    digits: no sign, exponent, leading zero, space, separator or line end.
    """
    if len(text) > AMOUNT_CHARACTERS_MAX:
        raise ValueError(f"longer than {AMOUNT_CHARACTERS_MAX} characters")
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise ValueError('no plain decimal: write digits like "10" or "2.5"')
    whole, decimals = match.groups()
    if decimals is None:
        return Amount(int(whole) * _ONE)
    return Amount(int(whole + decimals.ljust(_DECIMALS, "0")))


def read_sum(text: str) -> Amount:
    """Read back what ``write_amount`` wrote of an amount or a sum: it may be longer than an input.

    Raises ValueError for anything else.
    """
    match = _DECIMAL.fullmatch(text)
    decimals = (match.group(2) or "") if match is not None else ""
    if match is None or len(decimals) > _DECIMALS:
        raise ValueError("no sum of amounts")
    return Amount(int(match.group(1) + decimals.ljust(_DECIMALS, "0")))


def write_amount(amount: Amount) -> str:
    """Write an amount without trailing zeros, exactly; a shortfall has a leading minus."""
    if amount < 0:
        return "-" + write_amount(Amount(-amount))
    whole, rest = divmod(amount, _ONE)
    if not rest:
        return str(whole)
    return f"{whole}.{str(rest).zfill(_DECIMALS).rstrip('0')}"
