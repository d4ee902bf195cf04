"""Intervals of means: those of the statistics of a sweep, for many columns at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.experiments.statistics.intervals import interval
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
    assert np.isnan(low[2]) and np.isnan(high[2])
    assert low[1] == pytest.approx(6 - half[1]) and high[1] == pytest.approx(6 + half[1])


def test_an_interval_ends_where_the_quantity_ends() -> None:
    low, high = interval_of_mean([[-1.0, 90.0, 50.0], [1.0, 100.0, 51.0]], ([-np.inf, 0.0, 0.0], [np.inf, 100.0, 100]))
    assert low[0] < -1 and high[0] > 1 and high[1] == 100.0 and 0 < low[1] < 90 and (low[2], high[2]) != (0, 100)
    above = interval_of_mean([[100.1], [100.1]], (0.0, 100.0))  # rounding
    assert above[0][0] == above[1][0] == 100.1


def test_a_few_runs_that_last_longer_have_no_interval() -> None:
    last = np.full((30, 3), np.nan)
    last[:2, 0], last[:14, 1], last[:15, 2] = 1.0, 1.0, 1.0
    low, _ = interval_of_mean(last + np.arange(30)[:, None])
    assert np.isnan(low).tolist() == [True, True, False]
