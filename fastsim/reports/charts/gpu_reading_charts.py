"""Charts of a report about readings of GPUs: runs side by side as means over their GPUs, and the GPUs of one run.

Readings are averaged over steps of time; seconds count from a run's first reading. For more than `DEVICES` GPUs, lines
are the mean and the 5th and 95th percentiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fastsim.engine.audit.metric_definitions import possible
from fastsim.engine.result import Result
from fastsim.reports.charts.line_points import line_points, time_unit
from fastsim.reports.charts.seed_intervals import interval_of_mean
from fastsim.reports.charts.series import RunSeries

DEVICES = 8
"""Most GPUs of a run that have a line each."""
STEPS = 150
"""Steps of time of a line that shows one GPU."""
MEAN, LOW, HIGH = "mean", "a twentieth is below", "a twentieth is above"
_DEVICE = ("node", "gpu_uuid", "gpu_index")


class Reading(NamedTuple):
    """The charts of one quantity: their key, metric of the readings, title, axis, and whether the axis begins at 0."""

    key: str
    metric: str
    title: str
    axis: str
    zero: bool = True

    @property
    def detail(self) -> str:
        """Key of the chart of single GPUs."""
        return f"{self.key}_by_gpu"


READINGS = (
    Reading("util", "util_pct", "GPU utilisation", "utilisation (%)"),
    Reading("temperature", "temperature_c", "GPU temperature", "temperature (°C)", False),
    Reading("copies", "copy_pct", "Memory copies", "memory-copy utilisation (%)"),
    Reading("gpu_power", "power_w", "GPU power", "power (W)"),
    Reading("gpu_memory", "memory_used_mib", "GPU memory in use", "memory used (MiB)"),
)
KEYS = tuple(reading.key for reading in READINGS) + tuple(reading.detail for reading in READINGS)
"""Names of the charts."""
_METRICS = [reading.metric for reading in READINGS]
_PARTS = 1 << 16
"""Parts of a unit in which readings are added: whole numbers have the same sum in any order, on any threads."""


class Sampled(NamedTuple):
    """A series whose runs all have readings, with the first and last millisecond of each."""

    series: RunSeries
    spans_ms: list[tuple[int, int]]


def sampled(series: Sequence[RunSeries]) -> list[Sampled]:
    """The series of which every run has readings of more than one moment."""
    complete = []
    for one in series:
        spans = [span for run in one.runs if (span := _span_ms(run)) is not None]
        if len(spans) == len(one.runs):
            complete.append(Sampled(one, spans))
    return complete


def _span_ms(run: Result) -> tuple[int, int] | None:
    if "telemetry" not in run.frames:
        return None
    ms = pl.col("ts").dt.epoch("ms")
    low, high = run.scan("telemetry").select(ms.min().alias("low"), ms.max().alias("high")).collect().row(0)
    return None if low is None or low == high else (low, high)


def longest_s(some: Sequence[Sampled]) -> float:
    """Length of the longest record, seconds."""
    return max(high - low for one in some for low, high in one.spans_ms) / 1000


def means(some: Sequence[Sampled]) -> pl.DataFrame:
    """``metric``, ``run``, ``x`` (seconds), ``y``, ``low``, ``high``: means over GPUs and the runs of a series."""
    step_s = _step_s(some, line_points(len(some)))
    frames = []
    for one in some:
        runs = [_binned(run, span, step_s, ()) for run, span in zip(one.series.runs, one.spans_ms, strict=True)]
        rows = _averaged(pl.concat(runs).sort("metric", "piece", maintain_order=True), len(runs))
        frames.append(rows.select("metric", pl.lit(one.series.name).alias("run"), pl.col("piece") * step_s,
                                  "y", "low", "high").rename({"piece": "x"}))  # fmt: skip
    return pl.concat(frames)


def _averaged(rows: pl.DataFrame, runs: int) -> pl.DataFrame:
    """The mean of each step with the 95 % interval of that mean over runs; a run without the step does not count."""
    keys = rows.select("metric", "piece").unique(maintain_order=True)
    place = rows.join(keys.with_row_index("place"), on=["metric", "piece"], how="left", maintain_order="left")["place"]
    number = rows.select(pl.int_range(pl.len()).over("metric", "piece")).to_series()
    values = np.full((runs, len(keys)), np.nan)
    values[number.to_numpy(), place.to_numpy()] = rows["y"].to_numpy()
    ends = {reading.metric: possible("charts", reading.key) for reading in READINGS}
    within = np.array([ends[metric] for metric in keys["metric"]]).T
    low, high = interval_of_mean(values, (within[0], within[1]))
    return keys.with_columns(y=np.nanmean(values, 0), low=low, high=high).fill_nan(None)


def devices(some: Sequence[tuple[str, Sampled]]) -> pl.DataFrame:
    """``metric``, ``run``, ``x`` (seconds), ``part`` and ``y``: the GPUs of the first run of each series."""
    step_s = _step_s([one for _, one in some], STEPS)
    frames = []
    for name, one in some:
        rows = _binned(one.series.runs[0], one.spans_ms[0], step_s, _DEVICE)
        parts = _crowd(rows) if rows.select(_DEVICE).n_unique() > DEVICES else _named(rows)
        parts = parts.sort("metric", "part", "piece").with_columns(x=pl.col("piece") * step_s)
        frames.append(parts.select("metric", pl.lit(name).alias("run"), "x", "part", "y"))
    return pl.concat(frames)


def _step_s(some: Sequence[Sampled], points: int) -> float:
    return max(longest_s(some), 1e-3) / points


def _binned(run: Result, span_ms: tuple[int, int], step_s: float, keys: Sequence[str]) -> pl.DataFrame:
    """Means over steps of time of each quantity, over all GPUs or by ``keys``; readings are streamed from the file."""
    since_s = (pl.col("ts").dt.epoch("ms") - span_ms[0]) / 1000
    table = run.scan("telemetry").filter(pl.col("metric").is_in(_METRICS))
    grouped = table.group_by("metric", *keys, (since_s / step_s).floor().alias("piece"), maintain_order=True)
    parts = (pl.col("value") * _PARTS).round().cast(pl.Int64)
    means = grouped.agg((parts.sum() / (_PARTS * parts.count())).alias("y"))
    return means.collect(engine="streaming").sort("metric", *keys, "piece")


def _crowd(rows: pl.DataFrame) -> pl.DataFrame:
    named = {MEAN: pl.mean("y"), LOW: pl.col("y").quantile(0.05), HIGH: pl.col("y").quantile(0.95)}
    summary = rows.group_by("metric", "piece", maintain_order=True).agg(**named)
    return summary.unpivot(list(named), index=["metric", "piece"], variable_name="part", value_name="y")


def _named(rows: pl.DataFrame) -> pl.DataFrame:
    device = pl.coalesce(pl.format("GPU {}", "gpu_index"), "gpu_uuid", pl.lit("GPU"))
    several = rows["node"].n_unique() > 1
    name = pl.format("{} {}", pl.col("node").fill_null("?"), device) if several else device
    return rows.with_columns(part=name)


class ReadingChart(NamedTuple):
    """One chart: its reading, axis of time, data, and whether it shows one run."""

    reading: Reading
    x_title: str
    data: pl.DataFrame
    single: bool


def charts(series: Sequence[RunSeries], labels: Sequence[str], keys: Sequence[str] = ()) -> Iterator[ReadingChart]:
    """Both charts of each quantity with readings; ``labels`` name the runs that are shown one by one."""
    some = sampled(series)
    if not some or (keys and not set(keys) & set(KEYS)):
        return
    unit, scale = time_unit(longest_s(some))
    named = dict(zip((one.name for one in series), labels, strict=False))
    detailed = [(named[one.series.name], one) for one in some if one.series.name in named]
    tables: list[tuple[Any, bool]] = [(means(some), False)] + ([(devices(detailed), True)] if detailed else [])
    for frame, single in tables:
        frame = frame.with_columns((pl.col("x") / scale).round_sig_figs(5))
        for reading in READINGS:
            data = frame.filter(metric=reading.metric).drop("metric")
            data = data.with_columns(pl.col(set(data.columns) - {"run", "x", "part"}).round_sig_figs(4))
            if len(data):
                yield ReadingChart(reading, f"time ({unit})", data, single)
