"""Comparing results: one table, and charts over the demand that has arrived.

Charts need the ``[report]`` extra (altair and vl-convert); the table does not.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from fastsim.engine.audit.metric_definitions import possible
from fastsim.errors import ResultError, ScenarioError, suggestion
from fastsim.foundation.displays import html_table
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.option_texts import elements
from fastsim.reports.charts.chart_files import charting, displayed, drawn_picture, written_file
from fastsim.reports.charts.legends import legend
from fastsim.reports.charts.line_points import Timeline, curves, edges_of, timeline_of
from fastsim.reports.charts.series import HEIGHT, POINTS, WIDTH, RunSeries, distinct_names, run_name, series_of
from fastsim.reports.charts.series_looks import channels, marked
from fastsim.reports.charts.vega import SHADE
from fastsim.reports.report_charts import KEYS, LINES, ON_DEMAND, LineChart

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


METRICS = {line.key: line for line in (*LINES, *ON_DEMAND)}
"""Quantities over demand or time, of which :meth:`Comparison.plot` draws every state."""

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
    return Comparison(runs, tuple(distinct_names(given or [run_name(run) for run in runs])), given)


@whole_process
@dataclass(frozen=True, repr=False)
class Comparison:
    """Several results side by side; ``given`` are the names that the user gave."""

    results: tuple[Result, ...]
    names: tuple[str, ...]
    given: tuple[str, ...] | None = None

    @property
    def series(self) -> list[RunSeries]:
        """Runs that differ in their seeds only, or of one name that was given, named after the first of them."""
        if self.given is not None:
            return series_of(self.results, self.given)
        first = dict(zip(map(id, reversed(self.results)), reversed(self.names), strict=True))
        return [one._replace(name=first[id(one.runs[0])]) for one in series_of(self.results)]

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
        """The points of a chart: ``name``, ``x`` (see :data:`AXES`) and ``y``, at most 500 for each result.

        Runs that differ in their seeds only are one curve, their mean, with ``low`` and ``high``, its 95 % interval.
        """
        chosen = _metric(metric)
        if over not in AXES:
            raise ScenarioError("over", repr(over), f"one of {', '.join(AXES)}")
        read = [(one.name, [_timeline(one.name, run, over) for run in one.runs]) for one in self.series]
        edges = edges_of([line for _, lines in read for line in lines], POINTS)
        scale, within = 3600.0 if over == "time" else 1.0, possible("charts", metric)
        points = [
            _thinned(name, lines[0], chosen.column, scale) if len(lines) == 1
            else curves([(name, lines)], chosen.column, edges, scale, within).rename({"run": "name"})
            for name, lines in read
        ]  # fmt: skip
        return pl.concat(points, how="diagonal")

    def plot(self, chart: str = "allocation", over: str = "", start: float = 0.0) -> alt.LayerChart:
        """Any chart of a report by name, such as ``"jct"``; runs that differ in their seeds only are one curve.

        Quantities of `METRICS` are over arrived demand in per cent (``over="demand"``) or over hours (``"time"``), from
        ``start`` on if any curve reaches it.
        """
        from fastsim.reports.series_plots import of_series, whole_name

        charting()
        key = whole_name(chart, KEYS)
        if key in METRICS:
            return self._states(key, over or "demand", start)
        if over or start:
            raise ScenarioError("plot", f"the options over and start for {key}", f"one of {', '.join(METRICS)}")
        return of_series(self.series, key)

    def _states(self, metric: str, over: str, start: float, room: float = 1.2 * WIDTH) -> alt.LayerChart:
        """The states of one quantity, with the intervals of means over seeds; ``room``: how broad a legend may be."""
        altair = charting()
        chosen, points = _metric(metric), self.curve(metric, over)
        from_start = points.filter(pl.col("x") >= start)
        points = points if from_start.is_empty() else from_start
        names, oldest = [one.name for one in self.series], pl.CompatLevel.oldest()
        look = channels(names, "name", {"symbolStrokeWidth": 3, "symbolOpacity": 1} | legend(names, room))
        line = altair.Chart().mark_line(strokeWidth=1.8, clip=True)
        marks = altair.Chart(marked(points, "name").to_arrow(compat_level=oldest)).mark_point(
            filled=True, opacity=1, size=42, clip=True
        )
        layers = [line.encode(strokeDash=altair.StrokeDash(**look["strokeDash"])),
                  marks.encode(shape=altair.Shape(**look["shape"]))]  # fmt: skip
        y_scale = altair.Scale(zero=chosen.zero and start == 0)
        if "low" in points.columns:
            band = altair.Chart().mark_area(opacity=min(SHADE, 1 / len(names)), clip=True)
            layers.insert(0, band.encode(y=altair.Y("low:Q", title=chosen.axis, scale=y_scale), y2="high:Q"))
        encoded = altair.layer(*layers, data=points.to_arrow(compat_level=oldest)).encode(
            x=altair.X("x:Q", title=AXES[over], scale=altair.Scale(nice=False)),
            y=altair.Y("y:Q", title=chosen.axis, scale=y_scale),
            color=altair.Color(**look["color"]),
            tooltip=[altair.Tooltip("name:N", title="run"), altair.Tooltip("x:Q", title=AXES[over], format=".1f"),
                     altair.Tooltip("y:Q", title=chosen.axis, format=",.2f")],
        )  # fmt: skip
        drawn: alt.LayerChart = displayed(encoded.properties(title=chosen.title, width=WIDTH, height=HEIGHT))
        return drawn

    def charts(self, metrics: Sequence[str] = REPORT, over: str = "demand") -> alt.ConcatChart:
        """Several charts with one legend, two in a row; allocation and failed pods from 70 % demand on."""
        altair = charting()
        starts = dict.fromkeys(("allocation", "failed"), SATURATION) if over == "demand" else {}
        chosen = elements("metrics", metrics, "a list of quantities", alone=(str,))
        room = 1.2 * WIDTH * min(max(len(chosen), 1), 2)
        single = [self._states(metric, over, starts.get(metric, 0.0), room) for metric in chosen]
        charts: alt.ConcatChart = displayed(altair.concat(*single, columns=2))
        return charts

    def to_html(self, path: str | os.PathLike[str], metrics: Sequence[str] = ()) -> Path:
        """A report in one file that needs no network: table, interactive charts, citations; all charts, or these.

        Charts are named as in :func:`fastsim.reports.report.report`.
        """
        from fastsim.reports.report import report

        return report(self.results, self.given, charts=metrics).to_html(path)

    def to_markdown(self, path: str | os.PathLike[str]) -> Path:
        """Table, provenance and citations as Markdown, which needs no extra."""
        from fastsim.reports.report import report

        return report(self.results, self.given).to_markdown(path)

    def to_svg(self, path: str | os.PathLike[str], metrics: Sequence[str] = REPORT) -> Path:
        """The charts as an SVG picture."""
        return written_file(path, drawn_picture(self.charts(metrics).to_json(), ".svg"))

    def to_png(self, path: str | os.PathLike[str], metrics: Sequence[str] = REPORT, scale: float = 1.5) -> Path:
        """The charts as a PNG picture; ``scale`` is picture pixels for each chart pixel."""
        return written_file(path, drawn_picture(self.charts(metrics).to_json(), ".png", scale=scale))


def _metric(name: str) -> LineChart:
    if name not in METRICS:
        raise ScenarioError(f"metric {name!r}", "an unknown name", f"one of {', '.join(METRICS)}",
                            suggestion(name, METRICS))  # fmt: skip
    return METRICS[name]


def _timeline(name: str, result: Result, over: str) -> Timeline:
    result.table("timeline", name)  # raises if the run recorded none
    line = timeline_of(result, over == "time")
    if line is None:
        raise ResultError(f"{name}: found no rows in its timeline, expected one at least")
    return line


def _thinned(name: str, line: Timeline, column: str, scale: float) -> pl.DataFrame:
    points = pl.DataFrame({"x": line.x / scale, "y": line.values[column]})
    points = points.filter(pl.col("x").is_finite() & pl.col("y").is_finite())
    # The last state of each step of the axis: states are step functions, so a mean would blur them.
    low, high = pl.col("x").min(), pl.col("x").max()
    step = ((pl.col("x") - low) / (high - low) * (POINTS - 1)).fill_nan(0.0).floor()
    thinned = points.group_by(step.alias("step"), maintain_order=True).last().drop("step")
    return thinned.select(pl.lit(name).alias("name"), "x", "y")
