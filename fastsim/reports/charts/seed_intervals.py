"""95 % confidence intervals of means over seeds: Student's t."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

LEVEL = 0.95
Floats = npt.NDArray[np.float64]


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


def interval_of_mean(values: npt.ArrayLike, level: float = LEVEL) -> tuple[Floats, Floats]:
    """Lower and upper end of the interval over the first axis; both are the mean where a single value allows none.

    Quantities that are never negative have no negative end.
    """
    numbers = np.asarray(values, np.float64)
    known = np.isfinite(numbers)
    mean = np.where(known, numbers, 0).sum(0) / np.maximum(known.sum(0), 1)
    half = np.nan_to_num(half_width(numbers, level))
    low, high = mean - half, mean + half
    return (np.maximum(low, 0.0) if not (numbers < 0).any() else low), high
