"""How often something is asked for, and what it costs to have no column for it."""

class FrequencyTable:
    """One habit, for eyes in Python."""

    settled: bool
    def charge(self, now: int, window: float, cost: float) -> None:
        """One more question at node change ``now``, which cost so many nanoseconds; 0 if there was a column."""
    def rate(self, now: int, window: float) -> float:
        """Nanoseconds a column saves for each change of a node."""
