"""Deferred updates of one-byte max trees; kernels, reached by cimport, and one object for tests."""

from collections.abc import Sequence

class DeferredMaxForest:
    """A forest of ROW narrow trees with ``count`` leaves each, at first -128; for tests in Python."""

    def __init__(self, count: int) -> None: ...
    def put(self, at: int, values: Sequence[int]) -> None:
        """Write the numbers of all trees at a position; maxima are updated before the next query."""
    def put_one(self, which: int, at: int, value: int) -> None:
        """Write the number of one tree at a position and update the maxima above it."""
    def first(self, which: int) -> tuple[int, int]:
        """(largest number of a tree, first position that has it)."""
    def sound(self, which: int) -> bool:
        """Whether every cell of a tree is the largest of those below it."""
