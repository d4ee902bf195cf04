"""Table 3 of the Sia paper: 64 GPUs of three models, published values beside ours.

``python -m bench.sia_figures --apps FILE.parquet FOLDER...`` takes applications (``fastsim import sia``) and one folder
of job lists for each row of the table, named as in the paper's artifact. Without folders it plays generated lists of
the same styles with the applications that ship, and nothing is compared. Means over files come with the standard
deviation of the files' means, as the paper has them.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
import polars as pl

import fastsim as fs
from fastsim.policies.registry import names
from fastsim.reproduction import published_table

CLUSTER = "sia:6:2:3"
ROUND_S = {"sia": 60.0, "pollux": 60.0, "rotation": 360.0}
"""Length of a round as in the experiments; Gavel is rotation."""
STYLES = {"philly": "philly", "saturn": "helios", "newtrace": "newtrace"}
"""Folders of the artifact, and the generator's style that looks like them."""
GENERATED = 3
"""Generated lists of a style."""
HOUR_S = 3600.0


class Cells(NamedTuple):
    """One row of the table: hours, GPU hours, jobs; ``±`` are standard deviations over files."""

    jct_h: float
    jct_sd: float
    p99_h: float
    makespan_h: float
    makespan_sd: float
    gpu_h: float
    gpu_sd: float
    contention: float
    contention_max: float


COLUMNS = (
    ("jct_mean_h", "published"), ("jct_mean_h", "spread"), ("jct_p99_h", "published"), ("makespan_h", "published"),
    ("makespan_h", "spread"), ("gpu_h_mean", "published"), ("gpu_h_mean", "spread"), ("active_mean", "published"),
    ("active_max", "published"),
)  # fmt: skip
"""Where the table that ships with the package keeps each cell."""


def published() -> dict[tuple[str, str], Cells]:
    """The printed rows by folder and policy."""
    rows = published_table("sia").filter(pl.col("table").cast(pl.String) == "3").rows(named=True)
    said = {(row["case"], row["policy"], row["quantity"], column): row[column]
            for row in rows for column in ("published", "spread")}  # fmt: skip
    names = {(row["case"], row["policy"]) for row in rows}
    return {name: Cells(*(said[(*name, *column)] for column in COLUMNS)) for name in names}


def scenario(workload: str, policy: str, apps: str | None) -> fs.Scenario:
    """One run of the table."""
    round_s = ROUND_S[policy.partition("(")[0]]
    return fs.Scenario(CLUSTER, workload, policy, round_s=round_s, rates=apps, record="summary")


def cells(results: Sequence[fs.Result]) -> Cells:
    """The table's figures from the runs of all files of a folder."""
    hours = [result.jobs["jct_s"].to_numpy() / HOUR_S for result in results]
    every = np.sort(np.concatenate(hours))
    said = [result.summary.to_dicts()[0] for result in results]
    makespan_h = [one["makespan_s"] / HOUR_S - float(result.jobs["submit_s"].min()) / HOUR_S  # type: ignore[arg-type]
                  for one, result in zip(said, results, strict=True)]  # fmt: skip
    gpu_h = [one["gpu_hours_mean"] for one in said]
    return Cells(
        float(every.mean()), float(np.std([part.mean() for part in hours])), float(every[int(0.99 * len(every))]),
        float(np.mean(makespan_h)), float(np.std(makespan_h)), float(np.mean(gpu_h)), float(np.std(gpu_h)),
        float(np.mean([one["contention_mean"] for one in said])), max(one["max_active_jobs"] for one in said),
    )  # fmt: skip


def told(found: Cells) -> str:
    """A row as text."""
    return (
        f"{found.jct_h:5.2f} ±{found.jct_sd:4.2f} {found.p99_h:6.1f} {found.makespan_h:6.1f} ±{found.makespan_sd:4.1f} "
        f"{found.gpu_h:5.2f} ±{found.gpu_sd:4.2f} {found.contention:6.1f} ({found.contention_max:.0f})"
    )


def lists(folder: Path) -> list[str]:
    """The job lists of a folder."""
    found = [f"sia:{path}" for path in sorted(folder.glob("*.csv*"))]
    if not found:
        raise click.UsageError(f"{folder}: found no job list, expected CSV files, plain or .gz")
    return found


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--apps", type=click.Path(exists=True), help="Applications, as `fastsim import sia` writes them.")
@click.option("--policies", default="sia,pollux,rotation", show_default=True)
@click.option("--workers", type=int, default=2, show_default=True)
def main(folders: Sequence[Path], apps: str | None, policies: str, workers: int) -> None:
    """Print the table."""
    printed = published()
    rows = {folder.name: lists(folder) for folder in folders} or {
        f"synth {style}": [f"synth:sia?style={style}&seed={seed}" for seed in range(GENERATED)]
        for style in STYLES.values()
    }
    print(f"{'':26} {'avg JCT h':>11} {'p99 h':>6} {'makespan h':>12} {'GPU h/job':>11} {'active':>6} (most)")
    for name, workloads in rows.items():
        for policy in policies.split(","):
            if policy.partition("(")[0] not in names():
                print(f"{name:16} {policy:9} no such policy here")
                continue
            began_s = time.perf_counter()
            results = fs.simulate_many([scenario(workload, policy, apps) for workload in workloads], workers)
            cpu_s = sum(result.timing["cpu_s"] for result in results)
            known = printed.get((name, policy))
            if known is not None:
                print(f"{name:16} {policy:9} {told(known)}   published")
            print(f"{name:16} {policy:9} {told(cells(results))}   ours, {len(workloads)} files, {cpu_s:.0f} CPU s, "
                  f"{time.perf_counter() - began_s:.0f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
