"""Points of the charts of jobs over completion time and over load; runs of several seeds are one curve, their mean.

====================  =============================================================================================
``jct_cdf``           part of the jobs that were done within so many hours, one curve for each policy and load
``jct_over_load``     mean completion time by jobs per hour, one line for each policy
``demand_over_load``  GPUs requested by jobs in the system, mean over the run, in per cent of the cluster's
====================  =============================================================================================

Jobs that count are those of the run's window, or all that were done.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, NamedTuple

import polars as pl

from fastsim.engine.audit.metric_definitions import possible
from fastsim.engine.result import Result
from fastsim.errors import InputError, ResultError, ScenarioError, kind_of, suggestion
from fastsim.foundation.option_texts import elements
from fastsim.reports.charts.line_points import mean_distribution
from fastsim.reports.charts.seed_intervals import interval_of_mean
from fastsim.reports.charts.series import POINTS, RunSeries, distinct_names, series_of, written_load


class JobChart(NamedTuple):
    """One chart: its title and its axes."""

    title: str
    x: str
    y: str


CHARTS = {
    "jct_cdf": JobChart("Completion times", "completion time (h)", "jobs done (%)"),
    "jct_over_load": JobChart("Mean completion time", "load (jobs/h)", "mean completion time (h)"),
    "demand_over_load": JobChart("GPU demand", "load (jobs/h)", "GPU demand (% of capacity)"),
}
"""The charts by name."""
SHORTEST_H = 1 / 3600
"""Start of the logarithmic axis of completion times: one second."""


def job_points(
    results: Sequence[Result], chart: str = "jct_cdf", *, names: Sequence[str] | None = None,
    loads: Sequence[float] | None = None, gpus: int | None = None,
) -> pl.DataFrame:  # fmt: skip
    """The points of a chart: ``run``, ``x``, ``y``, and ``low`` and ``high``, the 95 % interval of the mean over seeds.

    The interval is null where one run allows none. ``names``: one for each run, runs of equal names are one curve
    (default: those of a report). ``loads``: jobs per hour of each run (default: `rate_per_hour` of its workload's
    text). ``gpus``: GPUs of the cluster (default: those of its text).
    """
    if chart not in CHARTS:
        raise ScenarioError("chart", repr(chart), f"one of {', '.join(CHARTS)}", suggestion(chart, CHARTS))
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
    results = [copy(result) for result in results]  # a run may be there twice, with two loads
    series = series_of(results, names, loads=False)
    if chart == "jct_cdf":
        return pl.concat([_cdf(name, runs) for name, runs in _by_written_load(series)])
    at = {id(result): float(load) for result, load in zip(results, loads, strict=True)} if loads is not None else {}
    return pl.concat([_over_load(one, chart, at, gpus) for one in series])


def _by_written_load(series: Sequence[RunSeries]) -> list[tuple[str, list[Result]]]:
    """A curve for each load of a series; its name has the load if there are several."""
    curves = []
    for one in series:
        loads: dict[float | None, list[Result]] = {}
        for run in one.runs:
            loads.setdefault(written_load(run), []).append(run)
        for load, runs in loads.items():
            several = len(loads) > 1 and load is not None
            curves.append((f"{one.name}, {load:g} jobs/h" if several else one.name, runs))
    return list(zip(distinct_names([name for name, _ in curves]), [runs for _, runs in curves], strict=True))


def _cdf(name: str, runs: Sequence[Result]) -> pl.DataFrame:
    """Points of the distribution function: the mean over the runs with its interval."""
    by_run = [completion_hours(run, name).to_numpy() for run in runs]
    points = mean_distribution(by_run, POINTS).with_columns(pl.col("x").clip(SHORTEST_H)).fill_nan(None)
    return points.select(pl.lit(name).alias("run"), "x", "y", "low", "high")


def _over_load(one: RunSeries, chart: str, loads: dict[int, float], gpus: int | None) -> pl.DataFrame:
    """A point for each load of a series: the mean of its runs with its interval."""
    found: dict[float, list[float]] = {}
    for run in one.runs:
        value = _demand(run, gpus) if chart == "demand_over_load" else _mean(completion_hours(run, one.name))
        found.setdefault(loads[id(run)] if loads else _load(run), []).append(value)
    points = []
    for load, values in sorted(found.items()):
        low, high = interval_of_mean(values, possible("charts", chart))
        points.append({"run": one.name, "x": load, "y": sum(values) / len(values), "low": low, "high": high})
    schema = {"run": pl.String} | dict.fromkeys(("x", "y", "low", "high"), pl.Float64)
    return pl.DataFrame(points, schema=schema).fill_nan(None)


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


def _mean(hours: pl.Series) -> float:
    total: Any = hours.mean()
    return float(total)


def _demand(result: Result, gpus: int | None) -> float:
    """GPUs requested by jobs in the system, mean over the run, per cent of the cluster's."""
    jobs = result.jobs
    if jobs.is_empty():
        raise ResultError("found no jobs, expected one at least")
    if "num_gpu" not in jobs.columns:
        raise ResultError("demand_over_load: found a run of pods, expected one of jobs in rounds")
    times: Any = (jobs["end_s"].max(), jobs["submit_s"].max())
    end = max(float(time) for time in times if time is not None)
    requested = jobs["num_gpu"] * (jobs["end_s"].fill_null(end) - jobs["submit_s"])
    span = end - float(min(jobs["submit_s"]))
    total: Any = requested.sum()
    return 100 * float(total) / (span * _gpus(result, gpus)) if span > 0 else 0.0


def _gpus(result: Result, gpus: int | None) -> int:
    if gpus is not None:
        return gpus
    from fastsim.cluster.cluster import Cluster

    try:
        scenario = result.origin("demand_over_load", allow_code=True)  # its policy is never made
    except InputError as error:
        raise ScenarioError("demand_over_load: gpus", "nothing", f"GPUs of the cluster: {error}") from None
    return Cluster.from_text(scenario.cluster).total_gpus


def _load(result: Result) -> float:
    load = written_load(result)
    if load is None:
        text = str((result.provenance.get("scenario") or {}).get("workload", ""))
        origin = f"{text!r} without rate_per_hour" if text else "nothing"
        raise ScenarioError("loads", origin, "jobs per hour of each run")
    return load
