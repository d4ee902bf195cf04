"""Figure 8 of the Gavel paper: average completion time over the job rate, the published values beside ours.

``python -m bench.gavel_figures --data DIR`` takes the recorded rates and the published values of the paper's notebooks
from a folder; without it the rates that ship with fastsim are used and nothing is compared. A run generates jobs for
ever on 36 GPUs of each model and measures jobs 4,000 to 5,000.
"""

from __future__ import annotations

import csv
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

import fastsim as fs
from fastsim.policies.registry import ORIGINAL_NAMES

POLICIES = (
    "fifo", "gandiva", "allox", "max_min_fairness", "max_min_fairness_perf", "max_min_fairness_packed",
)  # fmt: skip
"""Policies under their names in the notebooks."""
CELLS = {False: ("continuous_jobs.ipynb", "10"), True: ("continuous_jobs_multigpu.ipynb", "10")}
WINDOW = "4000:5000"
CLUSTER = "gavel:36:36:36"


class Point(NamedTuple):
    """One run: policy, jobs an hour, seed."""

    policy: str
    rate: float
    seed: int


def scenario(point: Point, rates: str, multi_gpu: bool) -> fs.Scenario:
    """The run as a scenario; the original's behaviour is switched on, since its figures are compared."""
    jobs, multi = WINDOW.partition(":")[2], str(multi_gpu).lower()
    options = f"jobs={jobs}&rate_per_hour={point.rate}&seed={point.seed}&multi_gpu={multi}&table=2020-05"
    options += "" if rates == "default" else f"&rates={rates}"
    return fs.Scenario(
        CLUSTER, f"synth:gavel?{options}", ORIGINAL_NAMES[point.policy], seed=point.seed, window=WINDOW, rates=rates,
        compat="gavel-2020-05", record="summary",
    )  # fmt: skip


def published(data: Path | None, multi_gpu: bool) -> dict[tuple[str, float], float]:
    """Hours by policy and rate, as the notebooks print them for seed 0."""
    if data is None:
        return {}
    with open(data / "golden/gavel/published_notebook_values.csv", encoding="utf-8") as text:
        rows = [row for row in csv.DictReader(text) if (row["notebook"], row["cell"]) == CELLS[multi_gpu]]
    return {(row["policy"], float(row["input_job_rate_per_hour"])): float(row["value"]) for row in rows}


def rows_of(points: Sequence[Point], results: Sequence[fs.Result], known: dict[Any, float]) -> list[tuple[Any, ...]]:
    """policy, rate, published, ours for its seed, deviation in per cent, mean of all seeds, CPU s of a run."""
    hours = {point: result.summary["jct_mean_s"][0] / 3600 for point, result in zip(points, results, strict=True)}
    cpu = {point: result.timing["cpu_s"] for point, result in zip(points, results, strict=True)}
    rows = []
    for policy, rate in dict.fromkeys((point.policy, point.rate) for point in points):
        mine = [point for point in points if point[:2] == (policy, rate)]
        first, value = hours[mine[0]], known.get((policy, rate))
        off = None if value is None else 100 * (first / value - 1)
        mean = sum(hours[point] for point in mine) / len(mine)
        rows.append((policy, rate, value, first, off, mean, sum(cpu[point] for point in mine) / len(mine)))
    return rows


@click.command()
@click.option("--data", type=click.Path(path_type=Path, exists=True), help="Folder with golden/gavel.")
@click.option("--policies", default=",".join(POLICIES), show_default=True)
@click.option("--rates", default="2.0,4.0,4.8", show_default=True, help="Jobs an hour.")
@click.option("--seeds", default="0,1,2", show_default=True)
@click.option("--multi-gpu", is_flag=True)
@click.option("--workers", type=int, default=2, show_default=True)
def main(data: Path | None, policies: str, rates: str, seeds: str, multi_gpu: bool, workers: int) -> None:
    """Print the table."""
    points = [
        Point(policy, float(rate), int(seed))
        for policy in policies.split(",") for rate in rates.split(",") for seed in seeds.split(",")
    ]  # fmt: skip
    source = "default" if data is None else str(data / "golden/gavel/oracle/simulation_throughputs.json")
    began = time.perf_counter()
    results = fs.simulate_many([scenario(point, source, multi_gpu) for point in points], workers)
    print(f"{len(points)} runs, {time.perf_counter() - began:.1f} s wall, "
          f"{sum(result.timing['cpu_s'] for result in results):.1f} s CPU")  # fmt: skip
    print(f"{'policy':28} {'jobs/h':>6} {'published':>9} {'seed ' + seeds[0]:>8} {'off':>7} {'mean':>7} {'CPU s':>6}")
    for policy, rate, value, first, off, mean, cpu in rows_of(points, results, published(data, multi_gpu)):
        columns = f"{value:9.2f} {first:8.2f} {off:+6.1f}%" if value is not None else f"{'':9} {first:8.2f} {'':7}"
        print(f"{policy:28} {rate:6.1f} {columns} {mean:7.2f} {cpu:6.2f}")


if __name__ == "__main__":
    main()
