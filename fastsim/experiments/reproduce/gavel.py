"""Reproductions of the Gavel paper: figures 1 and 11 from the rates, completion times over the load, and makespans."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fastsim.engine.result import Result
from fastsim.experiments.isolated_runs import ratios_to_isolated
from fastsim.experiments.many_runs import SharedRuns, sharing
from fastsim.experiments.reproduce.gavel_rate_figures import PRICES, entity_cells, ratio_cells
from fastsim.experiments.reproduce.published_numbers import number_cell, published_numbers
from fastsim.experiments.reproduce.reproduction import Cell, Measure, Reproduction, cell, cell_table, points
from fastsim.policies.registry import ORIGINAL_NAMES, parse
from fastsim.scenario.prices import Prices
from fastsim.scenario.scenario import Scenario

WINDOW, CLUSTER = "4000:5000", "gavel:36:36:36"
BAR, FIFO_BAR = 0.02, 0.04
"""Deviation of the original's last revision from its published figures, as a part of these."""
PRINTED_TABLE, LAST_TABLE, EARLY_TABLE = "2020-05", "2020-08", "2019-09"
"""Tables of types from which jobs are drawn: that of the runs whose values the paper's notebooks print, the last
revision's, of which are the sweep over clusters and the sample of the instructions, and the first, of which are the
makespans on other clusters."""
STATIC_ROUND_S = 1920.0
"""Rounds of the printed runs whose jobs all arrive at 0: the default of their script in May 2020."""
LAST = (360.0, LAST_TABLE)
"""Rounds and table of the last revision."""
RECORDED = "golden/gavel/oracle/simulation_throughputs.json"
EARLY_RATES = "golden/gavel/oracle/oracle_throughputs.json"
"""Rates of September 2019, without which the figures of that time have other jobs and are not compared."""
SEED_0 = ("seed 0, printed", "b, CDF of JCT", "b, CDF of finish-time fairness", "b, printed mean")
"""Panels of seed 0; means and deviations of three seeds stand in the others."""
SEEDS, QUICK_SEEDS, EARLY_SEEDS = (0, 1, 2), (0,), (0, 1, 2, 3, 4)


class LoadFigure(NamedTuple):
    """A figure over the load, or a panel of one: whether jobs have several GPUs, series of the published numbers, jobs
    an hour, cluster (the usual one without a text), whether a fifth of the jobs has the weight 5, and table of types.
    """

    multi_gpu: bool
    policies: tuple[str, ...]
    rates: tuple[float, ...]
    cluster: str = ""
    priorities: bool = False
    table: str = PRINTED_TABLE


SETTINGS: dict[str, dict[str, Any]] = {
    **{f"round {seconds} s": {"round_s": float(seconds)} for seconds in (360, 720, 1440, 2880)},
    "ideal fluid execution": {"ideal": True}, "estimated throughputs": {"profiling": 0.2, "references": 16},
}  # fmt: skip
"""Settings of a run by the text in brackets behind the policy's name in a series."""
SHOWN = ("gandiva", "max_min_fairness", "max_min_fairness_perf", "max_min_fairness_packed")
FIFO = ("fifo", "fifo_perf", "fifo_packed")
FTF = ("finish_time_fairness", "finish_time_fairness_perf")
FAIR = "max_min_fairness_perf"
LENGTHS = tuple(f"{FAIR} [{name}]" for name, options in SETTINGS.items() if "round_s" in options)
ABSTRACT, SWEEP = "abstract", "cluster sweep (repository figure)"
LOADS = {
    "8": (LoadFigure(False, ("allox", *SHOWN), (2.0, 4.0, 4.8)),),
    "9": (LoadFigure(True, SHOWN, (0.8, 1.6)),),
    "10": (LoadFigure(True, FTF, (0.8, 1.6)),),
    "13": (
        LoadFigure(False, (FAIR, f"{FAIR} [ideal fluid execution]", *LENGTHS), (2.0, 4.0)),
        LoadFigure(True, (FAIR, f"{FAIR} [ideal fluid execution]"), (0.8, 1.6)),
    ),
    "fifo-single (repository figure)": (LoadFigure(False, FIFO, (2.0, 4.0, 4.8)),),
    "fifo-multiple (repository figure)": (LoadFigure(True, FIFO, (0.8, 1.6)),),
    "ftf-single (repository figure)": (LoadFigure(False, ("allox", *FTF), (2.0, 4.0)),),
    "priorities-multiple (repository figure)": (
        LoadFigure(True, tuple(f"max_min_fairness_water_filling{end}" for end in ("", "_perf")), (0.8, 1.6),
                   priorities=True),
    ),
    "throughput estimation": (
        LoadFigure(False, (FAIR, "max_min_fairness_packed", "max_min_fairness_packed [estimated throughputs]"),
                   (0.2682, 0.4864), "gavel:4:4:4"),
    ),
    ABSTRACT: (LoadFigure(False, ("max_min_fairness", FAIR), (5.6,)),),
    SWEEP: tuple(
        LoadFigure(False, ("max_min_fairness", FAIR), (2.0,), f"gavel:{v100}:0:{100 - v100}", table=LAST_TABLE)
        for v100 in (100, 50, 10)
    ),
}  # fmt: skip
"""Figures over the load, and those of their rates that are usually run."""
LONG = ("13", "priorities-multiple (repository figure)", "throughput estimation", ABSTRACT, SWEEP)
"""Figures whose quick forms take half a minute."""
SAMPLE = "EXPERIMENTS.md sample run, seed "
"""Panels of the sample in the original's instructions, by their seed."""
FAIRNESS, ISOLATED = ("8", "9", "10", "ftf-single (repository figure)"), "isolated"
"""Figures of finish-time fairness, and the policy under which jobs take the times that theirs are divided by."""
WEIGHTS = {"low priority jobs": "_weight_1", "high priority jobs": "_weight_5"}
"""Suffix of the name of the mean over the jobs of a panel, added to that of the mean of all."""
SWEPT = ("jct_reduction", "jct_reduction_up_to")
"""Metrics of the mean of a policy that is not aware of GPU models over that of the one that is."""


class LoadPoint(NamedTuple):
    """One run: whether jobs have several GPUs, series, jobs an hour, seed, and the rest of :class:`LoadFigure`."""

    multi_gpu: bool
    policy: str
    rate_per_hour: float
    seed: int
    cluster: str = ""
    priorities: bool = False
    table: str = PRINTED_TABLE


class StaticPoint(NamedTuple):
    """One run of jobs that all arrive at 0: cluster, whether jobs have several GPUs, policy, jobs, seed, seconds of a
    round, table of types."""

    cluster: str
    multi_gpu: bool
    policy: str
    jobs: int
    seed: int
    round_s: float = STATIC_ROUND_S
    table: str = PRINTED_TABLE


class StaticFigure(NamedTuple):
    """A figure of makespans over the number of jobs: cluster, whether jobs have several GPUs, policies, most jobs,
    table of types, seeds, and the usual most jobs under programs with pairs, which take long."""

    cluster: str
    multi_gpu: bool
    policies: tuple[str, ...]
    most_jobs: int
    table: str = PRINTED_TABLE
    seeds: tuple[int, ...] = SEEDS
    most_packed: int = 200


DURATION = ("min_total_duration_perf", "min_total_duration_packed")
STATIC = {"makespan (static-multiple)": StaticFigure("gavel:36:36:36", True, ("fifo", "gandiva", *DURATION), 700)} | {
    f"makespan {kind}_gpu_v100={v100}_p100={p100}_k80={k80} (repository figure)":
        StaticFigure(
            f"gavel:{v100}:{p100}:{k80}", kind == "multi", (FIFO[2], *DURATION), 500, EARLY_TABLE, EARLY_SEEDS, 100
        )
    for kind, v100, p100, k80 in (
        ("single", 36, 36, 36), ("multi", 64, 0, 0), ("single", 64, 0, 0), ("multi", 48, 32, 16),
        ("single", 48, 32, 16),
    )
}  # fmt: skip
"""Figures of makespans."""
SWEPT_JOBS, SWEPT_PARTS, UNAWARE = 500, tuple(range(100, 0, -10)), ("min_total_duration", "min_total_duration_perf")
"""Jobs of the makespans over the per cent of V100s among 100 GPUs, and the policies that are compared."""
COST, COST_JOBS = "cost and SLO policies", 100
"""Figure of policies that weigh what GPUs cost, of which no numbers are published, and its jobs."""
COST_POLICIES = ("max_sum_throughput_perf", *(
    f"max_sum_throughput_normalized_by_cost_perf{end}" for end in ("", "_SLOs")
))  # fmt: skip
COST_MEASURES = {
    "cost": Measure(COST, "cost of all jobs", "$", 0.0),
    "slo_violations": Measure(COST, "jobs past their deadlines", "", 0.0),
    "makespan_s": Measure(COST, "makespan", "s", 0.0),
}  # fmt: skip
"""Quantities by column of the summary."""
STATIC_STEP = 100
"""Step of the numbers of jobs that are run."""

Point = LoadPoint | StaticPoint
Done = Mapping[Point, Result]


def run_count(
    _data: Path | None, _paper: str, quick: bool, figures: Sequence[str] = (), whole: bool = False
) -> int:  # fmt: skip
    """Number of runs of a reproduction."""
    return len(_points(quick, figures, whole))


def _wanted(quick: bool, figures: Sequence[str]) -> tuple[str, ...]:
    """These figures, or all; ``quick`` has the long ones if they are named only."""
    return tuple(figures) or tuple(name for name in ("1", "11", *LOADS, *STATIC, COST) if not quick or name not in LONG)


def _points(quick: bool, figures: Sequence[str], whole: bool = False) -> list[Point]:
    """The runs of the figures, each once."""
    return list(dict.fromkeys(p for figure in _wanted(quick, figures) for p in _points_of(figure, quick, whole)))


def _points_of(figure: str, quick: bool, whole: bool) -> list[Point]:
    """The runs of a figure."""
    seeds = QUICK_SEEDS if quick else SEEDS
    points: list[Point] = []
    for load in LOADS.get(figure, ()):
        for policy, rate in _loads(figure, load, quick, whole):
            points += [LoadPoint(load.multi_gpu, policy, rate, seed, *load[3:]) for seed in seeds]
            points += [LoadPoint(load.multi_gpu, ISOLATED, rate, 0)] if figure in FAIRNESS else []
    if figure == "8" and not quick:
        points += [_sampled(row) for row in _numbers("8").iter_rows(named=True) if row["panel"].startswith(SAMPLE)]
    if figure in STATIC:
        static = STATIC[figure]
        points += [
            StaticPoint(static.cluster, static.multi_gpu, policy, jobs, seed, table=static.table)
            for policy in static.policies for jobs in _job_counts(static, policy, whole)[: 1 if quick else None]
            for seed in static.seeds
        ]  # fmt: skip
    if figure == ABSTRACT:
        points += [_most(policy, seed) for policy in UNAWARE for seed in SEEDS]
    if figure == COST:
        points += [_priced(policy, seed) for policy in COST_POLICIES for seed in seeds]
    if figure == SWEEP:
        parts = SWEPT_PARTS[5:6] if quick else SWEPT_PARTS
        points += [_swept(part, policy, seed) for part in parts for policy in UNAWARE for seed in seeds]
    return points


def _loads(figure: str, load: LoadFigure, quick: bool, whole: bool) -> list[tuple[str, float]]:
    """Policies and jobs an hour that are run."""
    if not whole or figure in (ABSTRACT, SWEEP):
        return [(policy, rate) for rate in (load.rates[:1] if quick else load.rates) for policy in load.policies]
    rows = [row for row in _numbers(figure).iter_rows(named=True) if row["series"] in load.policies and row["x"]]
    shown = [row for row in rows if _shows(load, row) and not row["panel"].startswith(SAMPLE)]
    return list(dict.fromkeys((row["series"], float(row["x"])) for row in shown))


def _job_counts(static: StaticFigure, policy: str, whole: bool) -> range:
    most = static.most_packed if policy == DURATION[1] and not whole else static.most_jobs
    return range(STATIC_STEP, most + 1, STATIC_STEP)


def gavel_reproduction(
    data: Path | None, quick: bool, workers: int, progress: Callable[[int], None] | None = None,
    figures: Sequence[str] = (), shared: SharedRuns | None = None, whole: bool = False,
) -> Reproduction:  # fmt: skip
    """Figure 1, the figures over the load, and makespans: seed 0 and means of three seeds beside published values."""
    began, runs, wanted = time.perf_counter(), _points(quick, figures, whole), _wanted(quick, figures)
    rates, early_rates = _present(data, RECORDED) or "default", _present(data, EARLY_RATES)
    with sharing(shared) as made:
        order = _longest_first(runs)
        results = made.results([_scenario(point, rates, early_rates) for point in order], workers, progress)
    result_of = dict(zip(order, results, strict=True))
    done = {point: result_of[point] for point in runs}
    cells = list(ratio_cells(rates)) if "1" in wanted else []
    cells += list(entity_cells(rates)) if "11" in wanted else []
    for figure in [figure for figure in wanted if figure in LOADS]:
        own = {point: done[point] for point in _points_of(figure, quick, whole)}
        cells += _load_cells(figure, own, quick)
    cells += _swept_cells(done) if SWEEP in wanted else []
    cells += _priced_cells(done) if COST in wanted else []
    cells += _most_cells(done) if ABSTRACT in wanted else []
    cells += [one for figure in wanted if figure in STATIC for one in _static_cells(figure, done, early_rates)]
    source = f"jobs drawn as Gavel's simulator draws them, {'recorded rates' if rates != 'default' else 'own rates'}"
    citation = str(getattr(parse("max_min_fairness"), "citation", ""))
    title = "Gavel: rates of GPU models, and completion time over load (OSDI 2020)"
    wall_s, cpu_s = time.perf_counter() - began, sum(result.timing["cpu_s"] for result in results)
    curves = _curves(done)
    return Reproduction("gavel", title, source, cell_table(cells), curves, len(runs), wall_s, citation, cpu_s)


def _present(data: Path | None, name: str) -> str:
    """Path of a file in the folder of published inputs, or no text."""
    return str(data / name) if data is not None and (data / name).exists() else ""


def _longest_first(runs: Sequence[Point]) -> list[Point]:
    """The highest loads first, then most jobs: workers that begin with the longest runs end together."""
    return [point for kind in (LoadPoint, StaticPoint) for point in runs[::-1] if isinstance(point, kind)]


def _scenario(point: Point, rates: str, early_rates: str = "") -> Scenario:
    """The scenario of a run, with the original's behaviour (``compat``), as its figures are compared."""
    if point.table == EARLY_TABLE and early_rates:
        return _early_scenario(point, early_rates)
    if point.table == EARLY_TABLE:
        point = point._replace(table=PRINTED_TABLE)
    if isinstance(point, StaticPoint):
        options, cluster, window = f"jobs={point.jobs}&seed={point.seed}", point.cluster, None
        more: dict[str, Any] = {"round_s": point.round_s}
    else:
        options = f"jobs={WINDOW.partition(':')[2]}&rate_per_hour={point.rate_per_hour}&seed={point.seed}"
        options += "&priorities=true" if point.priorities else ""
        cluster, window, more = point.cluster or CLUSTER, WINDOW, {}
    options += f"&table={point.table}" + ("&multi_gpu=true" if point.multi_gpu else "")
    priced = point.policy in COST_POLICIES
    options += "&slos=true" if priced else ""
    options += "" if rates == "default" else f"&rates={rates}"
    series, _, setting = point.policy.removesuffix("]").partition(" [")
    policy = ORIGINAL_NAMES[series]
    more |= SETTINGS.get(setting, {}) | ({"prices": Prices.fixed(PRICES)} if priced else {})
    return Scenario(
        cluster, f"synth:gavel?{options}", policy, seed=point.seed, window=window, rates=rates,
        compat="gavel" if point.table == LAST_TABLE else f"gavel-{point.table}", record="summary", **more,
    )  # fmt: skip


def _early_scenario(point: Any, rates: str) -> Scenario:
    """The scenario of September 2019: one job more than named, and allocations as soon as they are wanted."""
    options = f"jobs={point.jobs + 1}&seed={point.seed}&table={point.table}&rates={rates}"
    options += "&multi_gpu=true" if point.multi_gpu else ""
    return Scenario(
        point.cluster, f"synth:gavel?{options}", ORIGINAL_NAMES[point.policy], seed=point.seed, rates=rates,
        round_s=point.round_s, realloc_s=0.0, compat=f"gavel-{PRINTED_TABLE}", record="timeline",
    )  # fmt: skip


def _numbers(figure: str) -> pl.DataFrame:
    return published_numbers("gavel").filter(figure=figure)


def _load_cells(figure: str, done: Done, quick: bool) -> Iterator[Cell]:
    """Cells of a figure at the rates that were run. ``quick`` has one seed, which means of three are not compared
    with."""
    seeds_of = {True: (0,), False: QUICK_SEEDS if quick else SEEDS}
    for row in _numbers(figure).iter_rows(named=True):
        fairness = "rho" in row["metric"]
        if row["panel"].startswith(SAMPLE):
            yield from _sample_cells(row, done)
            continue
        if not (fairness or row["metric"].startswith("jct_")):
            continue
        of_one = row["panel"] in SEED_0
        if len(seeds_of[of_one]) < 2 and row["metric"].endswith("_sd_over_seeds"):
            continue
        for load in LOADS[figure]:
            if _shows(load, row):
                mine = _runs_of(load, row, done, seeds_of[of_one])
                if mine and fairness:
                    yield _fairness_cell(row, mine[0][0], done[LoadPoint(load.multi_gpu, ISOLATED, float(row["x"]), 0)])
                elif mine:
                    # The abstract does not name the load of its largest reduction.
                    yield _load_cell(row, mine, comparable=(of_one or not quick) and figure != ABSTRACT)


def _shows(load: LoadFigure, row: Mapping[str, Any]) -> bool:
    """Whether the number's panel is of these jobs on this cluster."""
    if row["figure"] == SWEEP:
        return f"gavel:{round(100 * float(row['panel'].rpartition('= ')[2]))}:" in load.cluster
    return row["figure"] != "13" or ("multi-GPU" in row["panel"]) == load.multi_gpu


def _runs_of(load: LoadFigure, row: Mapping[str, Any], done: Done, seeds: Sequence[int]) -> list[list[Result]]:
    """Runs of a number, a list a series; none if one of them is missing."""
    series = load.policies if row["metric"] in SWEPT else (row["series"],)
    rate = float(row["x"] or load.rates[0])
    runs = [[done.get(LoadPoint(load.multi_gpu, name, rate, seed, *load[3:])) for seed in seeds] for name in series]
    complete = [[one for one in some if one is not None] for some in runs]
    return complete if all(len(some) == len(seeds) for some in complete) else []


def _load_cell(row: Mapping[str, Any], runs: Sequence[Sequence[Result]], comparable: bool) -> Cell:
    part, what = FIFO_BAR if row["series"].startswith("fifo") else BAR, row["metric"].removeprefix("jct_")
    column = f"jct_mean{WEIGHTS.get(row['panel'].partition(',')[0], '')}_s"
    means_h = [[result.summary[column][0] / 3600 for result in some] for some in runs]
    mean_h, options = float(np.mean(means_h[0])), {"bar": part * row["value"], "comparable": comparable}
    if row["metric"] in SWEPT:
        return number_cell(row, mean_h / float(np.mean(means_h[1])), **options)
    if what == "mean_sd_over_seeds":  # each of the three means may be off by the same part
        return number_cell(row, float(np.std(means_h[0], ddof=1)), bar=part * mean_h)
    if what == "mean":
        return number_cell(row, mean_h, **options)
    jct_h = runs[0][0].jobs.filter(_in_window())["jct_s"].to_numpy() / 3600
    return number_cell(row, float(np.quantile(jct_h, float(what.removeprefix("p")) / 100)), **options)


def _fairness_cell(row: Mapping[str, Any], result: Result, isolated: Result) -> Cell:
    """Finish-time fairness: completion times of the window's jobs over those of the same jobs under ``isolated``.

    Jobs that one of the runs gave up are left out. Of the part of unfair jobs, the bar is what it may be off if each
    ratio may be off by ``BAR``.
    """
    ratios = ratios_to_isolated(result.jobs.filter(_in_window()), isolated.jobs)["rho"].drop_nulls()
    rho, what = ratios.to_numpy(), row["metric"].removeprefix("ftf_rho_")
    if what == "fraction_rho_above_1":
        most, ours, least = (float(np.mean(rho > limit)) for limit in (1 - BAR, 1.0, 1 + BAR))
        return number_cell(row, ours, bar=max(most - ours, ours - least))
    ours = float(np.mean(rho) if what == "mean" else np.quantile(rho, float(what.removeprefix("p")) / 100))
    return number_cell(row, ours, bar=BAR * row["value"])


def _sampled(row: Mapping[str, Any]) -> LoadPoint:
    seed = int(row["panel"].removeprefix(SAMPLE))
    return LoadPoint(False, row["series"], float(row["x"]), seed, table=LAST_TABLE)


def _sample_cells(row: Mapping[str, Any], done: Done) -> Iterator[Cell]:
    """The cell of a number of the sample, if its run was made."""
    result = done.get(_sampled(row))
    if result is not None:
        jct_mean_s, utilization_pct = result.summary.select("jct_mean_s", "utilization_pct").row(0)
        yield number_cell(row, jct_mean_s if row["metric"] == "jct_mean" else utilization_pct / 100, exact=True)


def _static_cells(figure: str, done: Done, early_rates: str) -> Iterator[Cell]:
    """Makespans of jobs that all arrive at 0: the mean of the seeds, and their deviation."""
    static = STATIC[figure]
    early = static.table == EARLY_TABLE
    span_s = _early_span_s if early and early_rates else _span_s
    for row in _numbers(figure).iter_rows(named=True):
        point = StaticPoint(static.cluster, static.multi_gpu, row["series"], int(row["x"]), 0, table=static.table)
        results = [done.get(point._replace(seed=seed)) for seed in static.seeds]
        spans_h = [span_s(result) / 3600 for result in results if result is not None]
        if len(spans_h) == len(static.seeds):
            part, mean_h = FIFO_BAR if row["series"].startswith("fifo") else BAR, float(np.mean(spans_h))
            ours = float(np.std(spans_h, ddof=1)) if row["metric"].endswith("_sd_over_seeds") else mean_h
            yield number_cell(row, ours, bar=part * mean_h, comparable=not early or bool(early_rates))


def _span_s(result: Result) -> float:
    return float(result.summary["makespan_s"][0])


def _early_span_s(result: Result) -> float:
    """End of the round in which all jobs but one are done: runs of September 2019 drew one more than they awaited."""
    done_s = result.jobs["end_s"].sort()[-2]
    rounds = result.frames["timeline"].filter(pl.col("event") == "sample", pl.col("t_s") >= done_s)
    return float(rounds["t_s"].min())  # type: ignore[arg-type]


def _swept(part: int, policy: str, seed: int) -> StaticPoint:
    """The run of jobs that all arrive at 0 on 100 GPUs, so many of them V100s, the others K80s."""
    return StaticPoint(f"gavel:{part}:0:{100 - part}", True, policy, SWEPT_JOBS, seed, *LAST)


def _most(policy: str, seed: int) -> StaticPoint:
    """A run of the abstract's makespans: as many jobs on the cluster of the figures."""
    return StaticPoint(CLUSTER, True, policy, SWEPT_JOBS, seed)


def _most_cells(done: Done) -> Iterator[Cell]:
    """The largest ratio of makespans over the seeds, beside that of the abstract, which names no jobs."""
    for row in _numbers(ABSTRACT).filter(metric="makespan_reduction_up_to").iter_rows(named=True):
        spans = [[done[_most(policy, seed)].summary["makespan_s"][0] for policy in UNAWARE] for seed in SEEDS]
        yield number_cell(row, max(unaware / aware for unaware, aware in spans), comparable=False)


def _priced(policy: str, seed: int) -> StaticPoint:
    """A run of jobs with deadlines that all arrive at 0, on GPUs that cost something."""
    return StaticPoint(CLUSTER, False, policy, COST_JOBS, seed, *LAST)


def _priced_cells(done: Done) -> Iterator[Cell]:
    """Cost, deadlines and makespan of each run."""
    for policy in COST_POLICIES:
        for seed in SEEDS:
            result = done.get(_priced(policy, seed))
            if result is not None:
                for column, measure in COST_MEASURES.items():
                    yield cell(measure, f"seed {seed}", policy, None, float(result.summary[column][0]))


def _swept_cells(done: Done) -> Iterator[Cell]:
    """Makespan under the policy that is not aware of GPU models over that of the one that is, seed by seed."""
    for row in _numbers(SWEEP).filter(metric="makespan_reduction").iter_rows(named=True):
        part, seed = round(100 * float(row["x"])), int(row["panel"].rpartition(" ")[2])
        unaware, aware = (done.get(_swept(part, policy, seed)) for policy in UNAWARE)
        if unaware is not None and aware is not None:
            ours = float(unaware.summary["makespan_s"][0] / aware.summary["makespan_s"][0])
            yield number_cell(row, ours, bar=BAR * row["value"])


def _in_window() -> pl.Expr:
    first, last = map(int, WINDOW.split(":"))
    return pl.col("pod_id").cast(pl.Int64).is_between(first, last, "left")


def _curves(done: Done) -> pl.DataFrame:
    """Mean completion time over the load, averaged over seeds."""
    lines: dict[tuple[bool, str], dict[float, list[float]]] = {}
    for point, result in done.items():
        if isinstance(point, StaticPoint) or point.cluster or point.priorities or point.policy == ISOLATED:
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
