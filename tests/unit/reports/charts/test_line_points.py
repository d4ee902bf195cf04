"""Points of lines: exact means over steps of time, states at points of demand, quantiles."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastsim as fs
from fastsim.reports.charts.line_points import (
    FEWEST,
    MOST,
    Timeline,
    curves,
    distribution,
    edges_of,
    line_points,
    over_time,
    resampled,
    spans,
    stacked,
    time_unit,
    timeline_of,
)
from fastsim.reports.charts.series import RunSeries, series_of
from tests import reports


def line(x: list[float], y: list[float], over_time: bool = True) -> Timeline:
    return Timeline(np.array(x), {"y": np.array(y)}, over_time)


def test_a_step_has_its_mean_over_time() -> None:
    states = line([0.0, 1.0, 4.0], [2.0, 6.0, 0.0])  # 2 for a second, then 6 for three
    assert resampled(states, "y", np.array([0.0, 2.0, 4.0])).tolist() == [4.0, 6.0]


def test_demand_has_the_state_that_was_reached() -> None:
    states = line([0.0, 1.0, 1.0, 3.0], [5.0, 6.0, 7.0, 8.0], over_time=False)
    assert resampled(states, "y", np.array([0.0, 1.0, 2.0, 3.0])).tolist() == [7.0, 7.0, 8.0]


def test_beyond_its_end_a_run_says_nothing() -> None:
    found = resampled(line([0.0, 2.0], [3.0, 3.0]), "y", np.array([0.0, 2.0, 4.0]))
    assert found[0] == 3.0 and np.isnan(found[1])


@given(st.lists(st.tuples(st.floats(0.01, 9), st.floats(-5, 5)), min_size=2, max_size=30), st.integers(1, 12))
def test_steps_keep_the_integral(pairs: list[tuple[float, float]], count: int) -> None:
    x = np.cumsum([gap for gap, _ in pairs])
    states = Timeline(x, {"y": np.array([value for _, value in pairs])}, True)
    edges = edges_of([states], count)
    expected = float((states.values["y"][:-1] * np.diff(x)).sum())
    # Sums of some thirty products of numbers below 50: rounding is far below this.
    assert float((resampled(states, "y", edges) * np.diff(edges)).sum()) == pytest.approx(expected, abs=1e-9)


def test_seeds_are_averaged_with_the_interval_of_their_mean() -> None:
    lines = [line([0.0, 4.0], [1.0, 0.0]), line([0.0, 2.0], [3.0, 0.0])]
    frame = curves([("a", lines)], "y", np.array([0.0, 2.0, 4.0]), 2.0)
    # Student's t for two values is 12.706.
    assert frame.rows() == [("a", 1.0, 2.0, -10.706, 14.706), ("a", 2.0, 1.0, None, None)]
    within = curves([("a", lines)], "y", np.array([0.0, 2.0, 4.0]), 2.0, (0.0, 5.0))
    assert within.rows() == [("a", 1.0, 2.0, 0.0, 5.0), ("a", 2.0, 1.0, None, None)]
    bounded = [one._replace(most={"y": most}) for one, most in zip(lines, (3.0, 4.0), strict=True)]
    assert curves([("a", bounded)], "y", np.array([0.0, 2.0]), 2.0).row(0)[3:] == (-10.706, 4.0)


def test_parts_are_told_by_label() -> None:
    frame = stacked("a", line([0.0, 2.0], [1.0, 0.0]), np.array([0.0, 1.0, 2.0]), 1.0, {"y": "some"})
    assert frame.rows() == [("a", 1.0, "some", 1.0), ("a", 2.0, "some", 1.0)]


def test_many_lines_have_few_points_each() -> None:
    assert line_points(1) == MOST and line_points(1000) == FEWEST and line_points(0) == MOST
    assert [time_unit(span)[0] for span in (60, 3600, 86400, 1e7)] == ["s", "min", "h", "days"]


def test_timelines_are_shares_of_capacity() -> None:
    result = reports.filling()[0]
    assert not over_time([result]) and over_time([reports.passing()])
    found = timeline_of(result, False)
    assert found is not None
    assert found.values["gpu_milli_alloc"][-1] == pytest.approx(result.summary["gpu_alloc_pct"].item())
    assert found.values["grar"][-1] == pytest.approx(result.summary["grar"].item())
    assert found.values["unallocated"][-1] + found.values["gpu_milli_alloc"][-1] == pytest.approx(100)


def test_distributions_end_at_all_jobs() -> None:
    result = reports.passing()
    seconds = spans(result, "jct_s")
    assert len(seconds) == result.summary["pods_finished"].item()
    frame = distribution(series_of([result]), "jct_s", 3600.0)
    assert frame["y"][-1] == 100.0 and frame["x"][-1] == pytest.approx(seconds[-1] / 3600, rel=1e-4)  # 5 digits
    assert frame["y"].is_sorted() and frame["x"].is_sorted()
    assert distribution(series_of([reports.filling()[0]]), "jct_s", 1.0).equals(
        pl.DataFrame(schema={"run": pl.String} | dict.fromkeys(("x", "y", "low", "high"), pl.Float64))
    )
    assert frame["low"].null_count() == frame["high"].null_count() == len(frame)  # one run has no interval


def test_a_distribution_over_seeds_is_the_mean_of_the_runs_with_its_interval() -> None:
    runs = [fs.simulate("openb:200?seed=1", f"synth:openb?pods={pods}&seed={pods}", record="placements")
            for pods in (20, 30, 40)]  # fmt: skip
    frame = distribution([RunSeries("fgd", tuple(runs))], "jct_s", 1.0)
    x, y, low, high = frame.select("x", "y", "low", "high").row(len(frame) // 2)
    # 5 digits of x may fall on either side of a completion: those within a digit are left out.
    shares = [100 * float((spans(run, "jct_s") <= x * 1.00001).mean()) for run in runs]
    assert y == pytest.approx(sum(shares) / 3, rel=1e-4)
    half = 4.302652730 * pl.Series(shares).std() / 3**0.5  # type: ignore[operator]
    assert (low, high) == pytest.approx((max(y - half, 0), min(y + half, 100)), rel=1e-4)
    assert frame["high"].max() <= 100 and frame["low"].min() >= 0  # type: ignore[operator]
