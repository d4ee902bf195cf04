"""Charts of a trace: offered load over time by GPU model, and distributions of durations and requests.

Charts need the ``[report]`` extra.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from fastsim.reports.charts.chart_files import charting
from fastsim.reports.charts.series import POINTS
from fastsim.workload import schema as s
from fastsim.workload.load_statistics import load_curve

if TYPE_CHECKING:
    import altair as alt

    from fastsim.cluster.cluster import Cluster

MOST_MODELS = 8
"""Most labels of GPU models with a line of their own; the rest is one line."""
WIDTH, HEIGHT = 460, 240
DAY_S = 86_400.0
SPREADS = {
    s.DURATION_S: ("Durations", "duration (s)"), "between_s": ("Times between arrivals", "time (s)"),
    s.CPU_MILLI: ("CPU requests", "CPUs (thousandths)"), s.MEMORY_MIB: ("Memory requests", "memory (MiB)"),
}  # fmt: skip


def trace_chart(frame: pl.DataFrame, cluster: Cluster | None = None, name: str = "trace") -> alt.ConcatChart:
    """All charts of a trace, two a line."""
    altair = charting()
    charts = [chart for chart in (_load(altair, frame, cluster), _gpus(altair, frame)) if chart is not None]
    for column, (title, axis) in SPREADS.items():
        values = spread(frame, column)
        if values is not None:
            charts.append(_cdf(altair, values, title, axis))
    grid: alt.ConcatChart = altair.concat(*charts, columns=2).resolve_scale(color="independent")
    return grid.properties(title=name)


def load_points(frame: pl.DataFrame, cluster: Cluster | None) -> tuple[pl.DataFrame, str]:
    """Points of the load curve and the title of its axis; the labels with the least load become one."""
    curve = load_curve(frame, cluster)
    if "load_pct" in curve.columns and not curve["load_pct"].is_infinite().any():
        value, title = "load_pct", "GPUs offered (% of capacity)"
    else:
        timed = s.DURATION_S in frame.columns or s.WORKLOAD not in frame.columns
        value, title = "gpus", "GPUs offered" if timed else "GPUs that arrive in an hour"
    labels = curve["model"].unique(maintain_order=True).to_list()
    if len(labels) > MOST_MODELS:
        value = "gpus" if value == "load_pct" else value
        title = "GPUs offered" if title.endswith("capacity)") else title
        keep = pl.when(pl.col("model").is_in(labels[: MOST_MODELS - 1])).then("model").otherwise(pl.lit("others"))
        curve = curve.with_columns(model=keep).group_by("time_s", "model", maintain_order=True).agg(pl.col(value).sum())
    points = curve.select(x=pl.col("time_s") / (DAY_S if _long(frame) else 3600.0), y=value, model="model")
    return points, title


def spread(frame: pl.DataFrame, column: str) -> pl.DataFrame | None:
    """Points of a distribution function on a logarithmic axis; None if there is nothing to draw."""
    if column == "between_s":
        values = np.diff(frame[s.SUBMIT_S].to_numpy())
    elif column in frame.columns:
        values = frame[column].drop_nulls().to_numpy().astype(np.float64)
    else:
        return None
    values = np.sort(values[values > 0])
    if len(values) < 2 or values[0] == values[-1]:
        return None
    at = np.unique(np.linspace(0, len(values) - 1, POINTS).astype(np.int64))
    return pl.DataFrame({"x": values[at], "y": 100 * (at + 1) / len(values)})


def _long(frame: pl.DataFrame) -> bool:
    return float(frame[s.SUBMIT_S][-1] - frame[s.SUBMIT_S][0]) > 3 * DAY_S


def _load(altair: Any, frame: pl.DataFrame, cluster: Cluster | None) -> Any:
    points, title = load_points(frame, cluster)
    if not len(points):
        return None
    order = points["model"].unique(maintain_order=True).to_list()
    legend = altair.Legend(orient="bottom", columns=4, labelLimit=160, title=None)
    encoded = altair.Chart(_arrow(points)).encode(
        x=altair.X("x:Q", title=f"time ({'days' if _long(frame) else 'h'})", scale=altair.Scale(nice=False)),
        y=altair.Y("y:Q", title=title),
        color=altair.Color("model:N", sort=order, legend=legend),
        tooltip=["model:N", altair.Tooltip("x:Q", format=",.1f"), altair.Tooltip("y:Q", format=",.1f")],
    )
    line = encoded.mark_line(strokeWidth=1.6, interpolate="step-after")
    return line.properties(title="Offered load by accepted GPU models", width=WIDTH, height=HEIGHT)


def _gpus(altair: Any, frame: pl.DataFrame) -> Any:
    """Part of the rows, and of all requested GPUs, by the number of GPUs of a row."""
    label = (
        pl.when(pl.col(s.NUM_GPU) == 0).then(pl.lit("none"))
        .when((pl.col(s.NUM_GPU) == 1) & (pl.col(s.GPU_MILLI) < 1000)).then(pl.lit("a part"))
        .otherwise(pl.col(s.NUM_GPU).cast(pl.String))
    )  # fmt: skip
    requested = pl.col(s.NUM_GPU).cast(pl.Float64) * pl.col(s.GPU_MILLI)
    table = frame.group_by(label.alias("gpus"), maintain_order=True).agg(
        pl.len().alias("rows"), requested.sum().alias("requested")
    )
    table = table.select(
        "gpus", pl.format("{}", "gpus").replace({"none": "-2", "a part": "-1"}).cast(pl.Int64).alias("at"),
        (100 * pl.col("rows") / pl.col("rows").sum()).alias("of rows"),
        (100 * pl.col("requested") / max(float(table["requested"].sum()), 1e-9)).alias("of GPUs requested"),
    )  # fmt: skip
    table = table.sort("at").unpivot(index=["gpus", "at"], variable_name="part", value_name="pct")
    encoded = altair.Chart(_arrow(table)).encode(
        x=altair.X("gpus:N", sort=altair.SortField("at"), title="GPUs of a row", axis=altair.Axis(labelAngle=0)),
        xOffset="part:N",
        y=altair.Y("pct:Q", title="%"),
        color=altair.Color("part:N", legend=altair.Legend(orient="bottom", title=None)),
        tooltip=["gpus:N", "part:N", altair.Tooltip("pct:Q", format=".1f")],
    )
    return encoded.mark_bar().properties(title="GPU requests", width=WIDTH, height=HEIGHT)


def _cdf(altair: Any, points: pl.DataFrame, title: str, axis: str) -> Any:
    encoded = altair.Chart(_arrow(points)).encode(
        x=altair.X("x:Q", title=axis, scale=altair.Scale(type="log", nice=False),
                   axis=altair.Axis(labelOverlap=True, labelSeparation=8)),
        y=altair.Y("y:Q", title="rows up to here (%)", scale=altair.Scale(domain=[0, 100])),
        tooltip=[altair.Tooltip("x:Q", format=",.0f"), altair.Tooltip("y:Q", format=".1f")],
    )  # fmt: skip
    line = encoded.mark_line(strokeWidth=1.6, interpolate="step-after")
    return line.properties(title=title, width=WIDTH, height=HEIGHT)


def _arrow(frame: pl.DataFrame) -> Any:
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())
