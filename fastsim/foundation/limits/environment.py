"""Needs of a process before libraries are loaded: variables that are whole numbers, and room for addresses.

polars panics at 0 threads, and a number that is too large keeps the whole machine busy with starting threads. Where
addresses are limited too tightly, its memory cannot be reserved, and the process is aborted. The library that draws
pictures reserves many times as many addresses, and is aborted alike.
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
FEW_THREADS, ROOM_OF_FEW = 2, 1200
"""With so few threads of polars a small run needs so many MiB of addresses; with less it fails at times."""
ROOM, ROOM_OF_THREAD = 2400, 16
"""MiB of addresses that a run of some pods reserves with more threads, and what each of them adds."""
ROOM_OF_PICTURES = 72_000
"""MiB of addresses that suffice for a picture: the library that draws it reserves 64 GiB at once for its JavaScript."""


def refuse_unfit() -> None:
    """ScenarioError in a process in which libraries would fail as soon as they are loaded or used."""
    refuse_odd_numbers()
    refuse_little_room()


def refuse_little_room() -> None:
    """ScenarioError if addresses of this process are limited (``ulimit -v``) to fewer than the libraries reserve."""
    threads = number_of("POLARS_MAX_THREADS") or _processors()
    needed = ROOM_OF_FEW if threads <= FEW_THREADS else ROOM + ROOM_OF_THREAD * threads
    less = "POLARS_MAX_THREADS=1 needs less" if needed > ROOM_OF_FEW else ""
    _refuse_less(needed, f"{threads:,} threads of polars", less)


def refuse_little_room_of_pictures() -> None:
    """ScenarioError if addresses are limited to fewer than pages and pictures of charts need."""
    _refuse_less(ROOM_OF_PICTURES, "pages and pictures of charts", "charts as .json need less")


def _refuse_less(needed: int, user: str, less: str) -> None:
    """ScenarioError if this process has fewer MiB of addresses than their user needs."""
    try:
        import resource
    except ImportError:  # Windows
        return
    found, _ = resource.getrlimit(resource.RLIMIT_AS)
    if found != resource.RLIM_INFINITY and found < needed << 20:
        expected = f"at least {needed:,} MiB for {user}"
        raise ScenarioError("ulimit -v", f"{found >> 20:,} MiB of addresses", expected, less)


def _processors() -> int:
    """Processors that this process may use, which is the usual number of threads of polars."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
