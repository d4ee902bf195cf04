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

import fastsim as fs
from fastsim.policies.registry import names

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
    contention_max: int


PUBLISHED = {
    ("philly", "sia"): Cells(0.6, 0.1, 9.5, 14.2, 1.9, 4.0, 0.7, 6.9, 31),
    ("philly", "pollux"): Cells(1.0, 0.1, 14.9, 24.5, 7.9, 5.6, 1.1, 7.2, 42),
    ("philly", "rotation"): Cells(1.9, 0.3, 30.0, 33.8, 8.6, 9.0, 6.3, 9.9, 56),
    ("saturn", "sia"): Cells(0.7, 0.1, 10.9, 14.9, 1.7, 4.8, 0.7, 7.4, 32),
    ("saturn", "pollux"): Cells(1.0, 0.2, 15.0, 25.5, 8.0, 5.9, 0.7, 6.9, 47),
    ("saturn", "rotation"): Cells(2.5, 0.9, 38.7, 43.0, 10.9, 12.1, 3.7, 9.2, 48),
    ("newtrace", "sia"): Cells(0.7, 0.1, 4.6, 52.2, 1.3, 3.0, 0.1, 13.0, 69),
    ("newtrace", "pollux"): Cells(1.5, 0.2, 10.3, 62.3, 4.6, 3.4, 0.2, 22.0, 85),
    ("newtrace", "rotation"): Cells(11.3, 3.0, 98.1, 110.0, 21.5, 6.4, 1.1, 96.0, 243),
}
"""By folder and policy, as printed."""


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
        f"{found.gpu_h:5.2f} ±{found.gpu_sd:4.2f} {found.contention:6.1f} ({found.contention_max})"
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
            known = PUBLISHED.get((name, policy))
            if known is not None:
                print(f"{name:16} {policy:9} {told(known)}   published")
            print(f"{name:16} {policy:9} {told(cells(results))}   ours, {len(workloads)} files, {cpu_s:.0f} CPU s, "
                  f"{time.perf_counter() - began_s:.0f} s", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
