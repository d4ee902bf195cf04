"""The largest times and lengths of time, for tables and options alike."""

from __future__ import annotations

MOST_SECONDS = 2.0**53
"""Largest distance of a time from 0 and largest length of time, s; beyond it neighbours are one number."""
MOST_SECONDS_TEXT = "2**53 s"
"""The same in messages."""


def is_span(value: object, least: float = 0.0) -> bool:
    """Whether a value is a number of seconds from ``least`` to the largest."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and least <= value <= MOST_SECONDS  # type: ignore[operator]
