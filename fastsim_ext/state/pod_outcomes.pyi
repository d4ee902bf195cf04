"""What the loop tells of pods when something ends, and the values that are kept of it: waits, slowdowns, losses."""

from typing import Any

def spans_of(rows: Any, room: Any) -> tuple[list[int], int, int]:
    """The same as WorkTable.spans() of outcome rows that were drained, as bytes."""
