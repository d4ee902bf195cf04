"""Reproductions of the Pollux paper: its lists of jobs on 16 nodes of four equal GPUs, by load and by interval.

Optimus and Tiresias draw nothing, so every job of theirs is compared at every digit. Pollux's search draws; equal runs
of it differ by 5 % by its authors' word, which is the bar of its quantities, and its single jobs are not compared.
Percentages in texts are compared at their printed digit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fastsim.engine.result import Result
from fastsim.errors import InputError
from fastsim.experiments.many_runs import SharedRuns, sharing
from fastsim.experiments.reproduce import sia_pollux
from fastsim.experiments.reproduce.published_numbers import number_cell, published_numbers, published_value
from fastsim.experiments.reproduce.reproduction import (
    Cell,
    Measure,
    Reproduction,
    cell,
    cell_table,
    plain_name,
    points,
)
from fastsim.experiments.reproduce.sia_artifact import applications_file, pollux_lists
from fastsim.performance.step_time_fit import LATE_STOP
from fastsim.policies.registry import parse
from fastsim.scenario.scenario import Scenario

HOUR_S = 3600.0
CLUSTER, ROUND_S = "sia:16:0:0", 60.0
POLICIES = {
    "pollux": f"pollux(fit_stop={LATE_STOP:g})", "optimus": "optimus(oracle=True, interval_s=0)",
    "tiresias": "served(order=demotion, first_h=16, nodes=emptiest)",
}  # fmt: skip
"""Policies of the paper by its names."""
DRAWN = "pollux"
SEARCH_BAR = 0.05
"""Difference between equal runs of Pollux's random search, as its authors state it, as a part of a value."""
LOADS, USUAL_LOAD = (0.5, 1.0, 1.5, 2.0), 1.0
INTERVALS_S = (30.0, 60.0, 120.0, 240.0, 480.0)
LISTS = 8
"""Lists of a load, over which means are published."""
TESTBED = 6
"""List of the testbed, whose jobs are published one by one."""
LOAD, INTERVAL, INTERFERENCE = "8a", "8b", "8c"
FIDELITY, ABSTRACT, EQUAL = "simulator fidelity (5.3)", "abstract", "table 4"
FIGURES = (LOAD, INTERVAL, INTERFERENCE, FIDELITY, ABSTRACT)
AVOIDING, SHARING_NODES = f"{DRAWN} [avoidance enabled]", f"{DRAWN} [avoidance disabled]"
"""Series of the usual runs, in which no two distributed jobs share a node, so none is slowed down, and of others."""
TEXTS = {**POLICIES, SHARING_NODES: f"pollux(apart=False, fit_stop={LATE_STOP:g})"}
"""Texts of policies by series."""
INTERFERENCE_PARTS = (0.0, 0.25, 0.5)
"""Parts of their speed that distributed jobs lose on a node that two of them share."""
GENERATED, QUICK_JOBS = 3, 40
"""Generated lists, the first of which stands for that of the testbed, and jobs of each of ``quick``."""


class Point(NamedTuple):
    """One run: series of the paper or a policy's text, load relative to the usual one, interval, list, slowdown."""

    policy: str
    load: float
    interval_s: float
    number: int
    interference: float = 0.0


Lists = Mapping[tuple[float, int], str]
"""Texts of workloads by load and number."""
Done = Mapping[Point, Result]


def run_count(
    data: Path | None, paper: str, quick: bool, policies: Sequence[str] = (), figures: Sequence[str] = ()
) -> int:
    """Number of runs of a reproduction."""
    own = len(_points(_lists(data, quick, None), policies, figures)) if _is_own(figures) else 0
    equal = sia_pollux.run_count(data, paper, quick, policies, (EQUAL,)) if _has_equal(figures, quick) else 0
    return own + equal


def _is_own(figures: Sequence[str]) -> bool:
    return not figures or any(figure in FIGURES for figure in figures)


def _has_equal(figures: Sequence[str], quick: bool) -> bool:
    """Whether table 4 of the Sia paper, whose lists are others, is made; ``quick`` has it if it is named only."""
    return EQUAL in figures or (not figures and not quick)


def pollux_reproduction(
    data: Path | None, quick: bool, workers: int, progress: Callable[[int], None] | None = None,
    policies: Sequence[str] = (), figures: Sequence[str] = (), shared: SharedRuns | None = None,
) -> Reproduction:  # fmt: skip
    """Pollux, Optimus and Tiresias over load and interval, beside the published results; table 4 of the Sia paper."""
    began = time.perf_counter()
    done: dict[Point, Result] = {}
    with sharing(shared) as made:
        lists = _lists(data, quick, made.folder)
        apps = None if data is None else applications_file(data, made.folder, pollux=True)
        runs = _points(lists, policies, figures) if _is_own(figures) else []
        results = made.results([_scenario(point, lists, apps) for point in runs], workers, progress)
        done = dict(zip(runs, results, strict=True))
    comparable = data is not None and apps is not None
    cells = [one for one in _cells(done, comparable) if not figures or one.figure in figures]
    own = Reproduction(
        name="pollux",
        title="Pollux: goodput shared out (OSDI 2021)",
        source=_source(data, apps, runs),
        cells=cell_table(cells),
        curves=_curves(done),
        runs=len(runs),
        wall_s=time.perf_counter() - began,
        citation=str(getattr(parse("pollux"), "citation", "")),
        cpu_s=sum(result.timing["cpu_s"] for result in results),
    )
    if not _has_equal(figures, quick):
        return own
    later = None if progress is None else lambda count: progress(len(runs) + count)
    return _joined(own, sia_pollux.equal_reproduction(data, quick, workers, later, policies, shared))


def _joined(own: Reproduction, other: Reproduction) -> Reproduction:
    """Both as one."""
    return Reproduction(
        name=own.name,
        title=own.title,
        source=f"{own.source}; {other.source}",
        cells=pl.concat([own.cells, other.cells]),
        curves=pl.concat([own.curves, other.curves]),
        runs=own.runs + other.runs,
        wall_s=own.wall_s + other.wall_s,
        citation=own.citation,
        cpu_s=(own.cpu_s or 0.0) + (other.cpu_s or 0.0),
    )


def _source(data: Path | None, apps: str | None, runs: Sequence[Point]) -> str:
    if data is None:
        return "generated jobs and applications made up, so published figures are a glance only"
    counted = {load: len({point.number for point in runs if point.load == load}) for load in LOADS}
    there = ", ".join(f"{count} at load {load:g}" for load, count in counted.items() if count)
    return f"published lists: {there or 'none'}; {'measured' if apps else 'made-up'} applications of Pollux"


def _lists(data: Path | None, quick: bool, scratch: Path | None) -> dict[tuple[float, int], str]:
    """The lists of each load; ``quick`` has that of the testbed, or the first one."""
    if data is None:
        options = f"style=philly&jobs={QUICK_JOBS}" if quick else "style=philly"
        return {
            (USUAL_LOAD, TESTBED + seed): f"synth:sia?{options}&seed={seed}"
            for seed in range(1 if quick else GENERATED)
        }
    lists = {
        (load, number): text for load in ((USUAL_LOAD,) if quick else LOADS)
        for number, text in pollux_lists(data, load, scratch).items()
    }  # fmt: skip
    if not lists:
        raise InputError(str(data), "no list of jobs", "workload-N.csv, or data/pollux/workloads.parquet")
    first = (USUAL_LOAD, TESTBED) if (USUAL_LOAD, TESTBED) in lists else min(lists)
    return {first: lists[first]} if quick else lists


def _points(lists: Lists, policies: Sequence[str], figures: Sequence[str]) -> list[Point]:
    """The runs of the figures, each once, the longest first."""
    names = _names(policies)
    usual = [number for load, number in lists if load == USUAL_LOAD]
    needed: list[Point] = []
    if not figures or INTERVAL in figures:
        needed += [Point(DRAWN, USUAL_LOAD, each, n) for each in INTERVALS_S for n in usual if DRAWN in names]
    if not figures or LOAD in figures:
        needed += [Point(name, load, ROUND_S, number) for name in names for load, number in reversed(list(lists))]
    if (not figures or INTERFERENCE in figures) and DRAWN in names:
        needed += [Point(DRAWN, USUAL_LOAD, ROUND_S, number) for number in usual]
        needed += [Point(SHARING_NODES, USUAL_LOAD, ROUND_S, n, part) for part in INTERFERENCE_PARTS for n in usual]
    if ABSTRACT in figures:
        needed += [Point(name, USUAL_LOAD, ROUND_S, number) for name in names for number in usual]
    if FIDELITY in figures:
        needed += [Point(name, USUAL_LOAD, ROUND_S, n) for name in names for n in usual if n == TESTBED]
    return list(dict.fromkeys(needed))


def _names(policies: Sequence[str]) -> list[str]:
    """The paper's policies, or those that are chosen by either name; others stand as they are."""
    ours = {plain_name(text): name for name, text in POLICIES.items()}
    return [ours.get(plain_name(text), text) for text in policies] if policies else list(POLICIES)


def _scenario(point: Point, lists: Lists, apps: str | None) -> Scenario:
    return Scenario(
        CLUSTER, lists[point.load, point.number], TEXTS.get(point.policy, point.policy), round_s=point.interval_s,
        rates=apps, interference=point.interference, record="summary",
    )  # fmt: skip


# ---------------------------------------------------------------------- cells


def _cells(done: Done, comparable: bool) -> list[Cell]:
    """The published numbers whose runs are there; means of policies that are not in the paper."""
    cells = []
    for row in published_numbers("pollux").iter_rows(named=True):
        ours = _ours(row, done)
        if ours is not None:
            drawn = row["series"].startswith(DRAWN) and row["unit"] != "%"
            bar = SEARCH_BAR * row["value"] if drawn else None
            policy = TEXTS.get(row["series"], row["series"])
            cells.append(number_cell(row, ours, policy=policy, bar=bar, exact=not drawn, comparable=comparable))
    return [*cells, *_saved_cells(done, comparable), *_other_cells(done)]


def _ours(row: Mapping[str, Any], done: Done) -> float | None:
    """Our value of a published number; None if runs of it are missing."""
    metric, series, figure = row["metric"], row["series"], row["figure"]
    if figure == FIDELITY and " over " in series:
        ratio = [_ours({**row, "series": name, "metric": "jct_mean"}, done) for name in series.split(" over ")]
        return None if None in ratio or not ratio[1] else 100.0 * (1.0 - (ratio[0] or 0.0) / ratio[1])
    if figure not in (LOAD, INTERVAL, FIDELITY, INTERFERENCE):
        return None
    name, interval_s = series if series == SHARING_NODES else series.partition(" [")[0], ROUND_S
    match = re.search(r"(?:([\d.]+) / )?workload-(\d+)$", row["x"])
    at = float(match[1] or 1.0) if match else _plain(row["x"])
    load = at if figure == LOAD and at is not None else USUAL_LOAD
    if figure == INTERVAL:
        interval_s = at or ROUND_S
    part = (at or 0.0) / 100 if name == SHARING_NODES else 0.0
    if match:
        result = done.get(Point(name, load, interval_s, int(match[2]), part))
        return None if result is None else _quantity(metric, [result], 1.0)
    if row["panel"].startswith("per job"):
        return None if name == DRAWN else _job(row["x"], done.get(Point(name, load, interval_s, TESTBED)))
    of_load = [Point(name, load, interval_s, n, part) for n in range(1, LISTS + 1)]
    each = [result for point in of_load if (result := done.get(point)) is not None]
    if len(each) < LISTS:
        return None
    if row["panel"].startswith("per application"):
        jobs = pl.concat([result.jobs.select("workload", "jct_s") for result in each])
        return float(np.mean(jobs.filter(pl.col("workload").cast(pl.String) == row["x"])["jct_s"].to_numpy()))
    return _quantity(metric, each, HOUR_S)


def _plain(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _job(name: str, result: Result | None) -> float | None:
    """Completion time of one job, whose name is that of its application and its place in the list."""
    application, _, place = name.rpartition("-")
    if result is None:
        return None
    at = (pl.col("pod_id") == int(place)) & (pl.col("workload").cast(pl.String) == application)
    times_s = result.jobs.filter(at)["jct_s"]
    return float(times_s[0]) if len(times_s) else None


def _quantity(metric: str, results: Sequence[Result], unit_s: float) -> float:
    """A quantity of one list or of all: means over lists, quantiles of all their jobs."""
    if metric == "makespan":
        return float(np.mean([_makespan_s(result) for result in results])) / unit_s
    if metric.startswith("jct_mean"):
        means = [float(np.mean(result.jobs["jct_s"].to_numpy())) for result in results]
        return float(np.std(means, ddof=1) if metric.endswith("workloads") else np.mean(means)) / unit_s
    jct_s = np.concatenate([result.jobs["jct_s"].to_numpy() for result in results])
    return float(np.quantile(jct_s, float(metric.removeprefix("jct_p")) / 100)) / unit_s


def _makespan_s(result: Result) -> float:
    return float(result.jobs.select((pl.col("submit_s") + pl.col("jct_s")).max()).item())


def _means_h(done: Done, name: str) -> list[float]:
    """Mean completion time of each list at the usual load."""
    return [
        float(np.mean(result.jobs["jct_s"].to_numpy())) / HOUR_S for point, result in done.items()
        if point[:3] == (name, USUAL_LOAD, ROUND_S)
    ]  # fmt: skip


def _saved_cells(done: Done, comparable: bool) -> Iterator[Cell]:
    """The least and the largest reduction of completion times by Pollux (%) beside the ends of the printed range."""
    saved, others = _means_h(done, DRAWN), [_means_h(done, name) for name in POLICIES if name != DRAWN]
    if not saved or any(len(means) != len(saved) for means in others):
        return
    parts = [100 * (1 - float(np.mean(saved)) / float(np.mean(means))) for means in others]
    for end, ours in (("low", min(parts)), ("high", max(parts))):
        measure = Measure(ABSTRACT, f"completion time saved by pollux, {end} end", "%", 1.0)
        printed = published_value("pollux", figure=ABSTRACT, metric=f"jct_mean_reduction_range_{end}")
        yield cell(measure, "", "pollux", None, ours, published=printed, comparable=comparable)


def _other_cells(done: Done) -> Iterator[Cell]:
    """Mean completion times of policies that the paper does not have."""
    for name in dict.fromkeys(point.policy for point in done if point.policy not in TEXTS):
        measure = Measure(LOAD, "jct_mean", "h", 0.0)
        yield cell(measure, "load 1", name, None, float(np.mean(_means_h(done, name))))


def _curves(done: Done) -> pl.DataFrame:
    """Mean completion time over load, over the interval, and over the slowdown of jobs that share a node."""
    lines: dict[tuple[str, str, str], dict[float, list[float]]] = {}
    for point, result in sorted(done.items(), key=lambda at: at[0]):
        mean_h = float(np.mean(result.jobs["jct_s"].to_numpy())) / HOUR_S
        if point.policy == SHARING_NODES:
            line = lines.setdefault(("Completion time over interference", "slowdown (part)", point.policy), {})
            line.setdefault(point.interference, []).append(mean_h)
        elif point.interval_s == ROUND_S:
            line = lines.setdefault(("Completion time over load", "load", point.policy), {})
            line.setdefault(point.load, []).append(mean_h)
        if point.policy == DRAWN and point.load == USUAL_LOAD:
            line = lines.setdefault(("Completion time over the interval", "interval (s)", point.policy), {})
            line.setdefault(point.interval_s, []).append(mean_h)
    title = "mean completion time (h)"
    frames = [
        points(
            chart=chart,
            x_title=x,
            y_title=title,
            policy=policy,
            x=list(line),
            y=[float(np.mean(each)) for each in line.values()],
        )
        for (chart, x, policy), line in lines.items()
    ]
    return pl.concat(frames or [points(chart="", x_title="", y_title="", policy="", x=[], y=[])])
