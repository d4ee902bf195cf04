"""The FGD paper's evaluation: every trace, ten seeds, six policies, and the published curves beside ours.

``python -m bench.evaluation --data DIR`` reads openb lists and recorded orders from a folder, without it pods are
generated. A run offers about 10,000 pods to 1,213 nodes and keeps allocation and fragmentation at 0 to 130 per cent of
arrived demand. The command fails if a figure of a deterministic policy is not the published one.
"""

from __future__ import annotations

import os
import resource
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import polars as pl

import fastsim as fs
from bench.protocol import RECORDED, trace, trace_names
from fastsim.curves import discrete_table
from fastsim.executors import executor
from fastsim.frames import FRAG_COLUMNS

POLICIES = {
    "random": "Random", "dot_product": "DotProd", "gpu_clustering": "GpuClustering", "gpu_packing": "GpuPacking",
    "best_fit": "BestFit", "fgd": "FGD",
}  # fmt: skip
"""Policies of the paper's figures and their names in the published curves."""
FIRST_SEED = 42
"""The seed the published experiments begin with."""
TOGETHER = 5
"""Seeds of a trace that one task plays: fewer balance workers better, more read the trace less often."""
LIMITS = {"alloc_pct": 1e-9, "frag_pct": 1e-9, "frag_ratio_pct": 0.01}
"""Two decimals are published, so equal figures differ by float noise only; the ratio is rounded for each pod."""


class Task(NamedTuple):
    """Runs that share a trace."""

    data: Path | None
    trace: str
    seeds: tuple[int, ...]


class Run(NamedTuple):
    """One run: its pods, seconds and curves (columns of the published table, a value for each per cent)."""

    policy: str
    trace: str
    seed: int
    pods: int
    cpu_s: float
    loop_s: float
    curves: dict[str, Any]


def played(task: Task) -> list[Run]:
    """All policies with all seeds of one task."""
    # A few openb pods are larger than any node; they count as arrived and unplaced, as in the published runs.
    warnings.simplefilter("ignore", fs.PodTooLarge)
    pods = trace(task.data, task.trace)
    runs = []
    for seed in task.seeds:
        cluster, workload = pods.offered(seed)
        for policy in POLICIES:
            result = fs.simulate(cluster, workload, policy, typical=pods.typical, seed=seed, record="timeline")
            count, took = result.provenance["workload"]["pods"], result.timing
            made = curves(result.timeline, cluster.total_gpus)
            runs.append(Run(policy, task.trace, seed, count, took["cpu_s"], took["loop_s"], made))
    return runs


def curves(timeline: pl.DataFrame, gpus: int) -> dict[str, Any]:
    """Allocation and fragmentation at 0 to 130 per cent of arrived demand."""
    rows = timeline.select(
        "arrived_gpu_milli", "gpu_milli_alloc", "frag_milli", pl.sum_horizontal(FRAG_COLUMNS).alias("idle_milli"),
    )  # fmt: skip
    rows = rows.filter(timeline["event"] == "arrival")
    arrived, alloc, frag, idle = (rows[name].to_numpy() for name in rows.columns)
    return discrete_table(arrived, alloc, frag, idle, gpus)


def published(data: Path | None) -> dict[tuple[str, str, int], pl.DataFrame]:
    """Published curves by policy, trace and seed; none without data."""
    path = Path() if data is None else data / RECORDED / "published_discrete.parquet"
    if not path.is_file():
        return {}
    tables = pl.read_parquet(path).partition_by("policy", "trace", "seed", as_dict=True)
    return {(str(key[0]), str(key[1]), int(key[2])): table.sort("arrive_pct") for key, table in tables.items()}


def largest(ours: Any, theirs: Any) -> float:
    """Largest difference of two curves; a value where the other has none is infinitely far."""
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if ours.shape != theirs.shape or not np.array_equal(np.isnan(ours), np.isnan(theirs)):
        return float("inf")
    return float(np.nanmax(np.abs(ours - theirs)))


def deviations(runs: Sequence[Run], known: dict[tuple[str, str, int], pl.DataFrame]) -> tuple[dict[str, float], int]:
    """Largest difference of each curve of the deterministic policies from the published one; curves compared."""
    worst, compared = dict.fromkeys(LIMITS, 0.0), 0
    for run in runs:
        table = known.get((POLICIES[run.policy], run.trace, run.seed))
        if table is not None and run.policy != "random":
            compared += 1
            worst = {name: max(far, largest(run.curves[name], table[name])) for name, far in worst.items()}
    return worst, compared


def random_deviation(runs: Sequence[Run], known: dict[tuple[str, str, int], pl.DataFrame]) -> float | None:
    """Largest difference of allocation under ``random``, each trace averaged over its seeds, from the published one."""
    ours: dict[str, list[Any]] = {}
    theirs: dict[str, list[Any]] = {}
    for run in runs:
        table = known.get((POLICIES[run.policy], run.trace, run.seed))
        if table is not None and run.policy == "random":
            ours.setdefault(run.trace, []).append(run.curves["alloc_pct"])
            theirs.setdefault(run.trace, []).append(table["alloc_pct"].to_numpy())
    far = [largest(np.mean(ours[name], axis=0), np.mean(theirs[name], axis=0)) for name in ours]
    return max(far, default=None)


def table(runs: Sequence[Run]) -> pl.DataFrame:
    """All curves as one table, like the published one."""
    frames = [pl.DataFrame({"trace": run.trace, "policy": run.policy, "seed": run.seed, **run.curves}) for run in runs]
    return pl.concat(frames)


def told(runs: Sequence[Run], wall_s: float, cpu_s: float, workers: int) -> None:
    """What was done and what it cost; allocation when demand has reached the capacity, by policy."""
    pods, loop_s = sum(run.pods for run in runs), sum(run.loop_s for run in runs)
    click.echo(f"{len(runs):,} runs, {pods:,} placements decided")
    click.echo(f"{wall_s:.1f} s wall, {cpu_s:.1f} s CPU, {len(runs) / wall_s:.1f} runs/s, {pods / wall_s:,.0f} pods/s")
    click.echo(f"the loop took {loop_s:.1f} s, {100 * loop_s / (wall_s * workers):.0f} % of the workers' time")
    click.echo(f"\n{'policy':16} {'CPU ms a run':>12} {'loop ms':>8} {'alloc % at 100':>15} {'frag % at 100':>14}")
    for name in POLICIES:
        mine = [run for run in runs if run.policy == name]
        cpu_ms, loop_ms = (
            1000 * np.mean(seconds) for seconds in zip(*((r.cpu_s, r.loop_s) for r in mine), strict=True)
        )
        alloc, frag = (np.mean([run.curves[curve][100] for run in mine]) for curve in ("alloc_pct", "frag_pct"))
        click.echo(f"{name:16} {cpu_ms:12.1f} {loop_ms:8.1f} {alloc:15.2f} {frag:14.2f}")


def checked(runs: Sequence[Run], known: dict[tuple[str, str, int], pl.DataFrame]) -> bool:
    """Whether every figure that was published is ours, after saying how far they are apart."""
    worst, compared = deviations(runs, known)
    if not compared:
        click.echo("\nno published curve belongs to these runs")
        return True
    figures = ", ".join(f"{name} {far:.4g}" for name, far in worst.items())
    click.echo(f"\n{compared} published curves, largest difference in percentage points: {figures}")
    far = random_deviation(runs, known)
    if far is not None:
        click.echo(f"random draws other numbers: its mean allocation is {far:.2f} percentage points apart at most")
    return all(worst[name] <= limit for name, limit in LIMITS.items())


def tasks(data: Path | None, names: Sequence[str], seeds: int) -> list[Task]:
    """All runs, those of one trace close together."""
    every = tuple(range(FIRST_SEED, FIRST_SEED + seeds))
    return [Task(data, name, every[k : k + TOGETHER]) for name in names for k in range(0, seeds, TOGETHER)]


@click.command(help=__doc__)
@click.option("--data", type=click.Path(file_okay=False, exists=True, path_type=Path),
              help="Folder with data/openb and golden/fgd; without it pods are generated.")  # fmt: skip
@click.option("--workers", default=os.cpu_count() or 1, show_default=True, help="Processes.")
@click.option("--traces", default="", help="Only these, with commas between (default: all).")
@click.option("--seeds", default=10, show_default=True, type=click.IntRange(1), help="Seeds of every trace.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write all curves to this Parquet file.")
def main(data: Path | None, workers: int, traces: str, seeds: int, out: Path | None) -> None:
    """Run the evaluation, print what it cost and whether the published figures came out."""
    names = trace_names(data)
    chosen = tuple(traces.split(",")) if traces else names
    strange = sorted(set(chosen) - set(names))
    if strange or not chosen:
        raise click.ClickException(
            f"--traces: found {', '.join(strange) or 'none'}, expected some of {', '.join(names)}"
        )
    began, runs = time.perf_counter(), []
    listed = tasks(data, chosen, seeds)
    with executor(workers, len(listed)) as spread:
        for some in spread.map(played, listed):
            runs += some
    wall_s = time.perf_counter() - began
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    source = "generated pods" if data is None else f"openb lists of {data}"
    click.echo(f"{len(chosen)} traces ({source}), {seeds} seeds, {len(POLICIES)} policies, {workers} workers")
    told(runs, wall_s, sum(usage.ru_utime + usage.ru_stime for usage in used), workers)
    if out is not None:
        table(runs).write_parquet(out)
    if not checked(runs, published(data)):
        click.echo("found figures that differ from the published ones", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
