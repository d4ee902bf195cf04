"""Reproductions of the Gavel paper: figure 1 from the rates, and completion times over the arrival rate of jobs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fastsim.engine.result import Result
from fastsim.experiments.many_runs import simulate_many
from fastsim.experiments.reproduce.published_numbers import number_cell, published_numbers
from fastsim.experiments.reproduce.reproduction import Cell, Reproduction, cell_table, points
from fastsim.performance.oracle import Oracle
from fastsim.policies.registry import ORIGINAL_NAMES, parse
from fastsim.scenario.scenario import Scenario

WINDOW, CLUSTER = "4000:5000", "gavel:36:36:36"
BAR, FIFO_BAR = 0.02, 0.04
"""Deviation of the original's last revision from its published figures, as a part of these."""
RECORDED = "golden/gavel/oracle/simulation_throughputs.json"
SEED_0 = ("seed 0, printed", "b, CDF of JCT")
"""Panels of seed 0; means and deviations of three seeds stand in the others."""
SEEDS, QUICK_SEEDS = (0, 1, 2), (0,)
PRICES = {"v100": 0.74, "p100": 0.43, "k80": 0.135}
"""Dollars an hour in the original's program."""


class LoadFigure(NamedTuple):
    """A figure over the load: whether jobs have several GPUs, policies in the original's names, jobs an hour."""

    multi_gpu: bool
    policies: tuple[str, ...]
    rates: tuple[float, ...]


SHOWN = ("gandiva", "max_min_fairness", "max_min_fairness_perf", "max_min_fairness_packed")
FTF = ("finish_time_fairness", "finish_time_fairness_perf")
LOADS = {
    "8": LoadFigure(False, ("allox", *SHOWN), (2.0, 4.0, 4.8)),
    "9": LoadFigure(True, SHOWN, (0.8, 1.6)),
    "10": LoadFigure(True, FTF, (0.8, 1.6)),
    "fifo-single (repository figure)": LoadFigure(False, ("fifo", "fifo_perf"), (2.0, 4.0, 4.8)),
    "fifo-multiple (repository figure)": LoadFigure(True, ("fifo", "fifo_perf"), (0.8, 1.6)),
    "ftf-single (repository figure)": LoadFigure(False, ("allox", *FTF), (2.0, 4.0)),
}
"""Figures over the load, at a few of their rates."""


class LoadPoint(NamedTuple):
    """One run: whether jobs have several GPUs, policy, jobs an hour, seed."""

    multi_gpu: bool
    policy: str
    rate_per_hour: float
    seed: int


class StaticPoint(NamedTuple):
    """One run of jobs that all arrive at 0: cluster, whether jobs have several GPUs, policy, jobs, seed."""

    cluster: str
    multi_gpu: bool
    policy: str
    jobs: int
    seed: int


class StaticFigure(NamedTuple):
    """A figure of makespans over the number of jobs: cluster, whether jobs have several GPUs, policies."""

    cluster: str
    multi_gpu: bool
    policies: tuple[str, ...]


DURATION = ("min_total_duration_perf", "min_total_duration_packed")
STATIC = {"makespan (static-multiple)": StaticFigure("gavel:36:36:36", True, ("fifo", "gandiva", *DURATION))} | {
    f"makespan {kind}_gpu_v100={v100}_p100={p100}_k80={k80} (repository figure)":
        StaticFigure(f"gavel:{v100}:{p100}:{k80}", kind == "multi", DURATION)
    for kind, v100, p100, k80 in (
        ("single", 36, 36, 36), ("multi", 64, 0, 0), ("single", 64, 0, 0), ("multi", 48, 32, 16),
        ("single", 48, 32, 16),
    )
}  # fmt: skip
"""Figures of makespans."""
STATIC_JOBS, PACKED_JOBS = (100, 200, 300), (100,)
"""Numbers of jobs that are run, and those of policies whose jobs share GPUs, which take long."""

Point = LoadPoint | StaticPoint
Done = Mapping[Point, Result]


def run_count(_data: Path | None, _paper: str, quick: bool, figures: Sequence[str] = ()) -> int:
    """Number of runs of a reproduction."""
    return len(_points(quick, figures))


def _points(quick: bool, figures: Sequence[str]) -> list[Point]:
    """The runs of the figures, each once."""
    every: list[Point] = [
        LoadPoint(load.multi_gpu, policy, rate, seed)
        for figure, load in LOADS.items() if not figures or figure in figures
        for rate in (load.rates[:1] if quick else load.rates) for policy in load.policies
        for seed in (QUICK_SEEDS if quick else SEEDS)
    ]  # fmt: skip
    every += [
        StaticPoint(static.cluster, static.multi_gpu, policy, jobs, seed)
        for figure, static in STATIC.items() if not figures or figure in figures
        for policy in static.policies for jobs in _job_counts(policy)[: 1 if quick else None]
        for seed in SEEDS
    ]  # fmt: skip
    return list(dict.fromkeys(every))


def _job_counts(policy: str) -> tuple[int, ...]:
    return PACKED_JOBS if policy.endswith("packed") else STATIC_JOBS


def gavel_reproduction(
    data: Path | None, quick: bool, workers: int, progress: Callable[[int], None] | None = None,
    figures: Sequence[str] = (),
) -> Reproduction:  # fmt: skip
    """Figure 1, the figures over the load, and makespans: seed 0 and means of three seeds beside published values."""
    began, runs, wanted = time.perf_counter(), _points(quick, figures), figures or ("1", *LOADS, *STATIC)
    rates = str(data / RECORDED) if data is not None and (data / RECORDED).exists() else "default"
    results = simulate_many([_scenario(point, rates) for point in runs], workers, progress)
    done = dict(zip(runs, results, strict=True))
    cells = list(_ratio_cells(rates)) if "1" in wanted else []
    cells += [one for figure in wanted if figure in LOADS for one in _load_cells(figure, done, quick)]
    cells += [one for figure in wanted if figure in STATIC for one in _static_cells(figure, done)]
    source = f"jobs drawn as Gavel's simulator draws them, {'recorded rates' if rates != 'default' else 'own rates'}"
    citation = str(getattr(parse("max_min_fairness"), "citation", ""))
    title = "Gavel: rates of GPU models, and completion time over load (OSDI 2020)"
    wall_s, cpu_s = time.perf_counter() - began, sum(result.timing["cpu_s"] for result in results)
    curves = _curves(done)
    return Reproduction("gavel", title, source, cell_table(cells), curves, len(runs), wall_s, citation, cpu_s)


def _scenario(point: Point, rates: str) -> Scenario:
    """The scenario of a run, with the original's behaviour (``compat``), as its figures are compared."""
    if isinstance(point, StaticPoint):
        options, cluster, window = f"jobs={point.jobs}&seed={point.seed}", point.cluster, None
    else:
        options = f"jobs={WINDOW.partition(':')[2]}&rate_per_hour={point.rate_per_hour}&seed={point.seed}"
        cluster, window = CLUSTER, WINDOW
    options += "&multi_gpu=true" if point.multi_gpu else ""
    options += "" if rates == "default" else f"&rates={rates}"
    return Scenario(
        cluster, f"synth:gavel?{options}", ORIGINAL_NAMES[point.policy], seed=point.seed, window=window, rates=rates,
        compat="gavel", record="summary",
    )  # fmt: skip


def _ratio_cells(rates: str) -> Iterator[Cell]:
    """Rates of single GPUs over those of the K80, for every batch size: the figure does not name the one it shows."""
    oracle = Oracle.default() if rates == "default" else Oracle.from_json(rates)
    table = _single_gpu_rates(oracle).select("workload", "gpu_model", "steps_per_s")
    steps = {(workload, model): rate for workload, model, rate in table.iter_rows()}
    for row in published_numbers("gavel").filter(figure="1").iter_rows(named=True):
        price = PRICES["k80"] / PRICES[row["series"]] if row["panel"] == "b" else 1.0
        for workload, model in steps:
            if model == row["series"] and workload.split(" (")[0] == row["x"] and steps.get((workload, "k80")):
                ratio = price * steps[workload, model] / steps[workload, "k80"]
                yield number_cell(row, ratio, case=f"{row['panel']}, {workload}", comparable=False)


def _single_gpu_rates(oracle: Oracle) -> pl.DataFrame:
    table = pl.DataFrame(pl.from_arrow(oracle.table())).with_columns(pl.col("workload", "gpu_model").cast(pl.String))
    alone = table.filter(pl.col("num_gpu") == 1, pl.col("colocated_workload").is_null())
    return alone.unique(["workload", "gpu_model"], keep="first", maintain_order=True)


def _load_cells(figure: str, done: Done, quick: bool) -> Iterator[Cell]:
    """Cells of a figure at the rates that were run; finish-time fairness of jobs is no result of a run."""
    multi_gpu = LOADS[figure].multi_gpu
    for row in published_numbers("gavel").filter(figure=figure).iter_rows(named=True):
        if not row["metric"].startswith("jct_") or row["panel"].startswith("EXPERIMENTS"):
            continue
        seeds = (0,) if row["panel"] in SEED_0 else SEEDS
        runs = [done.get(LoadPoint(multi_gpu, row["series"], float(row["x"]), seed)) for seed in seeds]
        results = [result for result in runs if result is not None]
        if len(results) == len(seeds):
            yield _load_cell(row, results)


def _load_cell(row: Mapping[str, Any], results: Sequence[Result]) -> Cell:
    part, what = FIFO_BAR if row["series"].startswith("fifo") else BAR, row["metric"].removeprefix("jct_")
    means_h = [result.summary["jct_mean_s"][0] / 3600 for result in results]
    if what == "mean_sd_over_seeds":  # each of the three means may be off by the same part
        return number_cell(row, float(np.std(means_h, ddof=1)), bar=part * float(np.mean(means_h)))
    if what == "mean":
        return number_cell(row, float(np.mean(means_h)), bar=part * row["value"])
    jct_h = results[0].jobs.filter(_in_window())["jct_s"].to_numpy() / 3600
    ours = float(np.quantile(jct_h, float(what.removeprefix("p")) / 100))
    return number_cell(row, ours, bar=part * row["value"])


def _static_cells(figure: str, done: Done) -> Iterator[Cell]:
    """Makespans of jobs that all arrive at 0: the mean of three seeds, and their deviation."""
    static = STATIC[figure]
    for row in published_numbers("gavel").filter(figure=figure).iter_rows(named=True):
        point = StaticPoint(static.cluster, static.multi_gpu, row["series"], int(row["x"]), 0)
        results = [done.get(point._replace(seed=seed)) for seed in SEEDS]
        spans_h = [result.summary["makespan_s"][0] / 3600 for result in results if result is not None]
        if len(spans_h) == len(SEEDS):
            part, mean_h = FIFO_BAR if row["series"].startswith("fifo") else BAR, float(np.mean(spans_h))
            spread = row["metric"].endswith("_sd_over_seeds")
            yield number_cell(row, float(np.std(spans_h, ddof=1)) if spread else mean_h, bar=part * mean_h)


def _in_window() -> pl.Expr:
    first, last = map(int, WINDOW.split(":"))
    return pl.col("pod_id").cast(pl.Int64).is_between(first, last, "left")


def _curves(done: Done) -> pl.DataFrame:
    """Mean completion time over the load, averaged over seeds."""
    lines: dict[tuple[bool, str], dict[float, list[float]]] = {}
    for point, result in done.items():
        if isinstance(point, StaticPoint):
            continue
        mine = lines.setdefault((point.multi_gpu, point.policy), {})
        mine.setdefault(point.rate_per_hour, []).append(result.summary["jct_mean_s"][0] / 3600)
    title = {False: "Completion time", True: "Completion time, jobs of several GPUs"}
    frames = [
        points(title[multi_gpu], "load (jobs/h)", "mean completion time (h)", policy, list(mine),
               [sum(hours) / len(hours) for hours in mine.values()])
        for (multi_gpu, policy), mine in lines.items()
    ]  # fmt: skip
    return pl.concat(frames or [points("", "", "", "", [], [])])
