"""Outcome rows, one for each end of a stay or pod, and the values taken from them: waits, slowdowns, losses."""

from typing import Any

def spans_of(rows: Any, room: Any) -> tuple[list[int], int, int]:
    """The same as WorkTable.spans() for drained outcome rows, as bytes."""
