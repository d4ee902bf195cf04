"""Reproductions of the Sia and Pollux papers' tables and plots: adaptive jobs on 64 GPUs of three models and of one.

Means over lists come with the standard deviation of the lists' means, as in the papers. The bar of a figure is the
printed deviation, or that of our lists if none is printed, plus half a printed digit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fastsim.engine.result import Result
from fastsim.errors import InputError
from fastsim.experiments.isolated_runs import fairness, finish_time_ratios
from fastsim.experiments.many_runs import SharedRuns, sharing
from fastsim.experiments.reproduce.published_numbers import number_cell, published_numbers, published_value
from fastsim.experiments.reproduce.reproduction import (
    Cell,
    Measure,
    Reproduction,
    beyond,
    cell,
    cell_table,
    of_policies,
    points,
)
from fastsim.experiments.reproduce.sia_artifact import TRACES, applications_file, job_lists
from fastsim.performance.applications.step_times import MICRO_BATCHES, packed
from fastsim.policies.registry import parse
from fastsim.scenario.scenario import Scenario
from fastsim.simulation.engines.adaptive import applications_from

HOUR_S = 3600.0
MIXED, EQUAL = "sia:6:2:3", "sia:16:0:0"
"""64 GPUs: T4, A100 and RTX 2080 Ti; T4 only."""
ROUND_S = {"sia": 60.0, "pollux": 60.0, "optimus": 60.0}
"""Length of a round; 360 s under all other policies."""
STYLES = {"philly": "philly", "saturn": "helios", "newtrace": "newtrace"}
"""Traces, and the generator's style that looks like each."""
LISTS = 3
"""Generated lists of a style."""
QUICK_JOBS = 40
MIXED_POLICIES = ("pollux", "sia", "rotation")
PRICED = "sia(aware=False, changed=0.01)"
"""The program for equal GPUs, with the price of changes in the published commands, which Sia's own ignores."""
EQUAL_POLICIES = ("pollux", PRICED, "sia", "planned", "rotation(shares=finish_time_fairness)", "rotation")
PRINTED_AS = {PRICED: "sia"}
"""Policies that stand for another one in the printed tables."""
ROOMY = "sia:200:0:0"
"""Enough GPUs that jobs hardly wait: the GPU hours of fixed jobs in any order."""
EQUAL_NOTE = (
    ". Table 4: published commands name a price of changes that only the program for equal GPUs uses, so its Sia may "
    "be either one; fixed jobs of these lists need the GPU hours of the row without waits in any order, so "
    "behind the published 12.5 to 17.2 are other requests, or dozens of restarts of each job"
)
MEASURES = {
    "jct_mean_h": ("mean completion time", "h"), "jct_p99_h": ("99th percentile", "h"), "makespan_h": ("makespan", "h"),
    "gpu_h_mean": ("GPU hours of a job", "h"), "active_mean": ("active jobs", ""), "active_max": ("most active", ""),
    "restarts_mean": ("restarts of a job", ""),
}  # fmt: skip
SPREAD = ("jct_mean_h", "makespan_h", "gpu_h_mean")
"""Figures that have a deviation in the tables."""
PROFILING, FIXED = "text 5.7 profiling (unnumbered bars)", "11"
EFFECTS = {
    "sia(measured_nodes=16, measured_gpus=64)": (
        "bootstrapped over measured", PROFILING, "bootstrap_worse_than_oracle", 1,
    ),
    "sia(project=False)": ("bootstrapped over unprojected", PROFILING, "bootstrap_better_than_no_prof", -1),
    "sia(tuned=False)": ("batch sizes tuned over asked", FIXED, "jct_mean_gain_from_batch_size", -1),
}  # fmt: skip
"""Change of Sia's mean completion time against Sia without one of its parts, per cent: quantity, figure, published
metric, and the sign of a gain."""
METRICS = {"jct_mean_h": "jct_mean", "jct_p99_h": "jct_p99", "makespan_h": "makespan"}
"""Published metrics whose names differ from ours."""
WHOLE = ("table 3", "sia")
"""Figure and policy that parts are compared with, on the same trace."""
TRACE_OF = {PROFILING: "saturn", FIXED: "philly"}
"""Trace of the lists with which a part was left out."""
BARS = {
    "sia": "sia [Bootstrap profiling]", "sia(measured_nodes=16, measured_gpus=64)": "sia [Oracle profiling]",
    "sia(project=False)": "sia [No Prof profiling]",
}  # fmt: skip
"""Bars of the figure of profiling, by policy."""


class Row(NamedTuple):
    """One row of a table, or point of a plot: a policy on all lists of a trace.

    ``series`` and ``x`` are those of the published numbers of a point, whose panel is ``case``; rows without
    ``trace`` are of the trace ``case``. ``round_s`` of 0 is the usual length of the policy's rounds.
    """

    figure: str
    case: str
    policy: str
    cluster: str
    lists: tuple[str, ...]
    series: str = ""
    x: str = ""
    round_s: float = 0.0
    trace: str = ""


class Plot(NamedTuple):
    """A point of a plot; ``fixed`` is a category of jobs and the per cent of the trace's jobs that are of it."""

    figure: str
    panel: str
    series: str
    policy: str
    trace: str
    x: str = ""
    cluster: str = MIXED
    round_s: float = 0.0
    fixed: tuple[str, int] = ("", 0)


ADAPTIVE = {name: name for name in MIXED_POLICIES}
RIGID = {"pollux": "pollux(tuned=False)", "sia": "sia(rigid=True, power=0.5, unserved=-1)", "rotation": "rotation"}
"""Policies of jobs whose GPUs and batch sizes are the requested ones."""
GPU_HOURS, FAIRNESS, SMALLEST, FIRST = "6", "8", "10", "11"
"""Figures of GPU hours by model, of finish-time fairness, of ratios to a panel's smallest value and to that at 0."""
CATEGORIES = {
    "strong-scaling jobs (fixed batch size)": "scale-gpus",
    "rigid jobs (fixed batch size and GPU count)": "rigid",
}
PLOTS = (
    *(Plot("1", panel, name, policy, "philly", cluster=cluster)
      for panel, policies, cluster in (
          ("Heterogeneous+RigidJobs", RIGID, MIXED), ("Heterogeneous+AdaptiveJobs", ADAPTIVE, MIXED),
          ("Homogeneous+AdaptiveJobs", ADAPTIVE, EQUAL),
      ) for name, policy in policies.items()),
    *(Plot(GPU_HOURS, "", name, name, "saturn") for name in MIXED_POLICIES),
    *(Plot(FAIRNESS, "", name, name, "saturn") for name in (*MIXED_POLICIES, "planned")),
    *(Plot("7", "", name, name, f"scale_rate_{rate}", str(rate)) for name, rates in
      (("pollux", (10, 20)), ("sia", (10, 20, 30, 40, 50)), ("rotation", (10, 20, 30, 40, 50))) for rate in rates),
    *(Plot(SMALLEST, "left", f"sia [p={power:g}]", f"sia(power={power}, unserved={unserved})", "saturn", f"{power:g}")
      for powers, unserved in (((-1.0, -0.5), 1.1), ((0.2, 0.3, 0.8, 1.0), -1)) for power in powers),
    *(Plot(SMALLEST, "right", f"sia [round {seconds} s]", "sia", "saturn", str(seconds), round_s=seconds)
      for seconds in (30, 60, 120, 180, 240, 300)),
    *(Plot(FIRST, panel, "sia", "sia", "philly", str(part), fixed=(category, part))
      for panel, category in CATEGORIES.items() for part in (0, 50, 100)),
)  # fmt: skip
"""Points of plots, the longest of each figure first. With a power above 0 the sum is maximised, and a job without GPUs
takes 1 from it, as in the artifact's program where no other number is given."""
GPT, GPT_APP = "text 5.3 GPT (unnumbered)", "gpt_pmp"
"""Figure and application of jobs made of pipelines."""
NODE_GPUS = 8
GPT_MACHINES = {"a100": "dgx-ext", "rtx": "rtx"}
"""Machines of measurements by GPU model."""
NODES = {"t4": range(6), "a100": range(6, 8), "rtx": range(8, 11)}
"""Positions of the nodes of each model in the cluster of three models."""


Done = Mapping[Row, Sequence[Result]]
Hours = Mapping[tuple[str, str], float]


def sia_reproduction(
    data: Path | None, quick: bool, workers: int, progress: Callable[[int], None] | None = None,
    policies: Sequence[str] = (), figures: Sequence[str] = (), shared: SharedRuns | None = None,
) -> Reproduction:  # fmt: skip
    """Tables 3 and 4, and the effects of measuring, projecting and tuning."""
    return _reproduction("sia", data, quick, workers, progress, policies, figures, shared)


def equal_reproduction(
    data: Path | None, quick: bool, workers: int, progress: Callable[[int], None] | None = None,
    policies: Sequence[str] = (), shared: SharedRuns | None = None,
) -> Reproduction:  # fmt: skip
    """Table 4, Pollux beside others on equal GPUs, as a part of the reproduction of Pollux."""
    return _reproduction("pollux", data, quick, workers, progress, policies, ("table 4",), shared)


def run_count(
    data: Path | None, paper: str, quick: bool, policies: Sequence[str] = (), figures: Sequence[str] = ()
) -> int:
    """Number of runs of a reproduction."""
    return sum(len(row.lists) for row in _chosen(_rows(data, paper, quick, figures), policies, figures))


def _chosen(rows: list[Row], policies: Sequence[str], figures: Sequence[str]) -> list[Row]:
    """Rows of these figures and policies; others join the first table, and rows of effects need that of ``WHOLE``."""
    every = rows
    rows = [row for row in rows if not figures or row.figure in figures]
    selected = of_policies(rows, policies)
    first = {row.case: row for row in rows if row.figure == rows[0].figure}
    selected += [row._replace(policy=text) for text in beyond(rows, policies) for row in first.values()]
    cases = {row.case for row in selected if row.policy in EFFECTS}
    wholes = [row for row in every if (row.figure, row.policy) == WHOLE and row.case in cases]
    return [*selected, *(row for row in wholes if row not in selected)]


def _reproduction(
    paper: str, data: Path | None, quick: bool, workers: int, progress: Callable[[int], None] | None,
    policies: Sequence[str], figures: Sequence[str], shared: SharedRuns | None,
) -> Reproduction:  # fmt: skip
    began = time.perf_counter()
    with sharing(shared) as made:
        rows = _chosen(_rows(data, paper, quick, figures, made.folder), policies, figures)
        apps = None if data is None else applications_file(data, made.folder)
        runs = [(row, item) for row in rows for item in row.lists]
        results = made.results([_scenario(row, item, apps) for row, item in runs], workers, progress)
        fair = {
            row.series: finish_time_ratios(_scenario(row, item, apps), result, workers=workers)
            for (row, item), result in zip(runs, results, strict=True) if row.figure == FAIRNESS
        }  # fmt: skip
        pipelines = _pipeline_cells(apps) if apps and (GPT in figures or not (figures or quick)) else []
    done: dict[Row, list[Result]] = {row: [] for row in rows}
    for (row, _), result in zip(runs, results, strict=True):
        done[row].append(result)
    comparable = data is not None and apps is not None and not quick
    cells = [one for row, some in done.items() for one in _table_cells(row, some, comparable)
             if row.policy not in EFFECTS and not row.series]  # fmt: skip
    cells += _effect_cells(done, comparable)
    cells += [*pipelines, *_fairness_cells(fair)]
    cells += _plot_cells({row: some for row, some in done.items() if row.series}, comparable)
    cells = [one for one in cells if not figures or one.figure in figures]
    title = {
        "sia": "Sia: goodput on GPUs of several models (SOSP 2023)", "pollux": "Pollux: goodput shared out (OSDI 2021)",
    }[paper]  # fmt: skip
    citation = str(getattr(parse(paper), "citation", ""))
    wall_s, spent_s = time.perf_counter() - began, sum({id(one): one.timing["cpu_s"] for one in results}.values())
    source = _source(data, apps, rows)
    return Reproduction(paper, title, source, cell_table(cells), _curves(done), len(runs), wall_s, citation, spent_s)


def _source(data: Path | None, apps: str | None, rows: Sequence[Row]) -> str:
    if data is None:
        return "generated jobs of the traces' styles and applications made up, so published figures are a glance only"
    longest_last = sorted(rows, key=lambda row: len(row.lists))
    counted = {row.trace or row.case: len(row.lists) for row in longest_last if row.cluster != ROOMY}
    lists = ", ".join(f"{count} of {trace}" for trace, count in counted.items()) or "none"
    note = EQUAL_NOTE if apps and any(row.cluster == ROOMY for row in rows) else ""
    return f"published lists: {lists}; {'measured' if apps else 'made-up'} applications{note}"


def _scenario(row: Row, workload: str, apps: str | None) -> Scenario:
    # One figure needs the placements of runs that it shares with others.
    return Scenario(row.cluster, workload, row.policy, round_s=_round_s(row), rates=apps, record="placements")


def _round_s(row: Row) -> float:
    return row.round_s or ROUND_S.get(row.policy.partition("(")[0], 360.0)


def _rows(
    data: Path | None, paper: str, quick: bool, figures: Sequence[str] = (), scratch: Path | None = None
) -> list[Row]:
    """The longest runs first, so that workers end together; ``quick`` has one table unless figures are named."""
    traces = ("philly",) if (quick and PROFILING not in figures) or paper == "pollux" else TRACES
    lists = {trace: _lists(data, trace, quick) for trace in traces}
    if not any(lists.values()):
        raise InputError(str(data), "no list of jobs", "folders philly, saturn, newtrace with CSV files")
    rows = []
    if paper == "sia":
        rows += [Row("table 3", trace, policy, MIXED, lists[trace])
                 for policy in MIXED_POLICIES for trace in reversed(lists)]  # fmt: skip
    if not quick or figures:
        rows += [Row("table 4", "philly", policy, EQUAL, lists["philly"]) for policy in EQUAL_POLICIES]
    if paper == "sia" and (not quick or figures):
        rows.append(Row("table 4", "philly, no waits", "rotation", ROOMY, lists["philly"]))
        rows += [
            Row(effect[1], (trace := TRACE_OF[effect[1]]), policy, MIXED, lists.get(trace, ()))
            for policy, effect in EFFECTS.items()
        ]
    for plot in PLOTS if paper == "sia" else ():
        if plot.figure in figures or not (figures or quick):
            found = _lists(data, plot.trace, quick or plot.figure == FAIRNESS, scratch, plot.fixed)
            rows.append(Row(
                plot.figure, plot.panel, plot.policy, plot.cluster, found, plot.series, plot.x, plot.round_s, plot.trace
            ))  # fmt: skip
    return [row for row in rows if row.lists]


def _lists(
    data: Path | None, trace: str, quick: bool, scratch: Path | None = None, fixed: tuple[str, int] = ("", 0)
) -> tuple[str, ...]:  # fmt: skip
    """Texts of the lists of a trace; in a part of them by draw, ``fixed``, jobs are of another category."""
    if data is None:
        style = STYLES.get(trace, "helios")
        options = f"style={style}" + (f"&jobs={QUICK_JOBS}" if quick else "")
        return tuple(f"synth:sia?{options}&seed={seed}" for seed in range(1 if quick else LISTS))
    return tuple(job_lists(data, trace, scratch, fixed)[: 1 if quick else None])


def _figures(result: Result) -> dict[str, float]:
    """The tables' figures of one list."""
    row = result.summary.row(0, named=True)
    return {
        "jct_mean_h": row["jct_mean_s"] / HOUR_S, "jct_p99_h": _p99_h([result]),
        "makespan_h": row["makespan_s"] / HOUR_S, "gpu_h_mean": row["round_gpu_hours_mean"],
        "active_max": float(row["max_active_jobs"]), "restarts_mean": row["charged_restarts_mean"],
    }  # fmt: skip


def _active_mean(result: Result, round_s: float) -> float:
    """Active jobs at the end of a round, on average over all rounds from second 0, as the artifact prints them."""
    submit_s, end_s = (np.sort(result.jobs[name].to_numpy()) for name in ("submit_s", "end_s"))
    ends = round_s * np.arange(1, np.ceil(end_s[-1] / round_s) + 1)
    return float(np.mean(np.searchsorted(submit_s, ends, "right") - np.searchsorted(end_s, ends, "right")))


def _p99_h(results: Sequence[Result]) -> float:
    """The 99th percentile of all jobs by the original's rule."""
    every = np.sort(np.concatenate([result.jobs["jct_s"].to_numpy() for result in results]))
    return float(every[int(0.99 * len(every))]) / HOUR_S


def _table_cells(row: Row, results: Sequence[Result], comparable: bool) -> list[Cell]:
    each = [{**_figures(result), "active_mean": _active_mean(result, _round_s(row))} for result in results]
    lines = _printed(row)
    cells = []
    for name in each[0]:
        values = [one[name] for one in each]
        ours = (
            _p99_h(results) if name == "jct_p99_h" else max(values) if name == "active_max" else float(np.mean(values))
        )
        digit, published = lines.get(METRICS.get(name, name), (0.1, None))
        spread = lines.get(f"{METRICS.get(name, name)}_sd")
        own = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        bar = (own if spread is None or spread[1] is None else spread[1]) + digit / 2
        cells.append(
            cell(_measure(row.figure, name, digit), row.case, row.policy, None, ours, bar=bar, exact=False,
                 published=published, comparable=comparable)
        )  # fmt: skip
        if name in SPREAD and len(values) > 1:
            quantity, unit = MEASURES[name]
            measure = Measure(row.figure, f"{quantity}, deviation of the lists", unit, digit)
            cells.append(cell(measure, row.case, row.policy, None, float(np.std(values))))
    return cells


def _printed(row: Row) -> dict[str, tuple[float, float | None]]:
    """Last digit and value of the printed numbers of a row, by metric."""
    table = published_numbers("sia").filter(
        figure=row.figure, series=PRINTED_AS.get(row.policy, row.policy), x=row.case
    )
    return {metric: (digit, value) for metric, digit, value in table.select("metric", "digit", "value").iter_rows()}


def _measure(figure: str, name: str, digit: float) -> Measure:
    quantity, unit = MEASURES[name]
    return Measure(figure, quantity, unit, digit)


def _means_h(results: Sequence[Result]) -> Any:
    return np.array([result.summary["jct_mean_s"][0] / HOUR_S for result in results])


def _effect_cells(done: Done, comparable: bool) -> list[Cell]:
    """Change of Sia's mean completion time against Sia without a part, per cent; the bar is the lists' deviation."""
    wholes = {row.case: some for row, some in done.items() if (row.figure, row.policy) == WHOLE}
    cells = []
    for row, some in done.items():
        if row.policy in EFFECTS and row.case in wholes:
            quantity, figure, metric, sign = EFFECTS[row.policy]
            published = sign * published_value("sia", figure=figure, metric=metric)
            measure, whole = Measure(figure, quantity, "%", 1.0), _means_h(wholes[row.case])
            by_list = 100 * (whole / _means_h(some) - 1)
            ours = 100 * float(whole.mean() / _means_h(some).mean() - 1)
            bar = float(np.std(by_list, ddof=1)) + 0.5 if len(by_list) > 1 else None
            cells.append(cell(measure, row.case, row.policy, None, ours, published=published, bar=bar, exact=False,
                              comparable=comparable))  # fmt: skip
    return cells + _bar_cells(done, comparable)


def _bar_cells(done: Done, comparable: bool) -> list[Cell]:
    """Mean completion times with and without measurements; the bar is the error of a mean over the lists."""
    numbers = published_numbers("sia").filter(figure=PROFILING, metric="jct_mean")
    shown = {row.policy: some for row, some in done.items()
             if row.case == TRACE_OF[PROFILING] and row.figure in (PROFILING, WHOLE[0])}  # fmt: skip
    cells = []
    for policy, series in BARS.items():
        row = next(numbers.filter(series=series).iter_rows(named=True), None)
        if row is not None and policy in shown and any(one in EFFECTS for one in shown):
            means_h = _means_h(shown[policy])
            bar = float(np.std(means_h, ddof=1)) if len(means_h) > 1 else None
            ours = float(means_h.mean())
            cells.append(
                number_cell(row, ours, case=TRACE_OF[PROFILING], policy=policy, bar=bar, comparable=comparable)
            )
    return cells


def _plot_cells(done: Done, comparable: bool) -> Iterator[Cell]:
    """Published points beside ours; the bar of a mean is the deviation of our lists, that of a ratio the deviation of
    the lists' ratios. Half widths of error bars are of all the lists of the paper."""
    points_of = {(row.figure, row.case, row.series, row.x): some for row, some in done.items()}
    for figure in dict.fromkeys(row.figure for row in done):
        numbers = published_numbers("sia").filter(figure=figure)
        if figure == GPU_HOURS:
            mine = {row.series: some for row, some in done.items() if row.figure == figure}
            yield from _gpu_hour_cells(numbers, mine, comparable)
            continue
        for row in numbers.iter_rows(named=True):
            results = points_of.get((figure, row["panel"], row["series"], row["x"]))
            if results is not None:
                others = [some for key, some in points_of.items() if key[:2] == (figure, row["panel"])]
                yield _plot_cell(row, results, others, comparable)


def _plot_cell(
    row: Mapping[str, Any], results: Sequence[Result], others: Sequence[Sequence[Result]], comparable: bool
) -> Cell:  # fmt: skip
    metric = row["metric"].removesuffix("_normalised").removesuffix("_read")
    if metric.endswith("error_bar_half_width"):
        return number_cell(row, float(np.std(_means_h(results))), comparable=False)
    each = np.array([_figures(result)[f"{metric}_h"] for result in results])
    if row["metric"].endswith("_normalised"):
        values = [np.array([_figures(result)[f"{metric}_h"] for result in some]) for some in others]
        each = each / (values[0] if row["figure"] == FIRST else min(values, key=np.mean))
    spread = float(np.std(each, ddof=1)) if len(each) > 1 else None
    return number_cell(row, float(each.mean()), bar=spread, comparable=comparable)


def _gpu_hour_cells(numbers: pl.DataFrame, done: Mapping[str, Sequence[Result]], comparable: bool) -> Iterator[Cell]:
    """GPU hours of each application on each model, over the smallest total that a policy needs for the application.

    The bar is the deviation of the same ratio over single lists.
    """
    hours = {series: [_gpu_hours(result) for result in results] for series, results in done.items()}
    whole = {series: _summed(each) for series, each in hours.items()}
    for row in numbers.filter(pl.col("series").is_in(list(hours))).iter_rows(named=True):
        single = [_hour_ratio(row, dict(zip(hours, each, strict=True))) for each in zip(*hours.values(), strict=True)]
        known, ours = [value for value in single if value is not None], _hour_ratio(row, whole)
        spread = float(np.std(known, ddof=1)) if len(known) > 1 else None
        if ours is not None:
            yield number_cell(row, ours, bar=spread, comparable=comparable and len(done) == len(ADAPTIVE))


def _gpu_hours(result: Result) -> Hours:
    """GPU hours of one list by model, or ``total``, and application; a job's last round counts as a whole one."""
    jobs = result.jobs.select("pod_id", "round_gpu_hours", pl.col("workload").cast(pl.String))
    last, gpus = pl.col("start_s") == pl.col("start_s").max().over("pod_id"), pl.col("gpu_ids").list.len()
    before = pl.when(last).then(0.0).otherwise(gpus * (pl.col("end_s") - pl.col("start_s")) / HOUR_S)
    rest = (pl.col("round_gpu_hours") - before.sum().over("pod_id")) * gpus / (gpus * last).sum().over("pod_id")
    held = result.placements.join(jobs, on="pod_id").with_columns(gpu_h=pl.when(last).then(rest).otherwise(before))
    hours: dict[tuple[str, str], float] = {}
    for model, nodes in {**NODES, "total": range(11)}.items():
        mine = held.filter(pl.col("node_id").is_in(list(nodes))).group_by("workload", maintain_order=True)
        hours |= {(model, app): value for app, value in mine.agg(pl.sum("gpu_h")).iter_rows()}
    return hours


def _summed(lists: Sequence[Hours]) -> Hours:
    """GPU hours of all lists."""
    return {key: sum(hours.get(key, 0.0) for hours in lists) for key in set().union(*lists)}


def _hour_ratio(row: Mapping[str, Any], hours: Mapping[str, Hours]) -> float | None:
    """A published number's ratio from hours by policy; None if a policy has none of the application."""
    totals = [mine.get(("total", row["x"]), 0.0) for mine in hours.values()]
    return hours[row["series"]].get((row["panel"], row["x"]), 0.0) / min(totals) if all(totals) else None


def _fairness_cells(ratios: Mapping[str, pl.DataFrame]) -> Iterator[Cell]:
    """Finish-time fairness and completion times of the jobs of one list, beside those of all lists of the paper."""
    for row in published_numbers("sia").filter(figure=FAIRNESS).iter_rows(named=True):
        table, metric = ratios.get(row["series"]), row["metric"]
        if table is None:
            continue
        whole, (name, _, percentile) = fairness(table), metric.partition("_p")
        if percentile:
            column, unit = ("jct_s", HOUR_S) if name == "jct" else ("rho", 1.0)
            ours = float(np.quantile(table[column].drop_nans().to_numpy(), float(percentile) / 100)) / unit
        else:
            ours = whole["rho_max"] if metric == "ftf_rho_max" else 100 * whole["unfair_part"]
        yield number_cell(row, ours, comparable=False)


def _pipeline_cells(apps: str) -> list[Cell]:
    """Samples a second of pipelines side by side on so many GPUs, from their measured steps; no runs."""
    known = applications_from(apps)
    cells = []
    for row in published_numbers("sia").filter(figure=GPT).iter_rows(named=True):
        if GPT_APP in known:
            times, gpus = known[GPT_APP].on(GPT_MACHINES[row["series"]]), int(row["x"])
            step_s, network_s = times.seconds(packed(gpus, NODE_GPUS), MICRO_BATCHES)
            rate = gpus // times.stages * MICRO_BATCHES / (step_s + network_s)
            cells.append(number_cell(row, rate))
    return cells


def _curves(done: Done) -> pl.DataFrame:
    """Distribution of completion times, one line for each row."""
    lines = []
    for row, some in done.items():
        if row.policy not in EFFECTS and not row.series:
            jct_h = np.sort(np.concatenate([result.jobs["jct_s"].to_numpy() for result in some])) / HOUR_S
            part = 100 * np.arange(1, len(jct_h) + 1) / len(jct_h)
            step = max(1, len(jct_h) // 200)
            chart = f"{row.figure}, {row.case}: completion times"
            lines.append(points(chart, "completion time (h)", "jobs done (%)", row.policy, jct_h[::step], part[::step]))
    return pl.concat(lines or [points("", "", "", "", [], [])])
