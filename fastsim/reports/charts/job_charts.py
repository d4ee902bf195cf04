"""Charts of jobs over completion time and over load.

====================  =============================================================================================
``jct_cdf``           part of the jobs that were done within so many hours, one curve for each run
``jct_over_load``     mean completion time by jobs per hour, one line for each policy: the mean of its runs at a load,
                      such as those of several seeds, with its 95 % interval
``demand_over_load``  GPUs requested by jobs in the system, mean over the run, in per cent of the cluster's
====================  =============================================================================================

Jobs that count are those of the run's window, or all that were done. Charts need the ``[report]`` extra.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from fastsim.engine.audit.metric_definitions import possible
from fastsim.engine.result import Result
from fastsim.errors import InputError, ResultError, ScenarioError, kind_of, suggestion
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.option_texts import elements
from fastsim.reports.charts.chart_files import charting, displayed
from fastsim.reports.charts.seed_intervals import interval_of_mean
from fastsim.reports.charts.series import HEIGHT, POINTS, WIDTH, distinct_names, run_name
from fastsim.reports.charts.series_looks import channels, marked

if TYPE_CHECKING:
    import altair as alt


class _Axes(NamedTuple):
    title: str
    x: str
    y: str


CHARTS = {
    "jct_cdf": _Axes("Completion times", "completion time (h)", "jobs done (%)"),
    "jct_over_load": _Axes("Mean completion time", "load (jobs/h)", "mean completion time (h)"),
    "demand_over_load": _Axes("GPU demand", "load (jobs/h)", "GPU demand (% of capacity)"),
}
"""Titles and axes of the charts."""
SHORTEST_H = 1 / 3600
"""Start of the logarithmic axis of completion times: one second."""


@whole_process
def job_chart(
    results: Sequence[Result], chart: str = "jct_cdf", *, names: Sequence[str] | None = None,
    loads: Sequence[float] | None = None, gpus: int | None = None,
) -> alt.LayerChart:  # fmt: skip
    """A chart of several runs; save it with ``.save("file.png")``. The options are those of :func:`job_points`."""
    altair, axes = charting(), _axes(chart)
    points = job_points(results, chart, names=names, loads=loads, gpus=gpus)
    cdf = chart == "jct_cdf"
    scale = altair.Scale(type="log", base=2, nice=False) if cdf else altair.Scale(zero=False, padding=10)
    order = points["name"].unique(maintain_order=True).to_list()
    look = channels(order, "name", {"labelLimit": 320, "symbolStrokeWidth": 3})
    oldest, style = pl.CompatLevel.oldest(), {"interpolate": "step-after"} if cdf else {}
    line = altair.Chart().mark_line(strokeWidth=1.8, clip=True, **style)
    marks = altair.Chart(marked(points, "name").to_arrow(compat_level=oldest)) if cdf else altair.Chart()
    marks = marks.mark_point(filled=True, opacity=1, size=42, clip=True)
    layers = [line.encode(strokeDash=altair.StrokeDash(**look["strokeDash"])),
              marks.encode(shape=altair.Shape(**look["shape"]))]  # fmt: skip
    if not cdf and (points["high"] > points["low"]).any():
        ends = altair.Chart().mark_errorbar(ticks=True)
        layers.insert(0, ends.encode(y=altair.Y("low:Q", title=axes.y), y2="high:Q"))
    drawn = altair.layer(*layers, data=points.to_arrow(compat_level=oldest)).encode(
        x=altair.X("x:Q", title=axes.x, scale=scale),
        y=altair.Y("y:Q", title=axes.y, scale=altair.Scale(domain=[0, 100]) if cdf else altair.Scale(zero=True)),
        color=altair.Color(**look["color"]),
        tooltip=[altair.Tooltip("name:N", title="run"), altair.Tooltip("x:Q", title=axes.x, format=",.2f"),
                 altair.Tooltip("y:Q", title=axes.y, format=",.2f")],
    )  # fmt: skip
    chart_of_all: alt.LayerChart = displayed(drawn.properties(title=axes.title, width=WIDTH, height=HEIGHT))
    return chart_of_all


def job_points(
    results: Sequence[Result], chart: str = "jct_cdf", *, names: Sequence[str] | None = None,
    loads: Sequence[float] | None = None, gpus: int | None = None,
) -> pl.DataFrame:  # fmt: skip
    """The points of a chart: ``name``, ``x`` and ``y``; over load also ``low`` and ``high``.

    These are the 95 % interval of the mean of the runs at one load, and null where one run allows none.

    ``names``: one for each run (default: its scenario's name, or its policy). ``loads``: jobs per hour of each run
    (default: `rate_per_hour` of its workload's text). ``gpus``: GPUs of the cluster (default: those of its text).
    """
    _axes(chart)
    results = elements(chart, results, "a list of results", alone=(Result,))
    if not results:
        raise ScenarioError(chart, "no results", "one at least")
    for result in results:
        if not isinstance(result, Result):
            raise ScenarioError(chart, kind_of(result), "a list of results")
    names = None if names is None else elements(f"{chart}: names", names, "a list of names")
    loads = None if loads is None else elements(f"{chart}: loads", loads, "a list of jobs per hour")
    for option, values in (("names", names), ("loads", loads)):
        if values is not None and len(values) != len(results):
            raise ScenarioError(f"{chart}: {option}", f"{len(values)} of them", f"{len(results)}, one for each result")
    named = list(names or [run_name(result) for result in results])
    if chart == "jct_cdf":
        pairs = zip(_distinct_names(named, [_written_load(result) for result in results]), results, strict=True)
        return pl.concat([_cdf(name, completion_hours(result, name)) for name, result in pairs])
    rates = [float(load) for load in loads] if loads is not None else [_load(result) for result in results]
    rows = []
    for name, load, result in zip(named, rates, results, strict=True):
        value = _demand(result, gpus) if chart == "demand_over_load" else _mean(completion_hours(result, name))
        rows.append({"name": name, "x": load, "y": value})
    frame = pl.DataFrame(rows, schema={"name": pl.String, "x": pl.Float64, "y": pl.Float64})
    points = []
    for (name, load), same in frame.group_by("name", "x", maintain_order=True):
        low, high = interval_of_mean(same["y"].to_numpy(), possible("charts", chart))
        points.append({"name": name, "x": load, "y": same["y"].mean(), "low": float(low), "high": float(high)})
    return pl.DataFrame(points).fill_nan(None).sort("name", "x", maintain_order=True)


def completion_hours(result: Result, name: str = "run") -> pl.Series:
    """Hours from arrival to the end of the jobs that count and are done, the shortest first."""
    jobs = result.table("jobs", name)
    if jobs.is_empty():
        raise ResultError(f"{name}: found no jobs, expected one at least")
    window = (result.provenance.get("scenario") or {}).get("window")
    if window is not None:
        first, last = (int(part) for part in (window.split(":") if isinstance(window, str) else window))
        jobs = jobs.slice(first, last - first)  # numbers of arrivals
    done = jobs.filter(pl.col("state") == "finished")
    if done.is_empty():
        raise ResultError(f"{name}: found no job that was done, expected one at least among those that count")
    return (done["jct_s"] / 3600).sort()


def _cdf(name: str, hours: pl.Series) -> pl.DataFrame:
    """Points of the distribution function, at most ``POINTS``."""
    count = len(hours)
    frame = pl.DataFrame({"x": hours.clip(SHORTEST_H), "y": [100 * (i + 1) / count for i in range(count)]})
    step = pl.int_range(pl.len()) * POINTS // count
    thinned = frame.group_by(step.alias("step"), maintain_order=True).last() if count > POINTS else frame
    return thinned.select(pl.lit(name).alias("name"), "x", "y")


def _mean(hours: pl.Series) -> float:
    total: Any = hours.mean()
    return float(total)


def _demand(result: Result, gpus: int | None) -> float:
    """GPUs requested by jobs in the system, mean over the run, per cent of the cluster's."""
    jobs = result.jobs
    if jobs.is_empty():
        raise ResultError("found no jobs, expected one at least")
    times: Any = (jobs["end_s"].max(), jobs["submit_s"].max())
    end = max(float(time) for time in times if time is not None)
    requested = jobs["num_gpu"] * (jobs["end_s"].fill_null(end) - jobs["submit_s"])
    span = end - float(min(jobs["submit_s"]))
    total: Any = requested.sum()
    return 100 * float(total) / (span * _gpus(result, gpus)) if span > 0 else 0.0


def _gpus(result: Result, gpus: int | None) -> int:
    if gpus is not None:
        return gpus
    from fastsim.cluster.texts import cluster_from

    try:
        scenario = result.origin("demand_over_load", allow_code=True)  # its policy is never made
    except InputError as error:
        raise ScenarioError("demand_over_load: gpus", "nothing", f"GPUs of the cluster: {error}") from None
    return cluster_from(scenario.cluster).total_gpus


def _load(result: Result) -> float:
    text, load = _workload(result), _written_load(result)
    if load is None:
        origin = f"{text!r} without rate_per_hour" if text else "nothing"
        raise ScenarioError("loads", origin, "jobs per hour of each run")
    return load


def _written_load(result: Result) -> float | None:
    """Jobs per hour in the text of the workload; None without that option."""
    option = re.search(r"[?&]rate_per_hour=([^&]+)", _workload(result))
    return float(option[1]) if option else None


def _workload(result: Result) -> str:
    return str((result.provenance.get("scenario") or {}).get("workload", ""))


def _distinct_names(names: list[str], loads: list[float | None]) -> list[str]:
    """The names, with the run's load and then a number added to equal ones."""
    twice = {name for name in names if names.count(name) > 1}
    pairs = zip(names, loads, strict=True)
    longer = [f"{n}, {load:g} jobs/h" if n in twice and load is not None else n for n, load in pairs]
    return distinct_names(longer)


def _axes(chart: str) -> _Axes:
    if chart not in CHARTS:
        raise ScenarioError("chart", repr(chart), f"one of {', '.join(CHARTS)}", suggestion(chart, CHARTS))
    return CHARTS[chart]
