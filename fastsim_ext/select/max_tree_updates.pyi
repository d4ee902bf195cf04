"""Rows of groves of narrow trees, summed up when somebody asks; kernels, reached by cimport, and one object."""

from collections.abc import Sequence

class DeferredMaxForest:
    """A grove of ROW narrow trees that Python can hold, with ``count`` leaves each, all of them -128."""

    def __init__(self, count: int) -> None: ...
    def put(self, at: int, values: Sequence[int]) -> None:
        """Write the numbers of all trees at a position, and what follows from them when somebody asks."""
    def put_one(self, which: int, at: int, value: int) -> None:
        """Write the number of one tree at a position, with what follows from it alone."""
    def first(self, which: int) -> tuple[int, int]:
        """(the largest number of a tree, the first position that has it)."""
    def sound(self, which: int) -> bool:
        """Whether every cell of a tree is the largest of those below it."""
