"""What tables of ordered rounds have besides those of all rounds: CPUs and memory held, of use, and needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from fastsim.engine.tables import EVENTS

if TYPE_CHECKING:
    from fastsim.engine.orders.run import OrderedOutcome

Floats = npt.NDArray[np.float64]

BY_ROUND = {
    "cpu_milli_used": "cpu_used", "memory_mib_used": "memory_used", "cpu_milli_demand": "cpu_demand",
    "memory_mib_demand": "memory_demand", "jobs_at_fair_share": "at_fair",
}  # fmt: skip
"""Columns of the timeline that are known when a round begins, null in other rows; their names in a round's record."""


def timeline_columns(run: OrderedOutcome) -> dict[str, pl.Series]:
    """Columns beside the timeline's own: what of the CPUs and memory held is of use to the jobs at work, what those
    would need, how many of them go no faster than with their fair share."""
    begins = run.rows["kind"] == EVENTS.index("sample")
    row = pl.Series(np.where(begins, np.searchsorted(run.turns["round"], run.rows["seq"]), 0))
    turns = {name: pl.Series(np.ascontiguousarray(run.turns[field])) for name, field in BY_ROUND.items()}
    return {name: column.gather(row).set(~pl.Series(begins), None) for name, column in turns.items()}


def turn_figures(run: OrderedOutcome) -> dict[str, Any]:
    """Means over the rounds that were played, percent of the cluster; and over time, GPUs that jobs there ask for."""
    assert run.needs is not None
    caps = run.needs.cap__sr.sum(axis=0)
    found: dict[str, Any] = {}
    for name, cap in (("cpu", float(caps[0])), ("memory", float(caps[1]))):
        for kind in ("alloc", "used", "demand"):
            found[f"round_{name}_{kind}_pct"] = _mean(run.turns[f"{name}_{kind}"], cap)
    running = run.turns["running"].sum()
    found["fair_share_pct"] = float(100 * run.turns["at_fair"].sum() / running) if running else None
    found["gpu_demand_pct"] = gpu_demand_pct(run)
    found["reclaims"] = run.reclaims
    return found


def gpu_demand_pct(run: OrderedOutcome) -> float | None:
    """GPUs of all jobs that are there, waiting or at work, over those of the cluster; mean over the run, percent."""
    jobs, gpus = run.jobs, sum(run.gpus__g)
    if not len(jobs) or not gpus:
        return None
    begin_s, end_s = float(jobs["submit_s"].min()), run.makespan_s
    stay_s = np.where(np.isnan(jobs["finish_s"]), end_s, jobs["finish_s"]) - jobs["submit_s"]
    return float(100 * (jobs["num_gpu"] * stay_s).sum() / (gpus * (end_s - begin_s))) if end_s > begin_s else None


def _mean(values: Floats, cap: float) -> float | None:
    return float(100 * values.mean() / cap) if len(values) and cap else None
