"""Request frequency of each pod class, and the cost of answering it without a score column."""

class FrequencyTable:
    """One record, for tests in Python."""

    reliable: bool
    def charge(self, now: int, window: float, cost: float) -> None:
        """Count a request at node change ``now``; ``cost`` is its nanoseconds without a column, 0 with one."""
    def rate(self, now: int, window: float) -> float:
        """Nanoseconds that a column saves, or would save, for each change of a node."""
