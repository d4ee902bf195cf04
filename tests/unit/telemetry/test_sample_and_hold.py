"""Exporters look now and then; who asks in between is told the last look."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.errors import ScenarioError
from fastsim.telemetry.sample_and_hold import refresh_times, seen_s, window


def test_an_exporter_looks_at_drawn_gaps() -> None:
    times = refresh_times(0, 7000, (6, 8), seed=3)
    gaps = np.diff(times)
    assert set(gaps.tolist()) == {6.0, 8.0} and 0.45 < (gaps == 6).mean() < 0.55
    assert times[0] == 0 and times[-2] <= 7000 < times[-1]
    assert refresh_times(0, 7000, (6, 8), seed=3).tolist() == times.tolist()
    assert refresh_times(0, 7000, (6, 8), seed=4).tolist() != times.tolist()
    assert refresh_times(5, 7, (1,)).tolist() == [5, 6, 7, 8]


def test_the_last_look_is_told() -> None:
    found = seen_s([-1, 0, 5.9, 6, 100], np.array([0.0, 6.0, 14.0]))
    assert np.isnan(found[0]) and found[1:].tolist() == [0, 0, 6, 14]


def test_a_window_repeats_the_last_sample_until_it_is_stale() -> None:
    times, values = np.array([0.0, 2.0, 10.0]), np.array([1.0, 2.0, 3.0])
    assert window(times, values, 0, 4).tolist() == [1, 1, 2, 2, 2]
    assert window(times, values, -2, 1).tolist() == [1, 1]  # nothing before the first sample
    assert window(times, values, 8, 12, stale_s=5).tolist() == [3, 3, 3]
    assert window(times, values, 0, 12, step_s=6).tolist() == [1, 2, 3]
    assert window(times[:0], values[:0], 0, 5).tolist() == []
    assert window(times, np.array([1.0, np.nan, 3.0]), 0, 4).tolist() == [1, 1]


@pytest.mark.parametrize(("begin", "end", "every"), [(0, 1, ()), (0, 1, (0,)), (1, 0, (1,)), (0, float("nan"), (1,))])
def test_bad_gaps_are_named(begin: float, end: float, every: tuple[float, ...]) -> None:
    with pytest.raises(ScenarioError, match="exporter: every_s"):
        refresh_times(begin, end, every)
