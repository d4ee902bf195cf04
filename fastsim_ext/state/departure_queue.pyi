"""The order of events and the queue of departures."""

from typing import Any

class DepartureQueue:
    """Departures by (time in s, sequence): the nearest in a heap, others in buckets of time and beyond those."""

    size: int
    n_items: int
    n_buckets: int
    n_beyond: int
    def snapshot(self) -> tuple[bytes, int]:
        """(every departure as bytes, how many were ever scheduled): all that restore() needs."""
    def restore(self, items: Any, scheduled: int) -> None:
        """Insert the departures of a snapshot()."""
    def put(self, t: float, slot: int) -> None:
        """Schedule the departure of a slot at second ``t``."""
    def take(self) -> tuple[float, int]:
        """Remove the soonest departure; (second, slot)."""
    def verify(self) -> int:
        """Check the order of the heap and that every departure is in its bucket."""
