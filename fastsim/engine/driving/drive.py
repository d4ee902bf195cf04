"""The drive of a loop: it advances until it stops, Python does what it stopped for, and it goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum


class Stop(IntEnum):
    """Why a loop stopped; the numbers are those of ``fastsim_ext/types.pxd``."""

    DONE = 0
    """The run has reached its end; the others are numbers above 0."""
    WANT_ARRIVALS = 1
    """The next arrivals are to be fed."""
    PAUSE = 2
    """The budget of the call is used up."""
    DESCHEDULE_DUE = 3
    """Running pods are to be evicted and placed again now."""
    WANT_NODE_CHANGES = 4
    """The next nodes that join, leave or fail are to be fed."""
    GPU_SAMPLE = 5
    """A sample of the GPUs is due before the next event."""
    ASK_POLICY = 6
    """The policy is to decide about the active jobs."""
    PRICE_CHANGE = 7
    """The prices of GPUs may have changed."""
    DRAIN = 8
    """Many records wait to be collected."""
    DEADLOCK = 9
    """Jobs wait, and no future event can start one."""


Handlers = Mapping[Stop, Callable[[], object]]
"""The handler of each stop."""


def drive(advance: Callable[[], int], handlers: Handlers) -> None:
    """Call ``advance`` until the run is done, and the handler of each other stop in between."""
    by_number = {int(stop): handler for stop, handler in handlers.items()}  # names would be hashed at every stop
    while stop := advance():
        by_number[stop]()
