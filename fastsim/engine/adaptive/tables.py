"""Result tables of a run of adaptive jobs: those of every run in rounds, and what training adds."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from fastsim.cluster.cluster import Cluster
from fastsim.engine.adaptive.run import AdaptiveRun
from fastsim.engine.rounds.tables import jobs as round_jobs
from fastsim.engine.rounds.tables import makers as round_makers
from fastsim.engine.rounds.tables import summary as round_summary
from fastsim.engine.tables import FrameMakers

HOUR_S = 3600.0


def makers(run: AdaptiveRun, cluster: Cluster, kept: int) -> FrameMakers:
    """How to make each table; ``kept`` is the typical pods' total count."""
    return {**round_makers(run, cluster, kept), "jobs": lambda: jobs(run)}


def jobs(run: AdaptiveRun) -> pl.DataFrame:
    """One row for every job; work is progress in iterations of the initial batch size, and has no ideal time.

    ``charged_restarts`` leaves out moves to other nodes of the same model, which cost nothing; ``round_gpu_hours``
    go on to the end of a job's last round.
    """
    told = run.trained
    return round_jobs(run).with_columns(
        charged_restarts=told["restarts"],
        round_gpu_hours=told["gpu_s"] / HOUR_S,
        restart_gpu_hours=told["wasted_gpu_s"] / HOUR_S,
        contention=pl.Series(told["contention"]).fill_nan(None),
        batch_size_mean=pl.Series(told["batch_mean"]).fill_nan(None),
        epochs=told["epochs"],
    )


def summary(run: AdaptiveRun, kept: int) -> pl.DataFrame:
    """The one row of every run in rounds, and means over jobs of what training adds."""
    return round_summary(run, kept).with_columns(
        **{name: pl.lit(value, pl.Float64) for name, value in figures(run).items()}
    )


def figures(run: AdaptiveRun) -> dict[str, float | None]:
    """Restarts and GPU hours of a job, and jobs that were active in a round, on average."""
    told = run.trained
    contention = run.job_rounds / run.rounds if run.rounds else np.nan
    found = {
        "restarts_mean": _mean(run.jobs["restarts"]),
        "charged_restarts_mean": _mean(told["restarts"]),
        "gpu_hours_mean": _mean(run.jobs["gpu_s"]) / HOUR_S,
        "round_gpu_hours_mean": _mean(told["gpu_s"]) / HOUR_S,
        "restart_gpu_hours_mean": _mean(told["wasted_gpu_s"]) / HOUR_S,
        "contention_mean": contention,
    }
    return {name: None if np.isnan(value) else value for name, value in found.items()}


def _mean(values: Any) -> float:
    return float(values.mean()) if len(values) else float("nan")
