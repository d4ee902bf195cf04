"""All that a run in ordered rounds is between two of them, as numbers and bytes, and the way back."""

from collections.abc import Mapping
from typing import Any

from fastsim_ext.rounds.ordered_loop import OrderedLoop

def snapshot(run: OrderedLoop) -> tuple[dict[str, float], dict[str, bytes]]:
    """(numbers, bytes) by name: all that ``restore`` needs. Everything noted must have been drained."""

def restore(run: OrderedLoop, numbers: Mapping[str, float], parts: Mapping[str, Any]) -> None:
    """Take over a snapshot in a run that has not begun; the jobs that have not arrived are to be fed."""
