"""A multiset of numbers in a known range, with its smallest and its largest; kernels, and one object for tests."""

from collections.abc import Sequence

class ValueCountsTable:
    """A multiset for tests in Python."""

    def __init__(self) -> None: ...
    def add(self, value: int) -> None:
        """Add a number."""
    def remove(self, value: int) -> None:
        """Remove a number, which must be there."""
    def ends(self) -> tuple[int, int] | None:
        """(smallest, largest) number, or None if empty; OverflowError if a number is outside the span."""

def differing_positions(a: Sequence[int], b: Sequence[int]) -> list[int]: ...
