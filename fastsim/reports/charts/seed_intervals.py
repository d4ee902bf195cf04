"""95 % confidence intervals of means over seeds: Student's t."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LEVEL = 0.95
Floats = npt.NDArray[np.float64]
Bounds = tuple[npt.ArrayLike, npt.ArrayLike]
"""The least and the largest value that a quantity can have, or those of each column."""
EVERYWHERE: Bounds = (-np.inf, np.inf)


def half_width(values: npt.ArrayLike, level: float = LEVEL) -> Floats:
    """Half the confidence interval of the mean over the first axis; NaN where fewer than two values are known."""
    from scipy.special import stdtrit

    numbers = np.asarray(values, np.float64)
    known = np.isfinite(numbers)
    count = known.sum(0)
    enough = np.where(count > 1, count, 2)
    mean = np.where(known, numbers, 0).sum(0) / np.maximum(count, 1)
    squares = (np.where(known, numbers - mean, 0) ** 2).sum(0)
    half = stdtrit(enough - 1.0, (1 + level) / 2) * np.sqrt(squares / (enough - 1) / enough)
    return np.asarray(np.where(count > 1, half, np.nan), np.float64)


def interval_of_mean(values: npt.ArrayLike, within: Bounds = EVERYWHERE) -> tuple[Floats, Floats]:
    """Lower and upper end of the interval over the first axis, which ends where the quantity ends (``within``).

    Both are NaN where fewer than two values, or fewer than half of them, are known: a few runs that last longer than
    the others say nothing about all of them.
    """
    numbers = np.asarray(values, np.float64)
    known = np.isfinite(numbers)
    count = known.sum(0)
    mean = np.where(known, numbers, 0).sum(0) / np.maximum(count, 1)
    half = np.where(2 * count >= len(numbers), half_width(numbers), np.nan)
    # A mean beyond the ends, which rounding may make, keeps its interval around it.
    low = np.maximum(mean - half, np.minimum(within[0], mean))
    return low, np.minimum(mean + half, np.maximum(within[1], mean))
