"""The Synergy paper's experiments made again: tuned shares of CPUs and memory beside fair ones.

All jobs come from seeds as Synergy's simulator makes them, so the run that its authors give a value for is the very run
that was recorded from it; their own sample of durations is not public. Figures over the load, over the CPUs of a server
and over the mix of jobs have no published numbers. A folder with recorded runs adds one cell for each of these.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from fastsim.engine.result import Result
from fastsim.experiments.many_runs import simulate_many
from fastsim.experiments.reproduce.reproduction import (
    Cell,
    Measure,
    Reproduction,
    beyond,
    cell,
    cell_table,
    of_policies,
    points,
    published_table,
)
from fastsim.policies.registry import parse
from fastsim.scenario.scenario import Scenario

RECORDED = Path("golden/synergy")
HOUR_S, ROUND_S = 3600.0, 300.0
CHECK_WINDOW, WINDOW = "4000:5000", "1000:1500"
"""Jobs that are measured: those of the authors' value, and those of a point of a curve."""
CHECK_SEED, SEEDS = 42, (42, 0, 1, 2, 3, 4)
SPLIT = "20:70:10"
RATE = 9.0
"""Jobs an hour where a figure has one load."""
JCT = Measure("check value", "mean completion time", "h", 0.01)
CHECKED = {
    "jct_mean_h": JCT, "jct_p99_h": Measure("check value", "99th percentile", "h", 0.1),
    "speedup": Measure("check value", "speedup of tuned over fair shares", "x", 0.01),
}  # fmt: skip
MECHANISMS = ("fair", "tune")
ORDERS = {"FIFO": "fifo", "SRTF": "srtf", "LAS": "las", "FTF": "ftf", "DRF": "drf", "TETRIS": "tetris"}
"""The original's names of its orders, and ours."""
SERVERS = {"default_cluster": 16, "cluster_4": 16, "cluster_5": 16, "cluster_6": 16, "deployment": 4, "two": 2}
"""Servers of the original's cluster files."""
CPUS = {"cluster_4": 32, "cluster_5": 40, "cluster_6": 48}
"""CPUs of a server where it is not 24."""
FAMILIES = {
    "replay": "deployment traces", "opt": "against the optimum", "refsize": "check value", "single": "8, 9, CPU ratio",
    "multi": "1, 7, 12",
}  # fmt: skip
"""Recorded runs by the first word of their names, and the figures they belong to; the others are of no figure."""
SOLVED_BAR = 0.03
"""Part of a completion time by which runs of ``opt`` differ: many choices have the same best sum."""


class Point(NamedTuple):
    """One run: where it is drawn, what it is called there, and what it is of."""

    figure: str
    case: str
    policy: str
    at: float
    run: Scenario
    original_h: float | None = None
    """Mean completion time that was recorded from the original."""


def synergy_reproduction(
    data: Path | None, quick: bool, workers: int, tell: Callable[[int], None] | None = None,
    policies: Sequence[str] = (),
) -> Reproduction:  # fmt: skip
    """The authors' check value, curves of figures 1, 7, 8, 9 and 12, and the recorded runs of ``data``."""
    began, listed = time.perf_counter(), _chosen(_points(data, quick), policies)
    results = simulate_many([point.run for point in listed], workers, tell)
    made = list(zip(listed, results, strict=True))
    cells = _check_cells(made) + [_cell(point, result) for point, result in made if point.figure != JCT.figure]
    recorded = sum(point.original_h is not None for point in listed)
    source = "jobs drawn as Synergy's simulator draws them, with its rates"
    source += f"; {recorded} recorded runs" if recorded else ""
    title = "Synergy: CPUs and memory fitted to jobs (OSDI 2022)"
    citation = str(getattr(parse("fifo + tune"), "citation", ""))
    wall_s, cpu_s = time.perf_counter() - began, sum(result.timing["cpu_s"] for result in results)
    return Reproduction(
        "synergy", title, source, cell_table(cells), _curves(made), len(listed), wall_s, citation, cpu_s
    )


def run_count(data: Path | None, _paper: str, quick: bool, policies: Sequence[str] = ()) -> int:
    """How many runs a reproduction makes."""
    return len(_chosen(_points(data, quick), policies))


def _chosen(listed: list[Point], policies: Sequence[str]) -> list[Point]:
    """Points of these policies; one that no figure has plays the jobs of the check value."""
    seeds = dict.fromkeys(point.case for point in listed if point.figure == JCT.figure)
    more = [
        Point(JCT.figure, case, text, RATE, _scenario(text, RATE, int(case.split()[1]), window=CHECK_WINDOW))
        for text in beyond(listed, policies) for case in seeds
    ]  # fmt: skip
    return of_policies(listed, policies) + more


def _points(data: Path | None, quick: bool) -> list[Point]:
    seeds = (CHECK_SEED,) if quick else SEEDS
    checks = [
        Point(JCT.figure, f"seed {seed}", f"fifo + {mechanism}", RATE,
              _scenario(f"fifo + {mechanism}", RATE, seed, window=CHECK_WINDOW))
        for seed in seeds for mechanism in MECHANISMS
    ]  # fmt: skip
    return [*checks, *([] if quick else _figures()), *_recorded(data, ("replay",) if quick else tuple(FAMILIES))]


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


def _figures() -> list[Point]:
    """The curves that have no published numbers."""
    made = [
        _point("8: single GPUs", order, mechanism, rate, _scenario(f"{order} + {mechanism}", rate))
        for order in ("fifo", "srtf", "las") for rate in (5.0, 7.0, 8.0, 9.0) for mechanism in MECHANISMS
    ]  # fmt: skip
    made += [
        _point("1, 7: gangs", order, mechanism, rate, _scenario(f"{order} + {mechanism}", rate, multi=True))
        for order in ("srtf", "las") for rate in (2.5, 3.5, 4.5) for mechanism in MECHANISMS
    ]  # fmt: skip
    made += [
        _point("9: mixes", f"fifo, {split}", mechanism, RATE, _scenario(f"fifo + {mechanism}", RATE, split=split))
        for split in (SPLIT, "33:33:33", "50:0:50") for mechanism in MECHANISMS
    ]  # fmt: skip
    made += [
        _point("CPUs for each GPU", "fifo", mechanism, ratio, _scenario(f"fifo + {mechanism}", RATE, ratio=ratio))
        for ratio in (3, 4, 5, 6) for mechanism in MECHANISMS
    ]  # fmt: skip
    made += [
        _point("12: orders of many resources", order, mechanism, RATE, _scenario(f"{order} + {mechanism}", RATE))
        for order in ("drf", "tetris") for mechanism in ("greedy", "tune")
    ]  # fmt: skip
    return made


def _point(figure: str, case: str, mechanism: str, at: float, run: Scenario) -> Point:
    return Point(figure, case, f"{case.partition(',')[0]} + {mechanism}", float(at), run)


def _recorded(data: Path | None, families: Sequence[str]) -> list[Point]:
    """The runs that a folder has results of."""
    folder = Path() if data is None else data / RECORDED
    told = {path.stem: json.loads(path.read_text()) for path in sorted((folder / "runs").glob("*.json"))}
    return [
        _recorded_point(folder, name, run)
        for family in families for name, run in told.items() if name.partition("_")[0] == family
    ]  # fmt: skip


def _recorded_point(folder: Path, name: str, told: Mapping[str, Any]) -> Point:
    spec, stream = told["spec"], told["stream"]
    order, *words = spec["scheduler"].split("+")
    if not {"fair", "tune", "opt"} & set(words):
        words.append("greedy")  # there, no mechanism means this one
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
    return Point(figure, name, policy, float(spec["load"]), run, told["metrics"]["mean_jct_h"])


def _check_cells(made: Iterable[tuple[Point, Result]]) -> list[Cell]:
    """The run of the authors' value, and how much other seeds differ."""
    hours: dict[tuple[str, str], dict[str, float]] = {}
    for point, result in made:
        if point.figure == JCT.figure:
            row = result.summary.row(0, named=True)
            hours[point.case, point.policy] = {
                "jct_mean_h": row["jct_mean_s"] / HOUR_S, "jct_p99_h": row["jct_p99_s"] / HOUR_S,
            }  # fmt: skip
    cases = list(dict.fromkeys(case for case, _ in hours))
    for case in cases:
        fair, tuned = (hours.get((case, f"fifo + {mechanism}")) for mechanism in MECHANISMS)
        if fair is not None and tuned is not None:
            tuned["speedup"] = fair["jct_mean_h"] / tuned["jct_mean_h"]
    rows = published_table("synergy").iter_rows()
    known = {(policy, quantity): (printed, original) for policy, quantity, printed, original in rows}
    return [
        _checked(case, policy, quantity, ours, known if case == f"seed {CHECK_SEED}" else {})
        for (case, policy), mine in hours.items() for quantity, ours in mine.items()
    ]  # fmt: skip


def _checked(
    case: str, policy: str, quantity: str, ours: float, known: Mapping[tuple[str, str], tuple[Any, Any]]
) -> Cell:
    printed, original = known.get((policy, quantity), (None, None))
    return cell(CHECKED[quantity], case, policy, RATE, ours, published=printed, original=original)


def _cell(point: Point, result: Result) -> Cell:
    """Mean completion time; the same to the printed digit where the very run was recorded."""
    ours, solved = result.summary["jct_mean_s"][0] / HOUR_S, point.policy.endswith("opt")
    bar = SOLVED_BAR * point.original_h if solved and point.original_h is not None else None
    what = JCT._replace(figure=point.figure)
    return cell(what, point.case, point.policy, point.at, ours, original=point.original_h, bar=bar, exact=not solved)


def _curves(made: Iterable[tuple[Point, Result]]) -> pl.DataFrame:
    lines, drawn, title = (
        list[pl.DataFrame](),
        dict[tuple[str, str], list[tuple[float, float]]](),
        "mean completion (h)",
    )
    for point, result in made:
        if point.case == f"seed {CHECK_SEED}":
            jct_h = np.sort(_measured(result, CHECK_WINDOW)) / HOUR_S
            part = 100 * np.arange(1, len(jct_h) + 1) / len(jct_h)
            step = max(1, len(jct_h) // 200)
            lines.append(points("Completion times, 9 jobs/h", "completion time (h)", "jobs done (%)", point.policy,
                                jct_h[::step], part[::step]))  # fmt: skip
        elif point.figure.startswith(("8", "1", "CPUs")) and point.original_h is None:
            at = drawn.setdefault((point.figure, point.policy), [])
            at.append((point.at, result.summary["jct_mean_s"][0] / HOUR_S))
    for (figure, policy), pairs in drawn.items():
        if len(pairs) == 1:  # a point is no line
            continue
        x_title = "CPUs for each GPU" if figure.startswith("CPUs") else "load (jobs/h)"
        lines.append(points(f"Figure {figure}" if figure[0].isdigit() else figure, x_title, title, policy,
                            [x for x, _ in pairs], [y for _, y in pairs]))  # fmt: skip
    return pl.concat(lines or [points("", "", "", "", [], [])])


def _measured(result: Result, window: str) -> Any:
    """Seconds from submission to end of the jobs of a window."""
    first, last = map(int, window.split(":"))
    return result.jobs.filter(pl.col("pod_id").cast(pl.Int64).is_between(first, last, "left"))["jct_s"].to_numpy()
