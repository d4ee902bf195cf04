"""The order of events and the heap of departures."""

class DepartureHeap:
    """A binary heap by (time in s, sequence)."""

    size: int
    def verify(self) -> int:
        """Check the heap order."""
