"""State of a run in rounds between two rounds as numbers and bytes: snapshot and restore.

A run has a common part and that of its kind of rounds; ``request_allocation`` is for forks, and the functions behind it
for explanations of a round. Arguments of the run and fields that every round rewrites before it reads them are left
out; jobs that have not arrived are read again. ``tests/style/test_saved_fields.py`` has the list.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from fastsim_ext.rounds.loop import RoundLoop
from fastsim_ext.rounds.ordered_loop import OrderedLoop
from fastsim_ext.rounds.share_loop import ShareLoop

def record_types() -> dict[str, np.dtype[Any]]:
    """Types of stored records for NumPy, by the name of their struct."""

def arrived(run: RoundLoop) -> int:
    """How many jobs have arrived."""

def snapshot(run: RoundLoop) -> tuple[dict[str, float], dict[str, bytes]]:
    """(numbers, bytes) by name: all that ``restore`` needs. Everything noted must have been drained."""

def restore(run: RoundLoop, numbers: Mapping[str, float], parts: Mapping[str, Any]) -> None:
    """Take over a snapshot in a run that has not begun; the jobs that have not arrived are to be fed."""

def request_allocation(run: ShareLoop) -> None:
    """Ask for a new allocation at the next round that ``realloc_s`` allows; used when a fork changes the policy."""

def next_round_s(run: RoundLoop) -> float:
    """When the round begins that is next; the loop stands between two rounds, and a job has been read."""

def visited(run: ShareLoop) -> list[int]:
    """GPU models in the order in which the last round filled them."""

def sort_keys(run: OrderedLoop, jobs: int) -> bytes:
    """The sort keys of so many rows in the last round, MOST_TERMS numbers each, as bytes."""
