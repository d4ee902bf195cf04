"""Means with confidence intervals, and paired comparisons across seeds.

Runs of one seed have the same random inputs under every policy, so policies are compared pair by pair: the differences
vary far less than the figures do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fastsim.errors import ScenarioError
from fastsim.foundation.limits.knobs import RESAMPLED

METHODS = ("t", "bootstrap")
DRAWS = 10_000
"""Resamples of a bootstrap, and random assignments of signs where there are more than that to try."""
EVERYWHERE = (-math.inf, math.inf)
"""The bounds of a quantity that may have any value."""

Floats = Sequence[float] | Any


class Interval(NamedTuple):
    """A mean and its confidence interval; NaN where a single value allows none."""

    mean: float
    low: float
    high: float
    sd: float
    n: int


class PairedComparison(NamedTuple):
    """Mean difference of pairs with its interval, and its two-sided p-value."""

    difference: Interval
    p_value: float


def interval(
    values: Floats, level: float = 0.95, method: str = "t", seed: int = 0, within: tuple[float, float] = EVERYWHERE
) -> Interval:
    """Mean and confidence interval of some values: Student's t, or percentiles of a seeded bootstrap.

    ``within`` are the least and the largest value that the quantity can have: the interval ends there at the latest,
    which takes no possible mean from it.
    """
    check_method(level, method)
    numbers = np.asarray(values, np.float64)
    count = len(numbers)
    if not count:
        raise ScenarioError("interval", "no values", "at least one")
    if not np.isfinite(numbers).all():
        raise ScenarioError("interval", "values that are not finite", "finite ones")
    mean = float(numbers.mean())
    if count == 1:
        return Interval(mean, math.nan, math.nan, math.nan, 1)
    sd = float(numbers.std(ddof=1))
    low, high = (mean, mean) if not sd > 0 else _ends(numbers, level, method, seed)
    return Interval(mean, max(low, min(within[0], mean)), min(high, max(within[1], mean)), sd, count)


def _ends(numbers: Any, level: float, method: str, seed: int) -> tuple[float, float]:
    """Both ends of the confidence interval of the mean of different numbers."""
    if method == "bootstrap":
        RESAMPLED.refuse(len(numbers), DRAWS)
        from scipy import stats

        random = np.random.Generator(np.random.PCG64(seed))
        drawn = stats.bootstrap((numbers,), np.mean, n_resamples=DRAWS, confidence_level=level, method="percentile",
                                rng=random).confidence_interval  # fmt: skip
        return float(drawn.low), float(drawn.high)
    from scipy.special import stdtrit  # scipy.stats takes a second to load

    parts = np.asarray([(1 - level) / 2, (1 + level) / 2])
    low, high = stdtrit(len(numbers) - 1.0, parts) * _standard_error(numbers) + numbers.mean()
    return float(low), float(high)


def _standard_error(numbers: Any) -> float:
    """Standard error of the mean of at least two numbers."""
    return float(np.std(numbers, ddof=1) / np.sqrt(len(numbers)))


def paired(ours: Floats, theirs: Floats, level: float = 0.95, method: str = "t", seed: int = 0) -> PairedComparison:
    """Difference of ``ours`` from ``theirs``, pair by pair: Student's t, or a test of random signs (bootstrap)."""
    one, two = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if one.shape != two.shape:
        raise ScenarioError("paired", f"{len(one)} and {len(two)} values", "pairs")
    difference = one - two
    return PairedComparison(interval(difference, level, method, seed), _p_value(difference, method, seed))


def _p_value(difference: Any, method: str, seed: int) -> float:
    """Two-sided p-value of a mean difference; NaN for a single pair."""
    if method == "bootstrap":
        RESAMPLED.refuse(len(difference), DRAWS)
    if len(difference) < 2:
        return math.nan
    if method == "t":
        return _student_p_value(difference)
    from scipy import stats

    random = np.random.Generator(np.random.PCG64(seed))
    signs = stats.permutation_test((difference,), np.mean, permutation_type="samples", vectorized=True,
                                   n_resamples=DRAWS - 1, rng=random)  # fmt: skip
    return float(signs.pvalue)


def _student_p_value(difference: Any) -> float:
    """Two-sided p-value of Student's t for a mean of 0."""
    from scipy.special import stdtr

    if not difference.std() > 0:  # the statistic is divided by it
        return 1.0 if difference[0] == 0 else 0.0
    count, mean = len(difference), difference.mean()
    variance = np.mean((difference - mean) ** 2) * (count / (count - 1))
    return 2 * float(stdtr(count - 1.0, -abs(mean / np.sqrt(variance / count))))


def holm(p_values: Floats) -> list[float]:
    """P-values corrected for their number (Holm); NaN stays NaN and counts for nothing."""
    numbers = np.asarray(p_values, np.float64)
    corrected = np.full(len(numbers), np.nan)
    order = [int(k) for k in np.argsort(numbers) if not np.isnan(numbers[k])]
    largest = 0.0
    for rank, k in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * float(numbers[k])))
        corrected[k] = largest
    return [float(value) for value in corrected]


def check_method(level: float, method: str) -> None:
    """ScenarioError unless there is such a method, and the level is a part."""
    if not 0 < level < 1:
        raise ScenarioError("level", repr(level), "a part between 0 and 1")
    if method not in METHODS:
        raise ScenarioError("method", repr(method), f"one of {', '.join(METHODS)}")
