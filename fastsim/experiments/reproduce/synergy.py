"""Reproduction of the Synergy paper's experiments: tuned shares of CPUs and memory beside fair ones.

All jobs are drawn from seeds as Synergy's simulator draws them, so the run of the authors' check value has the same
jobs as the recorded one; their own sample of durations is not public. Figures over the load, over the CPUs of a server
and over the mix of jobs have no published numbers. A folder with recorded runs adds one cell for each of them, one
with Philly's log its replay.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.published_specs import synergy_parts
from fastsim.cluster.server import GB_MIB
from fastsim.engine.result import Result
from fastsim.errors import InputError
from fastsim.experiments.many_runs import simulate_many
from fastsim.experiments.reproduce.published_numbers import published_value, recorded_numbers
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
from fastsim.performance.sensitivity import Sensitivity
from fastsim.policies.registry import parse
from fastsim.scenario.scenario import Scenario

RECORDED = Path("golden/synergy")
HOUR_S, ROUND_S = 3600.0, 300.0
CHECK_WINDOW, WINDOW = "4000:5000", "1000:1500"
"""Ids of the measured jobs: for the authors' check value, and for a point of a curve."""
CHECK_SEED, SEEDS = 42, (42, 0, 1, 2, 3, 4)
SPLIT = "20:70:10"
RATE = 9.0
"""Jobs an hour where a figure has one load."""
CHECK = "8 (one point)"
"""Figure of the run whose values the authors print."""
JCT = Measure(CHECK, "mean completion time", "h", 0.01)
CHECKED = {
    "jct_mean_h": JCT, "jct_p99_h": Measure(CHECK, "99th percentile", "h", 0.1),
    "jct_p99_9_h": Measure(CHECK, "99.9th percentile", "h", 0.1),
    "speedup": Measure("abstract", "speedup of tuned over fair shares", "x", 0.01),
}  # fmt: skip
PRINTED = {
    "jct_mean_h": "jct_mean", "jct_p99_h": "jct_p99", "jct_p99_9_h": "jct_p99.9", "speedup": "jct_mean_reduction_up_to",
}  # fmt: skip
"""Metrics of the published numbers; all are of ``fifo + tune``."""
MECHANISMS = ("fair", "tune")
ORDERS = {"FIFO": "fifo", "SRTF": "srtf", "LAS": "las", "FTF": "ftf", "DRF": "drf", "TETRIS": "tetris"}
"""Our names of orders by the original's."""
SERVERS = {"default_cluster": 16, "cluster_4": 16, "cluster_5": 16, "cluster_6": 16, "deployment": 4, "two": 2}
"""Servers of the original's cluster files."""
RATIOS = (3, 4, 5, 6)
"""CPUs for each GPU of the servers that models were measured on."""
SENSITIVITY, PROFILING = "sensitivity", "profiling cost"
"""Figures of the models' measurements, which need no runs."""
CPUS = {"cluster_4": 32, "cluster_5": 40, "cluster_6": 48}
"""CPUs of a server where it is not 24."""
X_TITLES = {"CPU split": "CPUs for each GPU", "memory split": "GB for each server"}
"""Axes of curves that are not over the load."""
FAMILIES = {
    "replay": "deployment traces", "opt": "against the optimum", "refsize": CHECK, "single": "8", "multi": "1, 7",
}  # fmt: skip
"""Figures of recorded runs by the first word of their names; other runs belong to no figure."""
REPLAY, PHILLY_SERVERS = "6", 64
"""Figure of the replay of Philly's log, and servers of its cluster."""
LOGS = ("cluster_job_log.json", "cluster_job_log.json.gz", "data/philly/native/philly.csv.gz")
"""Places of Philly's log, or of its reduced form, in a folder."""
SOLVED_BAR = 0.03
"""Relative deviation allowed for ``opt``, where many choices have the same best sum."""


class FigurePoint(NamedTuple):
    """One run: figure, name in it, policy, position on the axis, and scenario."""

    figure: str
    case: str
    policy: str
    at: float | None
    run: Scenario
    original_h: float | None = None
    """Mean completion time of the original's run, hours."""


def synergy_reproduction(
    data: Path | None, quick: bool, workers: int, progress: Callable[[int], None] | None = None,
    policies: Sequence[str] = (), figures: Sequence[str] = (),
) -> Reproduction:  # fmt: skip
    """The authors' check value, curves of figures 1, 7, 8, 9 and 12, and the recorded runs of ``data``."""
    began, selected = time.perf_counter(), _chosen(_points(data, quick, figures), policies, figures)
    results = simulate_many([point.run for point in selected], workers, progress)
    outcomes = list(zip(selected, results, strict=True))
    cells = _check_cells(outcomes) + [_cell(point, result) for point, result in outcomes if point.figure != CHECK]
    cells += _model_cells() if not quick or figures else []
    cells = [one for one in cells if not figures or _of_figure(one.figure, figures)]
    recorded = sum(point.original_h is not None for point in selected)
    source = "jobs drawn as Synergy's simulator draws them, with its rates"
    source += f"; {recorded} recorded runs" if recorded else ""
    title = "Synergy: CPUs and memory fitted to jobs (OSDI 2022)"
    citation = str(getattr(parse("fifo + tune"), "citation", ""))
    wall_s, cpu_s = time.perf_counter() - began, sum(result.timing["cpu_s"] for result in results)
    return Reproduction(
        name="synergy",
        title=title,
        source=source,
        cells=cell_table(cells),
        curves=_curves(outcomes),
        runs=len(selected),
        wall_s=wall_s,
        citation=citation,
        cpu_s=cpu_s,
    )


def run_count(
    data: Path | None, _paper: str, quick: bool, policies: Sequence[str] = (), figures: Sequence[str] = ()
) -> int:
    """Number of runs of a reproduction."""
    return len(_chosen(_points(data, quick, figures), policies, figures))


def _of_figure(figure: str, figures: Sequence[str]) -> bool:
    """Whether a cell's or run's figure is one of these; recorded runs belong to the figure that they are named after,
    and the abstract needs the runs of the check value."""
    return figure.removesuffix(", recorded") in figures


def _chosen(points_of_paper: list[FigurePoint], policies: Sequence[str], figures: Sequence[str]) -> list[FigurePoint]:
    """Points of these policies and figures; policies without a figure run the jobs of the check value."""
    needed = (*figures, CHECK) if "abstract" in figures else figures
    points_of_paper = [point for point in points_of_paper if not figures or _of_figure(point.figure, needed)]
    seeds = dict.fromkeys(point.case for point in points_of_paper if point.figure == CHECK)
    more = [
        FigurePoint(CHECK, case, text, RATE, _scenario(text, RATE, int(case.split()[1]), window=CHECK_WINDOW))
        for text in beyond(points_of_paper, policies) for case in seeds
    ]  # fmt: skip
    return of_policies(points_of_paper, policies) + more


def _points(data: Path | None, quick: bool, figures: Sequence[str] = ()) -> list[FigurePoint]:
    """All runs; ``quick`` has those of the check value unless figures are named."""
    seeds = (CHECK_SEED,) if quick else SEEDS
    checks = [
        FigurePoint(CHECK, f"seed {seed}", f"fifo + {mechanism}", RATE,
              _scenario(f"fifo + {mechanism}", RATE, seed, window=CHECK_WINDOW))
        for seed in seeds for mechanism in MECHANISMS
    ]  # fmt: skip
    return [
        *checks,
        *([] if quick and not figures else [*_figures(), *_replays(data, REPLAY in figures)]),
        *_recorded(data, ("replay",) if quick else tuple(FAMILIES)),
    ]


def _scenario(
    policy: str, rate: float, seed: int = CHECK_SEED, *, window: str = WINDOW, split: str = SPLIT,
    ratio: int = 3, multi: bool = False,
) -> Scenario:  # fmt: skip
    """Endless jobs on 128 GPUs; ``ratio`` CPUs for each of them. Without a log, jobs have one to eight GPUs."""
    jobs = f"synth:synergy?jobs=9000&rate_per_hour={rate:g}&split={split}&seed={seed}&cpus_per_gpu={ratio}"
    return Scenario(
        f"synergy:16?cpus={8 * ratio}", jobs if multi else f"{jobs}&log=10000", policy, window=window,
        round_s=ROUND_S, rates="synergy", compat="synergy", record="summary",
    )  # fmt: skip


def _figures() -> list[FigurePoint]:
    """The curves that have no published numbers."""
    curve_points = [
        _point("8", order, mechanism, rate, _scenario(f"{order} + {mechanism}", rate))
        for order in ("fifo", "srtf", "las") for rate in (5.0, 7.0, 8.0, 9.0) for mechanism in MECHANISMS
    ]  # fmt: skip
    curve_points += [
        _point("1, 7", order, mechanism, rate, _scenario(f"{order} + {mechanism}", rate, multi=True))
        for order in ("srtf", "las") for rate in (2.5, 3.5, 4.5) for mechanism in MECHANISMS
    ]  # fmt: skip
    curve_points += [
        _point("9", f"fifo, {split}", mechanism, RATE, _scenario(f"fifo + {mechanism}", RATE, split=split))
        for split in (SPLIT, "33:33:33", "50:0:50") for mechanism in MECHANISMS
    ]  # fmt: skip
    curve_points += [
        _point("CPU split", "fifo", mechanism, ratio, _scenario(f"fifo + {mechanism}", RATE, ratio=ratio))
        for ratio in RATIOS for mechanism in MECHANISMS
    ]  # fmt: skip
    curve_points += [
        _point("memory split", "fifo", mechanism, gb,
               replace(_scenario(f"fifo + {mechanism}", RATE), cluster=_servers(gb)))
        for gb in (250, 375, 500, 625) for mechanism in MECHANISMS
    ]  # fmt: skip
    curve_points += [
        _point("12", order, mechanism, RATE, _scenario(f"{order} + {mechanism}", RATE))
        for order in ("drf", "tetris") for mechanism in ("greedy", "tune")
    ]  # fmt: skip
    return curve_points


def _replays(data: Path | None, named: bool) -> list[FigurePoint]:
    """Jobs at the times and for the durations of Philly's log; none without a log, an error if the figure is named."""
    path = next((path for name in LOGS if data is not None and (path := data / name).is_file()), None)
    if path is None:
        if named:
            raise InputError("--data" if data is None else str(data), "no log of Philly", f"one of {', '.join(LOGS)}")
        return []
    jobs = f"synth:synergy?log={path}&arrivals=log&durations=log&multi_gpu=true&split={SPLIT}&seed={CHECK_SEED}"
    run = replace(_scenario("fifo", RATE, window=CHECK_WINDOW), cluster=f"synergy:{PHILLY_SERVERS}", workload=jobs)
    return [
        FigurePoint(REPLAY, order, policy := f"{order} + {mechanism}", None, replace(run, policy=policy))
        for order in ("fifo", "srtf", "las") for mechanism in MECHANISMS
    ]  # fmt: skip


def _servers(memory_gb: int) -> Cluster:
    """The usual servers with so much memory each; 500 GB is usual."""
    ((count, shape),) = synergy_parts(SERVERS["default_cluster"])
    return Cluster.mix([(count, shape | {"memory_mib": GB_MIB * memory_gb})], name=f"synergy, {memory_gb} GB")


def _model_cells() -> list[Cell]:
    """What each model gains by the demand that it asks for, on servers of each kind, and its points: those of the whole
    surface of CPUs and memory, and of CPUs alone, which are measured where the part of memory is computed."""
    gain, count = Measure(SENSITIVITY, "speedup at the demand", "x", 0.0), Measure(PROFILING, "points", "", 0.0)
    cells = [
        cell(gain, f"{ratio} CPUs a GPU", profile.workload, None, profile.speedup)
        for ratio in RATIOS for profile in Sensitivity.default(ratio).profiles
    ]  # fmt: skip
    for profile in Sensitivity.default().profiles:
        if profile.grid is not None:
            every, cpus = profile.grid.speedup__cm.size, len(profile.grid.cpu__c)
            cells.append(cell(count, "CPUs and memory", profile.workload, None, float(every)))
            cells.append(cell(count, "CPUs", profile.workload, None, float(cpus)))
    return cells


def _point(figure: str, case: str, mechanism: str, at: float, run: Scenario) -> FigurePoint:
    return FigurePoint(figure, case, f"{case.partition(',')[0]} + {mechanism}", float(at), run)


def _recorded(data: Path | None, families: Sequence[str]) -> list[FigurePoint]:
    """The runs with recorded results in a folder."""
    folder = Path() if data is None else data / RECORDED
    recordings = {path.stem: json.loads(path.read_text()) for path in sorted((folder / "runs").glob("*.json"))}
    return [
        _recorded_point(folder, name, run)
        for family in families for name, run in recordings.items() if name.partition("_")[0] == family
    ]  # fmt: skip


def _recorded_point(folder: Path, name: str, recording: Mapping[str, Any]) -> FigurePoint:
    spec, stream = recording["spec"], recording["stream"]
    order, *words = spec["scheduler"].split("+")
    if not {"fair", "tune", "opt"} & set(words):
        words.append("greedy")  # the original's default
    config = spec.get("config", "configs/default_cluster.ini").removeprefix("configs/").removesuffix(".ini")
    servers = SERVERS[config] if config in SERVERS else int(config.partition(" ")[0])
    first, last = spec["window"]
    policy = " + ".join([ORDERS[order], *words])
    run = Scenario(
        f"synergy:{servers}?cpus={CPUS.get(config, 24)}", f"synergy:{folder / 'traces' / stream}.csv", policy,
        window=f"{first}:{last}" if stream.startswith("stream_") else None, round_s=ROUND_S, rates="synergy",
        compat="synergy", begin_s=1.0 if spec.get("static") else None, record="summary",
    )  # fmt: skip
    figure = f"{FAMILIES[name.partition('_')[0]]}, recorded"
    return FigurePoint(
        figure=figure,
        case=name,
        policy=policy,
        at=float(spec["load"]),
        run=run,
        original_h=recording["metrics"]["mean_jct_h"],
    )


def _check_cells(outcomes: Iterable[tuple[FigurePoint, Result]]) -> list[Cell]:
    """The authors' check value, and the same quantities of other seeds."""
    hours: dict[tuple[str, str], dict[str, float]] = {}
    for point, result in outcomes:
        if point.figure == CHECK:
            row = result.summary.row(0, named=True)
            hours[point.case, point.policy] = {
                "jct_mean_h": row["jct_mean_s"] / HOUR_S, "jct_p99_h": row["jct_p99_s"] / HOUR_S,
                "jct_p99_9_h": float(np.quantile(_measured(result, CHECK_WINDOW), 0.999)) / HOUR_S,
            }  # fmt: skip
    cases = list(dict.fromkeys(case for case, _ in hours))
    for case in cases:
        fair, tuned = (hours.get((case, f"fifo + {mechanism}")) for mechanism in MECHANISMS)
        if fair is not None and tuned is not None:
            tuned["speedup"] = fair["jct_mean_h"] / tuned["jct_mean_h"]
    recorded = {(policy, quantity): value for policy, quantity, value in recorded_numbers("synergy").iter_rows()}
    return [
        one for (case, policy), mine in hours.items() for quantity, ours in mine.items()
        for one in _checked(case, policy, quantity, ours, recorded)
    ]  # fmt: skip


def _checked(
    case: str, policy: str, quantity: str, ours: float, recorded: Mapping[tuple[str, str], float]
) -> Iterator[Cell]:
    """A cell beside the recorded run of these jobs, and one beside the printed value, whose jobs are not public."""
    measure, same_jobs = CHECKED[quantity], case == f"seed {CHECK_SEED}"
    original = recorded.get((policy, quantity)) if same_jobs else None
    if same_jobs and policy == "fifo + tune":
        printed = published_value("synergy", figure=measure.figure, metric=PRINTED[quantity])
        yield cell(measure, f"{case}, printed of other durations", policy, RATE, ours, published=printed,
                   comparable=False)  # fmt: skip
    yield cell(measure, case, policy, RATE, ours, original=original)


def _cell(point: FigurePoint, result: Result) -> Cell:
    """Mean completion time; exact to the printed digit if this run was recorded."""
    ours, solved = result.summary["jct_mean_s"][0] / HOUR_S, point.policy.endswith("opt")
    bar = SOLVED_BAR * point.original_h if solved and point.original_h is not None else None
    measure = JCT._replace(figure=point.figure)
    return cell(measure, point.case, point.policy, point.at, ours, original=point.original_h, bar=bar, exact=not solved)


def _curves(outcomes: Iterable[tuple[FigurePoint, Result]]) -> pl.DataFrame:
    lines, curves, title = (
        list[pl.DataFrame](),
        dict[tuple[str, str], list[tuple[float, float]]](),
        "mean completion (h)",
    )
    for point, result in outcomes:
        if point.figure == REPLAY or point.case == f"seed {CHECK_SEED}":
            jct_h = np.sort(_measured(result, CHECK_WINDOW)) / HOUR_S
            part = 100 * np.arange(1, len(jct_h) + 1) / len(jct_h)
            step = max(1, len(jct_h) // 200)
            chart = f"Completion times, {'Philly' if point.figure == REPLAY else '9 jobs/h'}"
            lines.append(
                points(
                    chart=chart,
                    x_title="completion time (h)",
                    y_title="jobs done (%)",
                    policy=point.policy,
                    x=jct_h[::step],
                    y=part[::step],
                )
            )
        elif point.figure in ("8", "1, 7", *X_TITLES) and point.original_h is None and point.at is not None:
            at = curves.setdefault((point.figure, point.policy), [])
            at.append((point.at, result.summary["jct_mean_s"][0] / HOUR_S))
    for (figure, policy), pairs in curves.items():
        if len(pairs) == 1:  # a point is no line
            continue
        x_title = X_TITLES.get(figure, "load (jobs/h)")
        lines.append(
            points(
                chart=f"Figure {figure}" if figure[0].isdigit() else figure,
                x_title=x_title,
                y_title=title,
                policy=policy,
                x=[x for x, _ in pairs],
                y=[y for _, y in pairs],
            )
        )
    return pl.concat(lines or [points(chart="", x_title="", y_title="", policy="", x=[], y=[])])


def _measured(result: Result, window: str) -> Any:
    """Seconds from submission to end of the jobs of a window."""
    first, last = map(int, window.split(":"))
    return result.jobs.filter(pl.col("pod_id").cast(pl.Int64).is_between(first, last, "left"))["jct_s"].to_numpy()
