"""Reproduction of figure 8 of the Gavel paper: mean completion time over the arrival rate of jobs."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import polars as pl

from fastsim.experiments.many_runs import simulate_many
from fastsim.experiments.reproduce.reproduction import (
    Cell,
    Measure,
    Reproduction,
    cell,
    cell_table,
    points,
    published_table,
)
from fastsim.policies.registry import ORIGINAL_NAMES, parse
from fastsim.scenario.scenario import Scenario

POLICIES = ("fifo", "gandiva", "allox", "max_min_fairness", "max_min_fairness_perf", "max_min_fairness_packed")
"""Policies of the figure, under their names in the original."""
RATES = (2.0, 4.0, 4.8)
WINDOW, CLUSTER = "4000:5000", "gavel:36:36:36"
JCT = Measure("8", "mean completion time", "h", 0.01)
BAR, FIFO_BAR = 0.02, 0.04
"""Deviation of the original's last revision from its published figures, as a part of these."""
RECORDED = "golden/gavel/oracle/simulation_throughputs.json"
VALUES, CELL = "golden/gavel/published_notebook_values.csv", ("continuous_jobs.ipynb", "10")


class LoadPoint(NamedTuple):
    """One run: policy, jobs an hour, seed."""

    policy: str
    rate_per_hour: float
    seed: int


def run_count(_data: Path | None, _paper: str, quick: bool) -> int:
    """Number of runs of a reproduction."""
    return len(_points(quick))


def _points(quick: bool) -> list[LoadPoint]:
    rates, seeds = ((2.0,), (0,)) if quick else (RATES, (0, 1, 2))
    return [LoadPoint(policy, rate, seed) for rate in rates for policy in POLICIES for seed in seeds]


def gavel_reproduction(
    data: Path | None, quick: bool, workers: int, tell: Callable[[int], None] | None = None
) -> Reproduction:
    """The figure at three rates, seed 0 beside the published values, and the mean of three seeds as curves."""
    began, runs = time.perf_counter(), _points(quick)
    rates = str(data / RECORDED) if data is not None and (data / RECORDED).exists() else "default"
    results = simulate_many([_scenario(point, rates) for point in runs], workers, tell)
    hours = {point: result.summary["jct_mean_s"][0] / 3600 for point, result in zip(runs, results, strict=True)}
    hours_published = _published(data)
    cells = [_cell(point, value, hours_published) for point, value in hours.items() if point.seed == 0]
    source = f"jobs drawn as Gavel's simulator draws them, {'recorded rates' if rates != 'default' else 'own rates'}"
    citation = str(getattr(parse("max_min_fairness"), "citation", ""))
    title = "Gavel: figure 8, completion time over load (OSDI 2020)"
    wall_s = time.perf_counter() - began
    return Reproduction("gavel", title, source, cell_table(cells), _curves(hours), len(runs), wall_s, citation)


def _scenario(point: LoadPoint, rates: str) -> Scenario:
    """The scenario of a run, with the original's behaviour (``compat``), as its figures are compared."""
    options = f"jobs={WINDOW.partition(':')[2]}&rate_per_hour={point.rate_per_hour}&seed={point.seed}"
    options += "" if rates == "default" else f"&rates={rates}"
    return Scenario(
        CLUSTER, f"synth:gavel?{options}", ORIGINAL_NAMES[point.policy], seed=point.seed, window=WINDOW, rates=rates,
        compat="gavel", record="summary",
    )  # fmt: skip


def _published(data: Path | None) -> dict[tuple[str, float], float]:
    """Hours by policy and rate for seed 0: from the notebooks in ``data``, or from fastsim's table."""
    path = Path() if data is None else data / VALUES
    if path.is_file():
        with open(path, encoding="utf-8") as text:
            rows = [row for row in csv.DictReader(text) if (row["notebook"], row["cell"]) == CELL]
        return {(row["policy"], float(row["input_job_rate_per_hour"])): float(row["value"]) for row in rows}
    table = published_table("gavel").filter(~pl.col("multi_gpu"))
    return {
        (policy, rate): hours for policy, rate, hours in table.select("policy", "rate_per_hour", "jct_h").iter_rows()
    }


def _cell(point: LoadPoint, hours: float, hours_published: dict[tuple[str, float], float]) -> Cell:
    value = hours_published.get((point.policy, point.rate_per_hour))
    part = FIFO_BAR if point.policy == "fifo" else BAR
    bar = None if value is None else part * value
    case = f"{point.rate_per_hour:g} jobs/h"
    return cell(JCT, case, point.policy, point.rate_per_hour, hours, published=value, bar=bar, exact=False)


def _curves(hours: dict[LoadPoint, float]) -> pl.DataFrame:
    lines = []
    for policy in POLICIES:
        mine: dict[float, list[float]] = {}
        for point, value in hours.items():
            if point.policy == policy:
                mine.setdefault(point.rate_per_hour, []).append(value)
        means = [sum(values) / len(values) for values in mine.values()]
        lines.append(points("Completion time", "load (jobs/h)", "mean completion time (h)", policy, list(mine), means))
    return pl.concat(lines)
