"""One choice, or none, for each thing of each class, as cheap as possible, while rooms of several kinds suffice."""

import numpy as np
import numpy.typing as npt

MOST: int
"""Kinds of rooms at most."""

class Knapsack:
    """Columns stand class by class; one costs ``cost`` (below 0) and takes ``size`` from the room of its ``kind``."""

    columns: int
    classes: int
    kinds: int
    nodes: int
    """States seen by the last search."""
    ended: bool
    """Whether the last search saw all there is."""
    price: npt.NDArray[np.float64]
    """What a unit of each kind of room is worth, from the bound."""
    chosen: npt.NDArray[np.int64]
    """How often each column is taken."""

    def __init__(
        self,
        cost: npt.NDArray[np.float64],
        size: npt.NDArray[np.int64],
        kind: npt.NDArray[np.int64],
        first: npt.NDArray[np.int64],
        count: npt.NDArray[np.int64],
        room: npt.NDArray[np.int64],
    ) -> None: ...
    def bound(self) -> float:
        """No choice of whole things costs less than this."""

    def search(self, reach: float, nodes: int, more: int) -> float | None:
        """The least cost beyond the bound, up to ``reach``, and ``chosen``; None if nothing was found.

        The search ends after so many ``nodes`` without a choice, or ``more`` after the first one.
        """
