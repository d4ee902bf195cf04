"""The charts of a report: those for which the runs recorded data, with few points each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import polars as pl

from fastsim.engine.audit.metric_definitions import possible
from fastsim.engine.result import Result
from fastsim.engine.tables import FRAG_COLUMNS
from fastsim.reports.charts import gpu_reading_charts, job_charts
from fastsim.reports.charts import vega as specs
from fastsim.reports.charts.gpu_occupancy import OTHERS, Window, bars, heat, held_s, leading, shares, states, stays
from fastsim.reports.charts.line_points import (
    Timeline,
    curves,
    distribution,
    edges_of,
    line_points,
    over_time,
    stacked,
    time_unit,
    timeline_of,
)
from fastsim.reports.charts.series import RunSeries, seed_text

DETAILED = 12
"""Most series of which the first run has charts of its own."""
DEMAND = "arrived GPU demand (% of capacity)"
CLASSES = {
    "q2_lack_gpu": "too little GPU left", "q1_lack_both": "too little GPU and CPU", "q4_lack_cpu": "too little CPU",
    "xr_lack_cpu": "no GPU asked, too little CPU", "xl_satisfied": "no GPU asked", "no_access": "other GPU model asked",
    "q3_satisfied": "of use",
}  # fmt: skip
"""Labels of the classes of free GPUs for a typical pod, by column of the timeline."""
SATURATION, LATE = 70.0, ("allocation", "failed")
"""Arrived demand (% of capacity) from which on these charts are drawn, if runs get well beyond it."""
SHADED = "shaded: 95 % interval of the mean over seeds, where half of them last so long"
SHADES = {"of use": "#7b879455"}
assert set(CLASSES) == set(FRAG_COLUMNS)


class ReportChart(NamedTuple):
    """One chart: name, title, note, Vega-Lite without data, data, and whether it shows one run."""

    key: str
    title: str
    note: str
    spec: dict[str, Any]
    data: pl.DataFrame
    single: bool = False
    choice: str = ""
    """What a page offers it as, beside others that would stand in its place; "" for a chart that stands alone."""


class LineChart(NamedTuple):
    """A chart of a timeline: key, title, value, axis, and whether its axis begins at 0."""

    key: str
    title: str
    column: str
    axis: str
    zero: bool


LINES = (
    LineChart("allocation", "GPU allocation", "gpu_milli_alloc", "allocated (% of capacity)", True),
    LineChart("fragmentation", "GPU fragmentation", "frag_milli", "fragmented (% of capacity)", True),
    LineChart("power", "Cluster power", "power_kw", "power (kW)", False),
    LineChart("failed", "Pods that fitted nowhere", "pods_unplaced", "pods", True),
    LineChart("pending", "Waiting line", "pods_pending", "waiting", True),
)
"""Charts of timelines."""
ON_DEMAND = (
    LineChart("unallocated", "Unallocated GPUs", "unallocated", "unallocated (% of capacity)", True),
    LineChart("grar", "Allocated over arrived GPU", "grar", "GRAR", False),
    LineChart("cpu", "CPU allocation", "cpu", "allocated (% of capacity)", True),
    LineChart("active_gpus", "GPUs in use", "active_gpus", "GPUs in use", True),
)
"""Charts of timelines that are drawn only if selected."""
SPANS = (
    ("jct", "Completion times", "jct_s", "completion time", "from submission to the end, of what was done"),
    ("wait", "Waits", "wait_s", "wait", "from submission to the first start, at least 1 s"),
)
"""Charts of distributions: key, title, column of the jobs, axis, note."""
NODES = (
    ("nodes", "y", "GPUs in use", "GPUs of a node in use", "GPUs of a node with a pod on them"),
    ("nodes_fragmentation", "frag", "fragmentation", "GPUs of a node fragmented",
     "free GPUs of a node that a typical pod cannot use"),
    ("nodes_power", "power", "power", "power of a node (W)", "power of a node"),
)  # fmt: skip
"""Charts of nodes over time: key, column, name in the page, axis, note."""
KEYS = (
    *(line[0] for line in (*LINES, *ON_DEMAND)),
    *(span[0] for span in SPANS),
    "classes",
    "shares",
    *(key for key, *_ in NODES),
    *(key.replace("nodes", "nodes_at") for key, *_ in NODES),
    "window",
    *gpu_reading_charts.KEYS,
    *job_charts.CHARTS,
)
"""Names of all charts: a report, a result, a comparison and the verb plot have each of them."""


def figures(
    series: Sequence[RunSeries], window: Window | None = None, keys: Sequence[str] = (), by_time: bool | None = None
) -> list[ReportChart]:
    """The charts of these series, or the ``keys`` of them; a window bounds the bars of single GPUs.

    Lines are over time (``by_time``) or over arrived demand (default: over time if pods leave).
    """
    runs = [run for one in series for run in one.runs]
    by_time = over_time(runs) if by_time is None else by_time
    chosen = [line for line in (*LINES, *ON_DEMAND) if line.key in keys] if keys else LINES
    charts: list[ReportChart] = []
    if chosen or not keys or "classes" in keys:
        read = [(one, [line for run in one.runs if (line := timeline_of(run, by_time)) is not None]) for one in series]
        with_lines = [(one, lines) for one, lines in read if lines]
        charts += _lines(with_lines, by_time, chosen, [one.name for one in series]) if with_lines else ()
        charts += _classes(with_lines[:DETAILED], by_time)
    if not keys or any(span[0] in keys for span in SPANS):
        charts += _distributions(series)
    if not keys or any(key.startswith("nodes") or key in ("shares", "window") for key in keys):
        charts += _details(series[:DETAILED], window, keys)
    charts += _readings(series, keys)
    charts += [load_figure(series, key) for key in keys if key in job_charts.CHARTS]
    charts.sort(key=lambda figure: KEYS.index(figure.key))
    return [figure for figure in charts if not keys or figure.key in keys]


def load_figure(
    series: Sequence[RunSeries], key: str, loads: Sequence[float] | None = None, gpus: int | None = None
) -> ReportChart:
    """A chart of `job_charts`, which are drawn only if selected: runs may have to tell their load or their GPUs."""
    runs = [run for one in series for run in one.runs]
    names = [one.name for one in series for _ in one.runs] if any(one.named for one in series) else None
    return job_figure(runs, key, names=names, loads=loads, gpus=gpus)


def job_figure(
    results: Sequence[Result], key: str, *, names: Sequence[str] | None = None,
    loads: Sequence[float] | None = None, gpus: int | None = None,
) -> ReportChart:  # fmt: skip
    """The chart of :func:`fastsim.reports.charts.job_charts.job_points`."""
    data = job_charts.job_points(results, key, names=names, loads=loads, gpus=gpus)
    several, cdf = data["low"].count() > 0, key == "jct_cdf"
    chart, curves_of = job_charts.CHARTS[key], data["run"].unique(maintain_order=True).to_list()
    spec = specs.lines(curves_of, chart.x, chart.y, log=cdf, band=several, step=cdf, top=100 if cdf else None,
                       ends=not cdf)  # fmt: skip
    note = "jobs that count" + "; mean of the seeds, with its 95 % interval" * several
    return ReportChart(key, chart.title, note, spec, data if several else data.drop("low", "high"))


def run_label(one: RunSeries) -> str:
    """Label of the run that stands for a series in charts of one run."""
    several = f" (seed {seed_text(one.runs[0])}, one run of {len(one.runs)})"
    return one.name + several * (len(one.runs) > 1)


def _axis(lines: Sequence[Timeline], by_time: bool) -> tuple[str, float]:
    if not by_time:
        return DEMAND, 1.0
    unit, scale = time_unit(max(float(line.x[-1]) for line in lines))
    return f"time ({unit})", scale


def _lines(
    with_lines: Sequence[tuple[RunSeries, list[Timeline]]],
    by_time: bool,
    chosen: Sequence[LineChart],
    among: Sequence[str],
) -> Iterator[ReportChart]:
    every = [line for _, lines in with_lines for line in lines]
    edges = edges_of(every, line_points(len(with_lines)))
    title, scale = _axis(every, by_time)
    names = [one.name for one, _ in with_lines]
    several = any(len(lines) > 1 for _, lines in with_lines)
    note = "means over steps of time" if by_time else "the state when so much had been asked for"
    note += f"; {SHADED}" if several else ""
    for key, heading, column, axis, zero in chosen:
        if not any(line.values[column].any() for line in every):
            continue
        frame = curves([(one.name, lines) for one, lines in with_lines], column, edges, scale,
                       possible("charts", key))  # fmt: skip
        frame = frame if several else frame.drop("low", "high")
        remark = note
        late = frame.filter(pl.col("x") >= SATURATION)
        if key in LATE and not by_time and len(late) > len(frame) // 5:
            frame, zero, remark = late, False, f"{note}; from {SATURATION:g} % on, before which nearly all fits"
        yield ReportChart(
            key, heading, remark, specs.lines(names, title, axis, band=several, zero=zero, among=among), frame
        )


def _distributions(series: Sequence[RunSeries]) -> Iterator[ReportChart]:
    names = [one.name for one in series]
    several = any(len(one.runs) > 1 for one in series)
    for key, heading, column, axis, note in SPANS:
        frame = distribution(series, column, 1.0)
        longest: Any = frame["x"].max()
        if frame.is_empty() or longest <= 1.0:
            continue
        unit, scale = time_unit(longest)
        frame = frame.with_columns((pl.col("x") / scale).round_sig_figs(5))
        frame = frame if several else frame.drop("low", "high")
        remark = note + ("; mean of the seeds, shaded: its 95 % interval" if several else "")
        title = f"{axis} ({unit})"
        spec = specs.lines(names, title, "jobs or pods (%)", log=True, band=several, step=True, top=100)
        yield ReportChart(key, heading, remark, spec, frame)


def _classes(with_lines: Sequence[tuple[RunSeries, list[Timeline]]], by_time: bool) -> Iterator[ReportChart]:
    if not with_lines or not any(lines[0].values["frag_milli"].any() for _, lines in with_lines):
        return
    frames = []
    title, scale = _axis([lines[0] for _, lines in with_lines], by_time)
    for one, lines in with_lines:
        edges = edges_of(lines[:1], 100)
        frames.append(stacked(run_label(one), lines[0], edges, scale, CLASSES))
    data = pl.concat(frames)
    empty = data.group_by("part", maintain_order=True).agg(pl.col("y").max()).filter(pl.col("y") == 0)["part"].to_list()
    parts = [part for part in CLASSES.values() if part not in empty]
    spec = specs.areas(parts, title, "free GPU (% of capacity)", SHADES)
    note = "free GPUs by what a typical pod finds there; all but the last is fragmented"
    yield ReportChart(
        key="classes",
        title="Free GPUs by class",
        note=note,
        spec=spec,
        data=data.filter(pl.col("part").is_in(parts)),
        single=True,
    )


def _readings(series: Sequence[RunSeries], keys: Sequence[str]) -> Iterator[ReportChart]:
    """Charts of readings of GPUs, if telemetry was recorded."""
    labels = [run_label(one) for one in series[:DETAILED]]
    names = [one.name for one in series]
    several = any(len(one.runs) > 1 for one in series)
    for reading, title, data, single in gpu_reading_charts.charts(series, labels, keys):
        if single:
            parts = data["part"].unique(maintain_order=True).to_list()
            spec = specs.traces(parts, title, reading.axis, zero=reading.zero)
            yield ReportChart(
                key=reading.detail,
                title=f"{reading.title}, by GPU",
                note="means over steps of time",
                spec=spec,
                data=data,
                single=True,
            )
            continue
        data = data if several else data.drop("low", "high")
        note = "mean of all GPUs over steps of time" + (f"; {SHADED}" * several)
        spec = specs.lines(names, title, reading.axis, band=several, step=not several, zero=reading.zero, among=names)
        yield ReportChart(reading.key, reading.title, note, spec, data)


def _details(series: Sequence[RunSeries], window: Window | None, keys: Sequence[str]) -> Iterator[ReportChart]:
    with_stays = [(one, frame) for one in series if not (frame := stays(one.runs[0])).is_empty()]
    if not with_stays:
        return
    unit, scale = time_unit(max(float(frame["end_s"].to_numpy().max()) for _, frame in with_stays))
    yield from _shares(with_stays, f"time ({unit})", scale)
    yield from _nodes(with_stays, f"time ({unit})", scale, keys)
    data = _named([(one, bars(frame, window)) for one, frame in with_stays])
    if not data.is_empty():
        unit, scale = time_unit(float(data["x2"].to_numpy().max()))
        data = data.with_columns((pl.col("x", "x2") / scale).round_sig_figs(6))
        note = "the first GPUs and pods" if window is None else "the first GPUs in the window that was asked for"
        rows = data["row"].unique(maintain_order=True).to_list()
        yield ReportChart(
            key="window",
            title="Pods on their GPUs",
            note=note,
            spec=specs.gantt(f"time ({unit})", rows),
            data=data,
            single=True,
        )


def _nodes(
    with_stays: Sequence[tuple[RunSeries, pl.DataFrame]], title: str, scale: float, keys: Sequence[str]
) -> Iterator[ReportChart]:
    """Nodes over time and at one moment, for each quantity that is known; all have the same data."""
    more = not keys or any(key.startswith("nodes") and key not in ("nodes", "nodes_at") for key in keys)
    runs = [(one, frame, states(one.runs[0], frame) if more else None) for one, frame in with_stays]
    data = _named([(one, heat(one.runs[0], frame, scale, series)) for one, frame, series in runs])
    known = [one for one in NODES if data[one[1]].count()]
    for key, column, choice, axis, note in known:
        values = data[column].drop_nulls().to_numpy()
        least = float(values.min()) if column == "power" else 0.0
        shown = specs.NodeQuantity(column, axis, least, max(float(values.max()), least + (column != "frag" or 0.01)))
        over = f"{note}, mean; neighbouring nodes share a row where there are many"
        yield ReportChart(
            key=key,
            title="Nodes over time",
            note=over,
            spec=specs.heat(title, shown),
            data=data,
            single=True,
            choice=choice,
        )
        at = f"{note}, mean over the step of time that the slider chooses"
        key = key.replace("nodes", "nodes_at")
        yield ReportChart(
            key=key,
            title="Nodes at one moment",
            note=at,
            spec=specs.heat_at(shown),
            data=data,
            single=True,
            choice=choice,
        )


def _shares(with_stays: Sequence[tuple[RunSeries, pl.DataFrame]], title: str, scale: float) -> Iterator[ReportChart]:
    by_application = [(one, part) for one, frame in with_stays if (part := held_s(one.runs[0], frame)) is not None]
    if by_application:
        parts = leading([part for _, part in by_application])
        data = _named([(one, shares(part, parts, scale)) for one, part in by_application])
        note = "GPUs held by the jobs of each application, mean over steps of time"
        spec = specs.areas(parts, title, "GPUs", {OTHERS: "#7b879499"})
        yield ReportChart(key="shares", title="Who has the GPUs", note=note, spec=spec, data=data, single=True)


def _named(frames: Sequence[tuple[RunSeries, pl.DataFrame]]) -> pl.DataFrame:
    return pl.concat([frame.select(pl.lit(run_label(one)).alias("run"), pl.all()) for one, frame in frames])
