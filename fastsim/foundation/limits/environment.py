"""Variables of the environment that must be whole numbers, looked at before a library or a reader uses them.

polars panics at 0 threads, and a number that is too large keeps the whole machine busy with starting threads.
"""

from __future__ import annotations

import os

from fastsim.errors import ScenarioError, short

UNPACKED_MIB = "FASTSIM_UNPACKED_MIB"
MOST_THREADS = 1024
BOUNDS = {
    UNPACKED_MIB: (1, 2**40), "POLARS_MAX_THREADS": (1, MOST_THREADS), "POLARS_ASYNC_THREAD_COUNT": (1, MOST_THREADS),
    "POLARS_MAX_BLOCKING_THREAD_COUNT": (1, MOST_THREADS),
}  # fmt: skip
"""The smallest and the largest value of each variable."""


def refuse_odd_numbers() -> None:
    """ScenarioError if a variable of ``BOUNDS`` is set to anything but a whole number between its bounds."""
    for name in BOUNDS:
        number_of(name)


def number_of(name: str) -> int | None:
    """The value of a variable of ``BOUNDS``; None if it is not set or empty."""
    text = os.environ.get(name, "").strip()
    if not text:
        return None
    least, most = BOUNDS[name]
    is_number = text.isascii() and text.isdecimal() and len(text) < 20
    if not (is_number and least <= int(text) <= most):
        raise ScenarioError(name, short(text), f"a whole number from {least:,} to {most:,}")
    return int(text)
