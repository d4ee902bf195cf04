"""A multiset of numbers in a known range, with its smallest and its largest; comparison of rows of 32 numbers.

Raw points of one class over the nodes take few distinct values in a known range, so there is a counter for each
value. After the removal of an extreme the next one is searched for at the next query.
"""

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
