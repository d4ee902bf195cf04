"""Trees of maxima over one number for each node; kernels, reached by cimport, and one object for tests."""

from collections.abc import Sequence

class MaxTree:
    """A tree over a list of numbers, for tests in Python; it is number ``beside`` of its forest.

    A ``narrow`` one holds numbers from -127 to 126.
    """

    def __init__(self, values: Sequence[int], beside: int = 0, narrow: bool = False) -> None: ...
    def copy(self, other: MaxTree) -> None:
        """Copy the numbers of another tree of the same size and width."""
    def put(self, at: int, value: int) -> None:
        """Write the number at a position."""
    def put_row(self, at: int, values: Sequence[int]) -> None:
        """Write the numbers of all ROW trees of the forest at a position; this tree is its last one."""
    def top(self) -> int:
        """The largest number."""
    def first(self) -> int:
        """The first position with the largest number."""
    def next(self, at: int, least: int) -> int:
        """The first position from ``at`` on with ``least`` or more, or -1."""
    def gathered(self, least: int, wanted: int) -> list[int]:
        """All positions with ``least`` or more, found below ``wanted`` cells at a time."""
    def sound(self) -> bool:
        """Whether every cell is the largest of those below it."""
