"""A tree of maxima over one number for each node; kernels, reached by cimport, and one object to look at them."""

from collections.abc import Sequence

class MaxTree:
    """A tree that Python can hold, for a list of numbers; ``beside`` trees stand before it in its grove.

    A ``narrow`` one has room for numbers from -127 to 126.
    """

    def __init__(self, values: Sequence[int], beside: int = 0, narrow: bool = False) -> None: ...
    def repeat(self, other: MaxTree) -> None:
        """Say what another tree of the same size and width says."""
    def put(self, at: int, value: int) -> None:
        """Write the number at a position."""
    def put_row(self, at: int, values: Sequence[int]) -> None:
        """Write the numbers of all trees of a grove of ROW at a position; its last tree is this one."""
    def top(self) -> int:
        """The largest number."""
    def first(self) -> int:
        """The first position with the largest number."""
    def next(self, at: int, least: int) -> int:
        """The first position from ``at`` on with ``least`` or more, or -1."""
    def gathered(self, least: int, wanted: int) -> list[int]:
        """All positions with ``least`` or more, gathered below so many cells at a time."""
    def sound(self) -> bool:
        """Whether the cells above the leaves are exact and no cell exceeds the one above it."""
