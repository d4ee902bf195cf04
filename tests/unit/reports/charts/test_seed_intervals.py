"""Intervals of means: those of the statistics of a sweep, for many columns at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.experiments.statistics import interval
from fastsim.reports.charts.seed_intervals import half_width, interval_of_mean


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=9))
def test_a_column_is_what_the_statistics_say(values: list[float]) -> None:
    found = interval(values)
    # Both add up the same numbers in another order.
    assert half_width(values) == pytest.approx(found.mean - found.low, rel=1e-9, abs=1e-6)


def test_unknown_values_do_not_count() -> None:
    rows = np.array([[1.0, 5.0, np.nan], [3.0, np.nan, np.nan], [2.0, 7.0, 4.0]])
    half = half_width(rows)
    assert half[0] == pytest.approx(4.302652729911275 * 1 / np.sqrt(3))  # the printed quantile of t for 2
    assert half[1] == pytest.approx(12.706204736432095) and np.isnan(half[2])
    low, high = interval_of_mean(rows)
    assert low[2] == high[2] == 4.0 and low[1] == 0.0 and high[1] == pytest.approx(6 + half[1])
    assert interval_of_mean([[-1.0], [1.0]])[0][0] < -1
