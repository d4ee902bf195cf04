"""Charts of readings of GPUs over time: four quantities of a workload, or of several runs side by side.

Up to `LINES` devices have a line each; of more, the mean is drawn over the band of nine tenths of the devices. Times
count from the first reading. Charts need the ``[report]`` extra.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa

from fastsim.errors import InputError, ScenarioError, suggestion
from fastsim.reports.charts.chart_files import charting
from fastsim.reports.charts.series_looks import channels
from fastsim.telemetry.readings_table import ordered

if TYPE_CHECKING:
    import altair as alt

QUANTITIES = {
    "util_pct": "GPU utilisation (%)",
    "temperature_c": "temperature (°C)",
    "copy_pct": "memory-copy utilisation (%)",
    "power_w": "power (W)",
    "memory_used_mib": "memory used (MiB)",
    "memory_free_mib": "memory free (MiB)",
    "memory_temperature_c": "memory temperature (°C)",
    "energy_j": "energy (J)",
}
"""Axes by quantity."""
FOUR = ("util_pct", "temperature_c", "copy_pct", "power_w")
"""The default quantities."""
LINES = 8
"""Most devices that have a line each."""
POINTS = 400
"""Most points of a line; a longer record is averaged over this number of steps."""
WIDTH, HEIGHT = 380, 170
"""Size of one chart in pixels."""
_DEVICE = ("node", "gpu_uuid", "gpu_index")


def workload_chart(
    table: pa.Table, metrics: Sequence[str] = FOUR, *, pod: str = "", title: str = ""
) -> alt.VConcatChart:
    """Quantities of the devices in a table, or of those of the pods whose names match `pod`, such as ``train-*``."""
    points = device_points(table, metrics, pod)
    axis = _time_axis(points)
    many = points["name"].n_unique() > LINES
    charts = [
        _mean_and_band(part, axis, metric) if many else _lines(part, axis, metric) for metric, part in _parts(points)
    ]
    caption = f"mean of {points['name'].n_unique():,} GPUs, and the range of 90 % of them" if many else ""
    return _grid(charts, 2, title or f"pods {pod}".removesuffix("pods "), caption)


def comparison_chart(
    tables: Mapping[str, pa.Table], metrics: Sequence[str] = FOUR, *, pod: str = "", apart: bool = False,
    title: str = "",
) -> alt.VConcatChart:  # fmt: skip
    """Quantities of several runs by name, each the mean over its devices; `apart` gives every run a row of its own."""
    if not tables:
        raise ScenarioError("telemetry chart", "no tables", "one at least")
    means = [mean_points(table, metrics, pod, name) for name, table in tables.items()]
    points = pl.concat(means)
    axis = _time_axis(points)
    if not apart:
        return _grid([_lines(part, axis, metric, list(tables)) for metric, part in _parts(points)], 2, title)
    ends = {metric: (part["x"].max(), part["y"].max()) for metric, part in _parts(points)}
    rows = [
        _lines(part, axis, metric, list(tables), ends[metric]).properties(title=name, height=HEIGHT * 2 // 3)
        for name in tables
        for metric, part in _parts(points.filter(pl.col("name") == name))
    ]
    return _grid(rows, points["metric"].n_unique(), title)


def device_points(table: pa.Table, metrics: Sequence[str] = FOUR, pod: str = "") -> pl.DataFrame:
    """Points of the charts: ``metric``, ``name`` of the device, ``x`` (seconds) and ``y``."""
    for metric in metrics:
        if metric not in QUANTITIES:
            expected = f"one of {', '.join(QUANTITIES)}"
            raise ScenarioError("telemetry chart: metric", repr(metric), expected, suggestion(metric, QUANTITIES))
    rows = pl.DataFrame(pl.from_arrow(ordered(table)))
    if pod:
        names = [name for name in rows["pod"].drop_nulls().unique() if fnmatchcase(name, pod)]
        rows = rows.filter(pl.col("pod").is_in(names))
    rows = rows.filter(pl.col("metric").is_in(list(metrics)))
    if rows.is_empty():
        of_pods = f" of pods {pod}" if pod else ""
        raise InputError("telemetry chart", f"no readings{of_pods}", f"some of {', '.join(metrics)}")
    several = rows["node"].n_unique() > 1
    device = pl.coalesce(pl.format("GPU {}", "gpu_index"), "gpu_uuid", pl.lit("GPU"))
    rows = rows.with_columns(
        x=pl.col("ts").dt.epoch("ms") / 1000,
        name=pl.format("{} {}", pl.col("node").fill_null(""), device) if several else device,
    ).with_columns(pl.col("x") - pl.col("x").min())
    span: Any = rows["x"].max()
    piece = (pl.col("x") * POINTS / max(span, 1e-9)).floor().clip(0, POINTS - 1)
    means = rows.group_by("metric", "name", *_DEVICE, piece.alias("piece"), maintain_order=True).agg(
        pl.col("x").min(), y=pl.col("value").mean()
    )
    order = pl.col("metric").replace_strict({metric: i for i, metric in enumerate(metrics)}, return_dtype=pl.Int32)
    return means.sort(order, "name", *_DEVICE, "x").select("metric", "name", "piece", "x", "y")


def mean_points(table: pa.Table, metrics: Sequence[str] = FOUR, pod: str = "", name: str = "mean") -> pl.DataFrame:
    """Points of the mean over all devices; columns as in :func:`device_points`."""
    points = device_points(table, metrics, pod)
    mean = points.group_by("metric", "piece", maintain_order=True).agg(pl.col("x").min(), pl.col("y").mean())
    order = pl.col("metric").replace_strict({metric: i for i, metric in enumerate(metrics)}, return_dtype=pl.Int32)
    return mean.sort(order, "x").select("metric", pl.lit(name).alias("name"), "piece", "x", "y")


def _parts(points: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    return [(str(metric), part) for (metric,), part in points.partition_by("metric", as_dict=True).items()]


def _time_axis(points: pl.DataFrame) -> tuple[float, str]:
    """Seconds per unit of the axis, and its title."""
    span: Any = points["x"].max()
    return (1.0, "time (s)") if span < 600 else (60.0, "time (min)") if span < 36_000 else (3600.0, "time (h)")


def _lines(
    points: pl.DataFrame, axis: tuple[float, str], metric: str, order: list[str] | None = None, ends: Any = None
) -> alt.Chart:  # fmt: skip
    altair = charting()
    names = order or points["name"].unique(maintain_order=True).to_list()
    no_legend = len(names) == 1 or ends is not None
    shown = None if no_legend else {"labelLimit": 260, "symbolType": "stroke", "symbolStrokeWidth": 3}
    colour = channels(names, "name", shown)["color"]
    x_scale, scale = altair.Scale(nice=False), altair.Scale(zero=metric != "temperature_c")
    if ends is not None and metric != "temperature_c":
        scale = altair.Scale(domain=[0, ends[1] or 1])
    if ends is not None:
        x_scale = altair.Scale(domain=[0, ends[0] / axis[0]], nice=False)
    lines: alt.Chart = (
        altair.Chart(_scaled(points, axis))
        .mark_line(strokeWidth=1.5, interpolate="step-after", clip=True)
        .encode(
            x=altair.X("x:Q", title=axis[1], axis=altair.Axis(grid=False), scale=x_scale),
            y=altair.Y("y:Q", title=QUANTITIES[metric], scale=scale),
            color=altair.Color(**colour),
            tooltip=["name:N", altair.Tooltip("x:Q", title=axis[1], format=",.1f"),
                     altair.Tooltip("y:Q", title=QUANTITIES[metric], format=",.1f")],
        ).properties(width=WIDTH, height=HEIGHT)
    )  # fmt: skip
    return lines


def _mean_and_band(points: pl.DataFrame, axis: tuple[float, str], metric: str) -> alt.LayerChart:
    """The mean over devices in front of the band from the 5th to the 95th percentile."""
    altair = charting()
    summary = points.group_by("piece", maintain_order=True).agg(
        pl.col("x").min(), y=pl.col("y").mean(), low=pl.col("y").quantile(0.05), high=pl.col("y").quantile(0.95)
    ).sort("x")  # fmt: skip
    base = altair.Chart(_scaled(summary, axis)).encode(
        x=altair.X("x:Q", title=axis[1], axis=altair.Axis(grid=False), scale=altair.Scale(nice=False))
    )
    scale = altair.Scale(zero=metric != "temperature_c")
    band = base.mark_area(opacity=0.25).encode(y=altair.Y("low:Q", title=QUANTITIES[metric], scale=scale), y2="high:Q")
    chart: alt.LayerChart = altair.layer(band, base.mark_line(strokeWidth=1.5).encode(y="y:Q")).properties(
        width=WIDTH, height=HEIGHT
    )
    return chart


def _scaled(points: pl.DataFrame, axis: tuple[float, str]) -> Any:
    return points.with_columns(pl.col("x") / axis[0]).to_arrow(compat_level=pl.CompatLevel.oldest())


def _grid(charts: Sequence[Any], columns: int, title: str, under: str = "") -> alt.VConcatChart:
    altair = charting()
    rows = [altair.hconcat(*charts[i : i + columns]) for i in range(0, len(charts), columns)]
    grid: alt.VConcatChart = altair.vconcat(*rows)
    if under:
        return grid.properties(title=altair.TitleParams(title or under, subtitle=under if title else ""))
    return grid.properties(title=title) if title else grid
