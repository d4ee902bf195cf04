"""Pareto fronts of points with two values, both to be minimised."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

def sorted_fronts(first__p: Floats, second__p: Floats, enough: int) -> tuple[list[list[int]], Floats]:
    """The fronts as lists of points, until they have ``enough``; and the crowding of these points, 0 of others."""

def ascending(value: Floats) -> npt.NDArray[np.int32]:
    """For tests: positions in ascending order of their values, ties as in numpy's quicksort."""
