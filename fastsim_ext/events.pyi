"""The order of events and the heap of departures."""

from typing import Any

class DepartureHeap:
    """A binary heap by (time in s, sequence)."""

    size: int
    def snapshot(self) -> tuple[bytes, int]:
        """(every departure as bytes, how many were ever scheduled): all that restore() needs."""
    def restore(self, items: Any, scheduled: int) -> None:
        """Take over the departures of a snapshot()."""
    def verify(self) -> int:
        """Check the heap order."""
