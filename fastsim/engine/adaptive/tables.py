"""Result tables of a run of adaptive jobs: those of every run in rounds, with further columns about training."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from fastsim.cluster.cluster import Cluster
from fastsim.engine.adaptive.run import AdaptiveOutcome
from fastsim.engine.rounds.tables import jobs as round_jobs
from fastsim.engine.rounds.tables import makers as round_makers
from fastsim.engine.rounds.tables import placements
from fastsim.engine.rounds.tables import summary as round_summary
from fastsim.engine.tables import FrameMakers
from fastsim.engine.totals.pod_totals import tariff_of

if TYPE_CHECKING:
    from fastsim.scenario.prices import Prices
    from fastsim.workload import Workload

HOUR_S = 3600.0


def makers(run: AdaptiveOutcome, cluster: Cluster, typical_count: int, workload: Workload) -> FrameMakers:
    """Functions that make the tables, by name; ``typical_count`` is the total count of the typical pods."""
    return round_makers(run, cluster, typical_count, workload, jobs)


def jobs(run: AdaptiveOutcome) -> pl.DataFrame:
    """One row for every job; work is progress in iterations of the initial batch size, and has no ideal time.

    ``charged_restarts`` leaves out moves to other nodes of the same model, which cost nothing; ``round_gpu_hours``
    go on to the end of a job's last round.
    """
    trained = run.trained
    return round_jobs(run).with_columns(
        charged_restarts=trained["restarts"],
        round_gpu_hours=trained["gpu_s"] / HOUR_S,
        restart_gpu_hours=trained["wasted_gpu_s"] / HOUR_S,
        contention=pl.Series(trained["contention"]).fill_nan(None),
        batch_size_mean=pl.Series(trained["batch_mean"]).fill_nan(None),
        epochs=trained["epochs"],
    )


def summary(run: AdaptiveOutcome, typical_count: int) -> pl.DataFrame:
    """The summary of every run in rounds, with means over jobs of the columns about training."""
    return round_summary(run, typical_count).with_columns(
        **{name: pl.lit(value, pl.Float64) for name, value in figures(run).items()}
    )


def figures(run: AdaptiveOutcome) -> dict[str, float | None]:
    """Restarts and GPU hours of a job, and jobs that were active in a round, on average."""
    trained = run.trained
    contention = run.job_rounds / run.rounds if run.rounds else np.nan
    means = {
        "restarts_mean": _mean(run.jobs["restarts"]),
        "charged_restarts_mean": _mean(trained["restarts"]),
        "gpu_hours_mean": _mean(run.jobs["gpu_s"]) / HOUR_S,
        "round_gpu_hours_mean": _mean(trained["gpu_s"]) / HOUR_S,
        "restart_gpu_hours_mean": _mean(trained["wasted_gpu_s"]) / HOUR_S,
        "contention_mean": contention,
    }
    return {name: None if np.isnan(value) else value for name, value in means.items()}


def _mean(values: Any) -> float:
    return float(values.mean()) if len(values) else float("nan")


def charge(run: AdaptiveOutcome, cluster: Cluster, prices: Prices) -> None:
    """Charge every job for the GPUs of its stays; ``prices`` have all models of the cluster."""
    tariff = tariff_of(cluster, prices)
    assert tariff is not None
    run.options = replace(run.options, prices=prices)
    row = {int(number): row for row, number in enumerate(run.jobs["id"])}
    held = placements(run, cluster).select("pod_id", "node_id", pl.col("gpu_ids").list.len(), "start_s", "end_s")
    for pod_id, node, gpus, start_s, end_s in held.drop_nulls("node_id").iter_rows():
        run.jobs["cost"][row[pod_id]] += gpus * tariff.cost(node, start_s, end_s)
