"""Statistics over the seeds of a curve, under the endings of published metrics: mean, deviation, median, quartiles.

Policies that draw are compared seeds against seeds. The allowed deviation of a mean or quantile is its standard error
for normal values, times the root of two as both sides have one, times Student's quantile at three sigma; the ratio of
two deviations is bounded by Fisher's, of variances.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

THREE_SIGMA = 0.99865
"""Part of a normal distribution below three standard deviations."""
STATISTICS: dict[str, Callable[[Any], float]] = {
    "mean": lambda values: float(np.mean(values)),
    "sd_over_seeds": lambda values: float(np.std(values, ddof=1)),
    "median": lambda values: float(np.median(values)),
    "q25": lambda values: float(np.quantile(values, 0.25)),
    "q75": lambda values: float(np.quantile(values, 0.75)),
}
ERRORS = {"mean": 1.0, "median": 1.2533, "q25": 1.3626, "q75": 1.3626}
"""Standard error of a statistic of many normal values, over that of their mean."""


def statistic(name: str, values: Any) -> float:
    """A statistic of the seeds' values; a deviation needs two."""
    if name == "sd_over_seeds" and len(values) < 2:
        return 0.0
    return STATISTICS[name](values)


def seeds_bar(name: str, values: Any, other: float = 0.0) -> float | None:
    """Allowed deviation between a statistic of these values and ``other``, that of a sample as large; None for one
    seed."""
    from scipy.special import fdtri, stdtrit

    count, spread = len(values), statistic("sd_over_seeds", values)
    if count < 2:
        return None
    if name == "sd_over_seeds":  # two deviations have a ratio
        return max(spread, other) * (1 - 1 / math.sqrt(float(fdtri(count - 1, count - 1, THREE_SIGMA))))
    return float(stdtrit(count - 1, THREE_SIGMA)) * math.sqrt(2 / count) * ERRORS[name] * spread
