"""Lengths of time, for tables and options alike: the largest, and their texts with units."""

from __future__ import annotations

import re
from numbers import Integral

MOST_SECONDS = 2.0**53
"""Largest distance of a time from 0 and largest length of time, s; beyond it neighbours are one number."""
MOST_SECONDS_TEXT = "2**53 s"
"""The same in messages."""


UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
"""Seconds of the units that lengths of time may have in texts."""
WITH_UNITS = "a length of time such as 90s, 30min, 1h or 1d12h"
"""Forms of such a text besides seconds, in messages."""
_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_PART = re.compile(rf"\s*({_NUMBER})\s*({'|'.join(UNITS)})(?![a-zA-Z])", re.ASCII)


def seconds_of(text: str) -> float | None:
    """Seconds of a number, or of numbers with units; None for any other text.

    >>> seconds_of("1d12h"), seconds_of("1.5 min"), seconds_of("90"), seconds_of("1 month")
    (129600.0, 90.0, 90.0, None)
    """
    if re.fullmatch(rf"\s*{_NUMBER}\s*", text, re.ASCII):
        return float(text)
    total, at = 0.0, 0
    while match := _PART.match(text, at):
        total, at = total + float(match[1]) * UNITS[match[2]], match.end()
    return total if at and not text[at:].strip() else None


GO_SEEDS = "a whole number from -2**63 to 2**63 - 1"
"""Seeds of Go's generator."""


def is_go_seed(value: object) -> bool:
    """Whether a value is a seed that Go's generator takes."""
    return is_whole(value) and -(2**63) <= int(str(value)) < 2**63


def is_whole(value: object) -> bool:
    """Whether a value is a whole number, of Python or NumPy, and no truth value."""
    return type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))


def is_span(value: object, least: float = 0.0) -> bool:
    """Whether a value is a number of seconds from ``least`` to the largest."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and least <= value <= MOST_SECONDS  # type: ignore[operator]
