"""The points of a report's lines: a bounded number, whatever the length of the runs.

A curve over time has the mean of each step of time, a curve over arrived demand the state at the end of each step, a
distribution equally spaced quantiles. Runs of one series are averaged; ``low`` and ``high`` bound the 95 % interval of
their mean, which ends where the quantity ends, and are null where too few runs last so long.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from fastsim.engine.result import Result
from fastsim.engine.tables import FRAG_COLUMNS
from fastsim.reports.charts.seed_intervals import EVERYWHERE, Bounds, interval_of_mean
from fastsim.reports.charts.series import RunSeries

Floats = npt.NDArray[np.float64]

BUDGET, FEWEST, MOST = 5000, 60, 300
"""Most points of one chart, fewest and most points of a line."""
TIME_UNITS = ((600.0, "s", 1.0), (3 * 3600.0, "min", 60.0), (7 * 86400.0, "h", 3600.0), (np.inf, "days", 86400.0))
"""Longest span in seconds, unit and its seconds."""
COLUMNS = ("gpu_milli_alloc", "frag_milli", "power_w", "pods_unplaced", "pods_pending", "active_gpus",
           "cpu_milli_alloc", "cpu_milli_capacity")  # fmt: skip
"""Columns of a timeline that lines show."""


class Timeline(NamedTuple):
    """The timeline of one run: positions of its rows on the axis, and values by name."""

    x: Floats
    values: dict[str, Floats]
    over_time: bool
    most: Mapping[str, float] = MappingProxyType({})
    """The largest value that a quantity can have in this run, where runs differ in it."""


def line_points(lines: int) -> int:
    """Points of each line of a chart with ``lines`` lines."""
    return min(MOST, max(FEWEST, BUDGET // max(lines, 1)))


def time_unit(span_s: float) -> tuple[str, float]:
    """Unit of an axis for a span of time, and its seconds; ValueError for a span that is not a number."""
    for limit, name, seconds in TIME_UNITS:
        if span_s <= limit:
            return name, seconds
    raise ValueError(f"a timeline of {span_s} s")


def over_time(results: Sequence[Result]) -> bool:
    """Whether the axis is time, as pods leave in some run, and not arrived demand."""
    return any(int(result.summary["pods_finished"][0] or 0) > 0 for result in results)


def timeline_of(result: Result, by_time: bool) -> Timeline | None:
    """The timeline of a run; None if it recorded none."""
    names = ("t_s", "arrived_gpu_milli", "gpu_milli_capacity", *COLUMNS, *FRAG_COLUMNS)
    frame = result.recorded_rows("timeline").select(pl.col(names).cast(pl.Float64)).collect()
    if frame.is_empty():
        return None
    columns = {name: np.asarray(frame[name].to_numpy(), np.float64) for name in names}
    capacity = columns["gpu_milli_capacity"]
    share = np.divide(100.0, capacity, out=np.zeros_like(capacity), where=capacity > 0)
    values = {name: columns[name] * share for name in ("gpu_milli_alloc", "frag_milli", *FRAG_COLUMNS)}
    values |= {"power_kw": columns["power_w"] / 1000, "pods_unplaced": columns["pods_unplaced"]}
    values |= {name: columns[name] for name in ("pods_pending", "active_gpus")}
    values["unallocated"] = 100 - values["gpu_milli_alloc"]
    values["cpu"] = 100 * columns["cpu_milli_alloc"] / np.maximum(columns["cpu_milli_capacity"], 1)
    arrived = columns["arrived_gpu_milli"]
    values["grar"] = np.divide(columns["gpu_milli_alloc"], arrived, out=np.ones_like(arrived), where=arrived > 0)
    x = columns["t_s"] if by_time else columns["arrived_gpu_milli"] * 100 / max(float(capacity.max()), 1.0)
    pods = float(result.summary["pods"][0] or 0)
    most = {"active_gpus": float(capacity.max()) / 1000, "pods_unplaced": pods, "pods_pending": pods}
    return Timeline(x, values, by_time, most)


def resampled(timeline: Timeline, name: str, edges: Floats) -> Floats:
    """The value in each step between ``edges``: its mean over time, or its state at the end of the step."""
    x, values = timeline.x, timeline.values[name]
    inside = (edges[1:] > x[0]) & (edges[:-1] < x[-1])
    if not timeline.over_time or x[-1] == x[0]:
        states = values[np.clip(np.searchsorted(x, edges[1:], side="right") - 1, 0, len(x) - 1)]
        return np.where(inside | (x[-1] == x[0]), states, np.nan)
    # The integral of a step function is linear between its steps, so its differences are exact means.
    total = np.concatenate(([0.0], np.cumsum(values[:-1] * np.diff(x))))
    low, high = np.clip(edges[:-1], x[0], x[-1]), np.clip(edges[1:], x[0], x[-1])
    amount, span = np.interp(high, x, total) - np.interp(low, x, total), high - low
    return np.divide(amount, span, out=np.full_like(span, np.nan), where=inside & (span > 0))


def edges_of(timelines: Sequence[Timeline], count: int) -> Floats:
    """Edges of the steps of an axis that all timelines share."""
    low, high = min(float(line.x[0]) for line in timelines), max(float(line.x[-1]) for line in timelines)
    return np.linspace(low, high if high > low else low + 1.0, count + 1)


def curves(
    named: Sequence[tuple[str, Sequence[Timeline]]], name: str, edges: Floats, scale: float,
    within: Bounds = EVERYWHERE,
) -> pl.DataFrame:  # fmt: skip
    """``run``, ``x`` (in units of ``scale``), ``y``, ``low`` and ``high`` of one quantity for each series."""
    frames = []
    for series, lines in named:
        values = np.stack([resampled(line, name, edges) for line in lines])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # steps that no run reaches are left out below
            mean = np.nanmean(values, 0)
        ends = (within[0], np.minimum(within[1], max(line.most.get(name, np.inf) for line in lines)))
        low, high = interval_of_mean(values, ends)
        rows = {"y": mean, "low": low, "high": high}
        frame = pl.DataFrame({"x": edges[1:] / scale, **rows}).filter(pl.col("y").is_finite())
        frames.append(_rounded(series, frame))
    return pl.concat(frames)


def _rounded(series: str, frame: pl.DataFrame) -> pl.DataFrame:
    """The points of one line, with five digits; ends of intervals that are unknown are null."""
    return frame.select(pl.lit(series).alias("run"), pl.all().round_sig_figs(5).fill_nan(None))


def stacked(name: str, line: Timeline, edges: Floats, scale: float, labels: dict[str, str]) -> pl.DataFrame:
    """``run``, ``x``, ``part`` and ``y`` of several quantities of one run, by column name and label."""
    x = pl.Series("x", edges[1:] / scale).round_sig_figs(5)
    frames = [
        pl.DataFrame({"x": x, "y": resampled(line, column, edges)})
        .filter(pl.col("y").is_finite())
        .select(pl.lit(name).alias("run"), "x", pl.lit(label).alias("part"), pl.col("y").round_sig_figs(4))
        for column, label in labels.items()
    ]
    return pl.concat(frames)


def spans(result: Result, column: str) -> Floats:
    """Sorted seconds of one column of the run's jobs: ``jct_s`` of finished, ``wait_s`` of started ones."""
    frame = result.recorded_rows("jobs")
    if column == "jct_s":
        frame = frame.filter(pl.col("state") == "finished")
    seconds = frame.select(pl.col(column).drop_nulls().cast(pl.Float64)).collect()[column].sort()
    return np.asarray(seconds.to_numpy(), np.float64)


def mean_distribution(by_run: Sequence[Floats], points: int) -> pl.DataFrame:
    """``x``, ``y``, ``low`` and ``high`` of the distribution of sorted values, the mean over runs of the shares (%)."""
    every = np.sort(np.concatenate(by_run))
    at = every[np.unique(np.linspace(0, len(every) - 1, min(points, len(every))).astype(np.int64))]
    done = np.stack([100 * np.searchsorted(values, at, side="right") / len(values) for values in by_run])
    low, high = interval_of_mean(done, (0.0, 100.0))
    return pl.DataFrame({"x": at, "y": done.mean(0), "low": low, "high": high})


def distribution(series: Sequence[RunSeries], column: str, scale: float) -> pl.DataFrame:
    """``run``, ``x`` and ``y``: per cent of a run's jobs that took at most ``x``, mean over the runs of a series.

    ``low`` and ``high`` are the 95 % interval of that mean over runs; both are null for a single run.
    """
    count = line_points(len(series))
    frames = []
    for one in series:
        by_run = [seconds for run in one.runs if len(seconds := spans(run, column))]
        if not by_run:
            continue
        frame = mean_distribution(by_run, count)
        frames.append(_rounded(one.name, frame.with_columns(pl.col("x").clip(1.0) / scale)))
    columns = {"run": pl.String} | dict.fromkeys(("x", "y", "low", "high"), pl.Float64)
    return pl.concat(frames) if frames else pl.DataFrame(schema=columns)
