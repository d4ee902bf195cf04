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
from collections.abc import Sequence
from pathlib import Path

import click
import numpy as np

from fastsim.experiments.executors.choice import executor
from fastsim.experiments.reproduce.fgd_protocol import trace_names
from fastsim.experiments.reproduce.placement_figures import (
    LIMITS,
    POLICIES,
    PlacementRun,
    Published,
    curve_table,
    deviations,
    published,
    random_deviation,
    task_runs,
    tasks,
)


def print_summary(runs: Sequence[PlacementRun], wall_s: float, cpu_s: float, workers: int) -> None:
    """Print runs and their cost, and by policy the allocation at which demand reaches the capacity."""
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


def checked(runs: Sequence[PlacementRun], known: Published) -> bool:
    """Print the largest deviations, and answer whether every published figure is reproduced."""
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


@click.command(help=__doc__)
@click.option("--data", type=click.Path(file_okay=False, exists=True, path_type=Path),
              help="Folder with openb's lists, and recorded orders; without it pods are generated.")  # fmt: skip
@click.option("--workers", default=os.cpu_count() or 1, show_default=True, help="Processes.")
@click.option("--traces", default="", help="Only these, with commas between (default: all).")
@click.option("--seeds", default=10, show_default=True, type=click.IntRange(1), help="Seeds of every trace.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write all curves to this Parquet file.")
def main(data: Path | None, workers: int, traces: str, seeds: int, out: Path | None) -> None:
    """Run the evaluation, and print its cost and whether the published figures were reproduced."""
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
        for some in spread.map(task_runs, listed):
            runs += some
    wall_s = time.perf_counter() - began
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    source = "generated pods" if data is None else f"openb lists of {data}"
    click.echo(f"{len(chosen)} traces ({source}), {seeds} seeds, {len(POLICIES)} policies, {workers} workers")
    print_summary(runs, wall_s, sum(usage.ru_utime + usage.ru_stime for usage in used), workers)
    if out is not None:
        curve_table(runs).write_parquet(out)
    if not checked(runs, published(data)):
        click.echo("found figures that differ from the published ones", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
