"""Quantities in Kubernetes' notation: ``500m``, ``1.5Gi``, ``12e6``; read exactly, rounded by the caller's choice.

A quantity is a sign, digits with or without a point, and a suffix: ``n u m k M G T P E`` are powers of ten, ``Ki Mi Gi
Ti Pi Ei`` powers of 1,024, ``e3`` or ``E3`` is an exponent. A suffix alone is zero. The finest unit is a nano: smaller
amounts are rounded away from zero, and so is every amount that has to be a whole number.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

from fastsim.errors import InputError, short

DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
"""Powers of ten by suffix."""
BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
"""Powers of two by suffix."""
EXPECTED = "a quantity such as 2, 500m, 1.5Gi or 12e6 (suffixes n u m k M G T P E, Ki Mi Gi Ti Pi Ei)"
LONGEST = 100
"""Most characters of a number, and largest exponent: more is no real amount."""
DISTINCT = 1 << 14
"""Texts whose numbers are kept: objects of a cluster repeat few of them."""
MIB = 1 << 20
MOST = 2**53
"""Largest amount, in thousandths of CPUs, MiB or pieces."""

_FORM = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:([eE][+-]?\d+)|(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])|)", re.ASCII)


def quantity(value: object, where: str = "quantity") -> Fraction:
    """The number in a text, or in a number of a YAML or JSON document; InputError naming `where` if it is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(where, repr(value), EXPECTED)
    text = str(value)
    amount = None if len(text) > LONGEST else _amount(text)
    if amount is None:
        raise InputError(where, repr(value), EXPECTED)
    if isinstance(amount, float):
        raise InputError(where, repr(value), f"an exponent of at most {LONGEST}")
    return amount


@lru_cache(DISTINCT)
def _amount(text: str) -> Fraction | float | None:
    """The number in a text; None if it is none, infinity if its exponent is too large."""
    form = _FORM.fullmatch(text)
    if form is None or not (form[2] or form[3] or form[5]):
        return None
    sign, whole, part, power, suffix = form[1], form[2], form[3] or "", form[4], form[5] or ""
    exponent = int(power[1:]) if power else DECIMAL.get(suffix, 0)
    if abs(exponent) > LONGEST:
        return math.inf
    amount = Fraction(int(f"{whole}{part}" or "0"), 10 ** len(part)) * Fraction(10) ** exponent
    amount *= 2 ** BINARY.get(suffix, 0)
    nano = Fraction(ceil(amount * 10**9), 10**9)
    return -nano if sign == "-" else nano


def rounded_away(amount: Fraction) -> int:
    """The next whole number away from zero, as Kubernetes rounds."""
    return ceil(amount) if amount >= 0 else floor(amount)


def whole(value: object, where: str = "quantity", most: int | None = None) -> int:
    """A quantity as a whole number; InputError beyond `most`."""
    return _within(rounded_away(quantity(value, where)), value, where, most)


def milli(value: object, where: str = "quantity", most: int | None = None) -> int:
    """A quantity in thousandths, as CPUs are counted; InputError beyond `most` of them."""
    return _within(rounded_away(1000 * quantity(value, where)), value, where, most)


def request_mib(value: object, where: str = "quantity") -> int:
    """Bytes of a request in MiB, rounded away from zero."""
    return _within(rounded_away(quantity(value, where) / MIB), value, where, MOST)


def capacity_mib(value: object, where: str = "quantity") -> int:
    """Bytes of a capacity in MiB, rounded down."""
    return _within(floor(quantity(value, where) / MIB), value, where, MOST)


def _within(amount: int, value: object, where: str, most: int | None) -> int:
    if most is not None and abs(amount) > most:
        raise InputError(where, short(value), f"an amount of at most {most:,}, in the unit that fastsim counts in")
    return amount
