"""Who uses a cluster: pods, GPUs, GPU-hours, cost, carbon and waits of each tenant of a run, against its quota.

A tenant is a namespace, a team label or a queue, as the workload has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from fastsim.decisions.waiting_pods import WAITING
from fastsim.engine.result import Result
from fastsim.errors import InputError, ResultError
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.reports.pairs.paired_jobs import job_requests
from fastsim.scenario.run_rules import OTHER_TENANTS, quotas_from

GPU_MILLI = 1000
COLUMNS = (
    ("tenant", "tenant"), ("pods", "pods"), ("waiting", "waiting"), ("gpus", "GPUs"), ("quota_gpus", "quota"),
    ("quota_pct", "quota %"), ("gpu_hours", "GPU-h"), ("share_pct", "share %"), ("cost", "cost $"),
    ("co2_kg", "CO2 kg"), ("wait_mean_s", "wait s"), ("wait_p95_s", "p95 wait s"),
)  # fmt: skip
"""Columns with their headings in a terminal."""


@whole_process
def tenant_usage(run: Result | Path | str) -> pl.DataFrame:
    """A row for each tenant of a run, a result or the folder of a saved one; most GPU-hours first.

    Columns: tenant, null for pods without one · pods · waiting, pods without a place at the end · gpus, held at the
    end · quota_gpus and quota_pct, the tenant's quota of GPUs and the part of it that is held; null without a quota ·
    gpu_hours, in all attempts · share_pct, of all GPU-hours, or of the GPUs held if no GPU-hours passed · cost, $ ·
    co2_kg, of the run's CO2 by GPU-hours; null without GPU-hours · wait_mean_s and wait_p95_s, of pods that started.
    """
    result = run if isinstance(run, Result) else Result.load(run)
    pods = result.jobs.join(job_requests(result), on="pod_id", how="left", maintain_order="left")
    if pods["tenant"].null_count() == len(pods):
        raise ResultError("tenant_usage: found no tenant of any pod, expected a workload with tenants, and its inputs")
    state, wait_s = pl.col("state").cast(pl.String), pl.col("wait_s")
    usage = pods.group_by("tenant", maintain_order=True).agg(
        pods=pl.len(), waiting=state.is_in(WAITING).sum(), gpus=pl.col("size").filter(state == "running").sum(),
        gpu_hours=_sum("gpu_hours", pods), cost=_sum("cost", pods),
        wait_mean_s=wait_s.mean(), wait_p95_s=wait_s.quantile(0.95, "linear"),
    )  # fmt: skip
    of = "gpu_hours" if usage["gpu_hours"].sum() > 0 else "gpus"
    quotas = _quotas_gpus(result)
    quota = [quotas.get(tenant, quotas.get(OTHER_TENANTS)) for tenant in usage["tenant"]]
    held, used = pl.col("gpus"), pl.col("gpu_hours")
    return usage.with_columns(pl.Series("quota_gpus", quota, pl.Float64)).with_columns(
        quota_pct=pl.when(pl.col("quota_gpus") > 0).then(100 * held / pl.col("quota_gpus")),
        share_pct=pl.when(pl.col(of).sum() > 0).then(100 * pl.col(of) / pl.col(of).sum()),
        co2_kg=pl.when(used.sum() > 0).then(_co2_kg(result) * used / used.sum()),
    ).select(name for name, _ in COLUMNS).sort(of, "tenant", descending=[True, False], nulls_last=True)  # fmt: skip


def _sum(name: str, pods: pl.DataFrame) -> pl.Expr:
    """The sum of a column, null if runs of this kind have none."""
    return pl.col(name).sum() if name in pods.columns else pl.lit(None, pl.Float64).first()


def _co2_kg(result: Result) -> float | None:
    if "co2_kg" not in result.summary.columns:
        return None
    emitted: float | None = result.summary["co2_kg"].item()
    return emitted


def _quotas_gpus(result: Result) -> Mapping[str, float]:
    """GPUs that each tenant may hold, by tenant; none where the run's inputs are not there."""
    try:
        quotas = quotas_from(result.origin("tenant_usage", allow_code=True).quotas)  # its policy is never made
    except InputError:
        return {}
    return {tenant: limits["gpu_milli"] / GPU_MILLI for tenant, limits in quotas.items() if "gpu_milli" in limits}
