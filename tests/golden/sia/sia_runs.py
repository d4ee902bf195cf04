"""The recorded runs of the Sia simulator: their jobs, and what each did in every round."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from fastsim.cluster.cluster import Cluster
from fastsim.cluster.published_specs import sia_nodes
from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptiveSetting
from fastsim.engine.adaptive.run import AdaptiveOutcome, run_adaptive
from fastsim.performance.applications.family import Applications
from fastsim.performance.applications.sia_folders import ESTIMATED_RESTART_S, SLOWDOWN, USUAL_RESTART_S
from fastsim.simulation.engines.adaptive import groups_of, table_setting
from tests.golden.sia.sia import SIA, golden_applications


@cache
def trained_applications() -> Applications:
    """The recorded applications, as fast as the simulator lets them be."""
    found = {
        name: dataclasses.replace(
            app, slowdown=SLOWDOWN.get(name, 1.0), believed_restart_s=ESTIMATED_RESTART_S.get(name, USUAL_RESTART_S)
        )
        for name, app in golden_applications().items()
    }
    return Applications(found)


def run_of(jobs: tuple[AdaptiveJob, ...], policy: Any, round_s: float, seed: int) -> AdaptiveOutcome:
    """A run of these jobs on the recorded cluster."""
    setting = AdaptiveSetting(groups_of(Cluster(*sia_nodes())), trained_applications(), round_s, seed)
    return run_adaptive(table_setting(setting), setting, policy.begin(setting), jobs)


known_run = cache(run_of)
"""The same run, made once: tests of several figures look at it."""


def smallest_first(pattern: str, quick: int) -> list[Any]:
    """Folders of recorded runs as parameters of a test, the smallest first; all but so many of them are long."""
    size = {folder: sum(file.stat().st_size for file in folder.iterdir()) for folder in (SIA / "runs").glob(pattern)}
    found = sorted(size, key=lambda folder: (size[folder], folder))
    return [pytest.param(one, id=one.name, marks=[pytest.mark.long] * (at >= quick)) for at, one in enumerate(found)]


class RecordedRun:
    """One folder of a recorded run."""

    def __init__(self, folder: Path) -> None:
        self.name = folder.name
        self.summary: dict[str, Any] = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        self.told = pl.read_csv(folder / "jobs.csv", infer_schema_length=None)
        self.names: list[str] = self.told["name"].to_list()
        self.rounds = pl.read_parquet(folder / "rounds.parquet").with_columns(
            pl.col("job", "gpu_type", "placement").cast(pl.String)
        )

    @property
    def round_s(self) -> int:
        """Length of a round, seconds."""
        return int(self.summary["interval"])

    @property
    def policy(self) -> str:
        """Which policy decided."""
        return str(self.summary["policy"])

    def by_round(self) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Seconds at the end of each round with active jobs, and what it was recorded of them."""
        for (_, time_s), rows in self.rounds.group_by(["round", "time"], maintain_order=True):
            yield time_s, rows.to_dicts()

    def jobs(self) -> list[AdaptiveJob]:
        """The jobs in order of the workload."""
        asked = _asked(self.names, self.told["submission_time"].to_list())
        modes = self.told["category"].to_list() if "category" in self.told.columns else [None] * len(self.names)
        fixed = self.policy == "gavel"
        return [
            AdaptiveJob(float(row["time"]), row["application"], row["num_replicas"], _batch(row),
                        "rigid" if fixed else mode or "adaptive")
            for row, mode in zip(asked, modes, strict=True)
        ]  # fmt: skip


def _batch(row: dict[str, Any]) -> int:
    return 32768 if row["application"] == "ncf" else int(row["batch_size"])


def _asked(names: list[str], times: list[float]) -> list[dict[str, Any]]:
    """The rows of the workload file whose first jobs these are."""
    for path in sorted((SIA / "input/workloads").glob("*.csv")):
        rows = pl.read_csv(path).head(len(names))
        if rows["name"].to_list() == names and rows["time"].to_list() == times:
            return rows.to_dicts()
    raise AssertionError(f"no workload begins with {names[:3]}")
