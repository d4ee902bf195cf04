"""Comparing results: one table, and charts over the demand that has arrived.

Charts need the ``[report]`` extra (altair and vl-convert); the table does not.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from fastsim.errors import ResultError, ScenarioError, suggestion
from fastsim.foundation.displays import html_table
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.option_texts import elements
from fastsim.reports.charts.chart_files import charting, displayed, drawn_picture, written_file
from fastsim.reports.charts.series import HEIGHT, POINTS, WIDTH, distinct_names, run_name
from fastsim.reports.charts.series_looks import channels, marked

if TYPE_CHECKING:
    import altair as alt

    from fastsim.engine.result import Result
    from fastsim.reports.report import Runs

FIGURES = (
    "pods", "pods_finished", "pods_unplaced", "pods_pending", "at_capacity_gpu_alloc_pct", "gpu_alloc_pct",
    "mean_gpu_alloc_pct", "cpu_alloc_pct", "frag_pct", "frag_ratio_pct", "eopc_w", "mean_power_w", "energy_kwh",
    "co2_kg", "cost", "grar", "wait_mean_s", "jct_mean_s",
)  # fmt: skip
"""Summary columns that a comparison lists."""


@dataclass(frozen=True)
class ChartMetric:
    """A quantity that can be drawn: title, axis with unit, and expression over the columns of a timeline."""

    title: str
    axis: str
    value: Callable[[], pl.Expr]
    zero: bool = True


def _share(part: str) -> pl.Expr:
    return 100 * pl.col(part) / pl.col("gpu_milli_capacity")


METRICS = {
    "allocation": ChartMetric("GPU allocation", "GPU allocation (% of capacity)", lambda: _share("gpu_milli_alloc")),
    "unallocated": ChartMetric(
        "Unallocated GPUs", "unallocated GPU (% of capacity)", lambda: 100 - _share("gpu_milli_alloc")
    ),
    "fragmentation": ChartMetric("GPU fragmentation", "fragmented GPU (% of capacity)", lambda: _share("frag_milli")),
    "power": ChartMetric("Cluster power", "power (kW)", lambda: pl.col("power_w") / 1000, zero=False),
    "failed": ChartMetric("Failed pods", "pods that fitted nowhere", lambda: pl.col("pods_unplaced").cast(pl.Float64)),
    "grar": ChartMetric(
        "Allocated over arrived GPU",
        "GRAR",
        lambda: (
            pl.when(pl.col("arrived_gpu_milli") > 0)
            .then(pl.col("gpu_milli_alloc") / pl.col("arrived_gpu_milli"))
            .otherwise(1.0)
        ),
        zero=False,
    ),
    "cpu": ChartMetric(
        "CPU allocation",
        "CPU allocation (% of capacity)",
        lambda: 100 * pl.col("cpu_milli_alloc") / pl.col("cpu_milli_capacity"),
    ),
    "pending": ChartMetric("Waiting pods", "pods waiting", lambda: pl.col("pods_pending").cast(pl.Float64)),
    "active_gpus": ChartMetric("GPUs in use", "GPUs in use", lambda: pl.col("active_gpus").cast(pl.Float64)),
}
"""Quantities that :meth:`Comparison.plot` can draw."""

AXES = {"demand": "arrived GPU demand (% of capacity)", "time": "time (h)"}
REPORT = ("allocation", "fragmentation", "power", "failed")
"""Default charts of a comparison."""
SATURATION = 70.0
"""Arrived demand, in per cent of the GPUs, below which nearly every policy places every pod."""


@whole_process
def compare(results: Runs, names: Sequence[str] | None = None) -> Comparison:
    """Results side by side, named after their scenario or policy unless ``names`` are given.

    ``results`` are results, folders of saved runs, or both; a folder with several runs in it stands for all of them.
    """
    from fastsim.reports.report import named_runs

    runs, given = named_runs("compare", results, names)
    return Comparison(runs, tuple(distinct_names(given or [run_name(run) for run in runs])))


@whole_process
@dataclass(frozen=True, repr=False)
class Comparison:
    """Several results side by side."""

    results: tuple[Result, ...]
    names: tuple[str, ...]

    @property
    def table(self) -> pl.DataFrame:
        """One row for each result: name, the figures of its summary and pods per second."""
        rows = []
        for name, result in zip(self.names, self.results, strict=True):
            columns = [column for column in FIGURES if column in result.summary.columns]
            speed = pl.lit(result.timing.get("pods_per_s"), pl.Float64).alias("pods_per_s")
            rows.append(result.summary.select(pl.lit(name).alias("name"), *columns, speed))
        return pl.concat(rows, how="diagonal_relaxed")

    def __repr__(self) -> str:
        return f"Comparison({', '.join(self.names)})"

    def _repr_html_(self) -> str:
        """The figures that are known and not zero everywhere, a row for each run, for notebooks."""
        table = self.table
        known = [name for name in table.columns if name == "name" or any(table[name])]
        return html_table(f"{len(self.results)} runs", known, table.select(known).iter_rows())

    def curve(self, metric: str = "allocation", over: str = "demand") -> pl.DataFrame:
        """The points of a chart: ``name``, ``x`` (see :data:`AXES`) and ``y``, at most 500 for each result."""
        chosen = _metric(metric)
        if over not in AXES:
            raise ScenarioError("over", repr(over), f"one of {', '.join(AXES)}")
        pairs = zip(self.names, self.results, strict=True)
        return pl.concat([_thinned(name, result.table("timeline", name), chosen, over) for name, result in pairs])

    def plot(self, metric: str = "allocation", over: str = "demand", start: float = 0.0) -> alt.LayerChart:
        """One quantity over arrived demand (%), or over time (h), from ``start`` on if any curve reaches it."""
        altair = charting()
        chosen, points = _metric(metric), self.curve(metric, over)
        from_start = points.filter(pl.col("x") >= start)
        points = points if from_start.is_empty() else from_start
        y_scale = altair.Scale(zero=chosen.zero and start == 0)
        look = channels(self.names, "name", {"labelLimit": 320, "symbolStrokeWidth": 3})
        oldest = pl.CompatLevel.oldest()
        line = altair.Chart().mark_line(strokeWidth=1.8, clip=True)
        marks = altair.Chart(marked(points, "name").to_arrow(compat_level=oldest)).mark_point(
            filled=True, opacity=1, size=42, clip=True
        )
        drawn = altair.layer(
            line.encode(strokeDash=altair.StrokeDash(**look["strokeDash"])),
            marks.encode(shape=altair.Shape(**look["shape"])),
            data=points.to_arrow(compat_level=oldest),
        )
        encoded = drawn.encode(
            x=altair.X("x:Q", title=AXES[over], scale=altair.Scale(nice=False)),
            y=altair.Y("y:Q", title=chosen.axis, scale=y_scale),
            color=altair.Color(**look["color"]),
            tooltip=[altair.Tooltip("name:N", title="run"), altair.Tooltip("x:Q", title=AXES[over], format=".1f"),
                     altair.Tooltip("y:Q", title=chosen.axis, format=",.2f")],
        )  # fmt: skip
        chart: alt.LayerChart = displayed(encoded.properties(title=chosen.title, width=WIDTH, height=HEIGHT))
        return chart

    def charts(self, metrics: Sequence[str] = REPORT, over: str = "demand") -> alt.ConcatChart:
        """Several charts with one legend, two in a row; allocation and failed pods from 70 % demand on."""
        altair = charting()
        starts = dict.fromkeys(("allocation", "failed"), SATURATION) if over == "demand" else {}
        chosen = elements("metrics", metrics, "a list of quantities", alone=(str,))
        single = [self.plot(metric, over, starts.get(metric, 0.0)) for metric in chosen]
        charts: alt.ConcatChart = displayed(altair.concat(*single, columns=2))
        return charts

    def to_html(self, path: str | os.PathLike[str], metrics: Sequence[str] = ()) -> Path:
        """A report in one file that needs no network: table, interactive charts, citations; all charts, or these.

        Charts are named as in :func:`fastsim.reports.report.report`.
        """
        from fastsim.reports.report import report

        return report(self.results, self.names, charts=metrics).to_html(path)

    def to_markdown(self, path: str | os.PathLike[str]) -> Path:
        """Table, provenance and citations as Markdown, which needs no extra."""
        from fastsim.reports.report import report

        return report(self.results, self.names).to_markdown(path)

    def to_svg(self, path: str | os.PathLike[str], metrics: Sequence[str] = REPORT) -> Path:
        """The charts as an SVG picture."""
        return written_file(path, drawn_picture(self.charts(metrics).to_json(), ".svg"))

    def to_png(self, path: str | os.PathLike[str], metrics: Sequence[str] = REPORT, scale: float = 1.5) -> Path:
        """The charts as a PNG picture; ``scale`` is picture pixels for each chart pixel."""
        return written_file(path, drawn_picture(self.charts(metrics).to_json(), ".png", scale=scale))


def _metric(name: str) -> ChartMetric:
    if name not in METRICS:
        raise ScenarioError(f"metric {name!r}", "an unknown name", f"one of {', '.join(METRICS)}",
                            suggestion(name, METRICS))  # fmt: skip
    return METRICS[name]


def _thinned(name: str, timeline: pl.DataFrame, metric: ChartMetric, over: str) -> pl.DataFrame:
    if timeline.is_empty():
        raise ResultError(f"{name}: found no rows in its timeline, expected one at least")
    x = (
        pl.col("t_s") / 3600
        if over == "time"
        else 100 * pl.col("arrived_gpu_milli") / pl.col("gpu_milli_capacity").max()
    )
    points = timeline.select(pl.lit(name).alias("name"), x.cast(pl.Float64).alias("x"), metric.value().alias("y"))
    points = points.filter(pl.col("x").is_finite() & pl.col("y").is_finite())
    # The last state of each step of the axis: states are step functions, so a mean would blur them.
    low, high = pl.col("x").min(), pl.col("x").max()
    step = ((pl.col("x") - low) / (high - low) * (POINTS - 1)).fill_nan(0.0).floor()
    return points.group_by(step.alias("step"), maintain_order=True).last().drop("step")
