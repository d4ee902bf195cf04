"""Figures of a run in rounds: completion times, use of the GPUs, cost, deadlines, fairness, leases.

Jobs that count are those of the window, or all; a job that was given up or is not complete has no completion time.
Means and percentiles are those of ``numpy``, NaN without a value.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.engine.rounds.options import USE_FROM_ZERO
from fastsim.engine.rounds.outcome import RoundOutcome
from fastsim.errors import InputError

Floats = npt.NDArray[np.float64]

PERCENTS = (50, 95, 99)
"""Percentiles of completion times."""


@dataclass(frozen=True)
class RoundFigures:
    """Figures of a run in rounds; seconds, except where the name has another unit."""

    jobs: int
    """Jobs that count."""
    completed: int
    given_up: int
    jct_mean_s: float
    """Mean of completion less submission, over the jobs that count."""
    jct_p50_s: float
    jct_p95_s: float
    jct_p99_s: float
    jct_max_s: float
    jct_mean_by_weight_s: dict[float, float]
    """The mean of each weight, over the jobs that count."""
    makespan_s: float
    utilization: float
    """Busy part of the time, mean over all GPUs, 0 to 1."""
    utilization_by_model: dict[str, float]
    cost: float
    """$, of all jobs, whether they count or not."""
    slo_violations: int
    lease_extension_share: float
    """Leases that kept their GPUs over those that could go on in the next round, 0 to 1."""
    rounds: int
    calls: int
    """Calls of the policy."""
    solver_s: float
    """CPU seconds in solvers."""
    rho_mean: float = float("nan")
    """Finish-time fairness: completion time over that of the same job alone."""
    rho_max: float = float("nan")


def round_figures(
    run: RoundOutcome, *, isolated_s: npt.ArrayLike | None = None, slo_compare_absolute: bool = False
) -> RoundFigures:
    """All figures of a run; ``isolated_s`` is each job's completion time alone, in order of the ids, seconds."""
    jobs = counted(run)
    jct = completion_times(jobs)
    middle, high, highest = percentiles(jct, PERCENTS)
    rho = np.empty(0) if isolated_s is None else finish_time_fairness(run, isolated_s)
    return RoundFigures(
        jobs=len(jobs), completed=len(jct), given_up=int(given_up(jobs).sum()),
        jct_mean_s=mean(jct), jct_p50_s=middle, jct_p95_s=high, jct_p99_s=highest, jct_max_s=largest(jct),
        jct_mean_by_weight_s=means_by_weight(jobs), makespan_s=run.makespan_s, utilization=utilization(run),
        utilization_by_model=utilization_by_model(run), cost=float(run.jobs["cost"].sum()),
        slo_violations=slo_violations(run, slo_compare_absolute), lease_extension_share=lease_extension_share(run),
        rounds=run.rounds, calls=run.calls, solver_s=run.solver_s, rho_mean=mean(rho), rho_max=largest(rho),
    )  # fmt: skip


def counted(run: RoundOutcome) -> npt.NDArray[Any]:
    """Records of the jobs that count."""
    first, last = run.options.window or (0, len(run.jobs))
    return run.jobs[(run.jobs["id"] >= first) & (run.jobs["id"] < last)]


def completion_times(jobs: npt.NDArray[Any]) -> Floats:
    """Completion less submission of the jobs that are complete, seconds."""
    times: Floats = jobs["finish_s"] - jobs["submit_s"]
    return times[~np.isnan(times)]


def given_up(jobs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which jobs ended without being complete."""
    incomplete: npt.NDArray[np.bool_] = (jobs["ended"] == 1) & np.isnan(jobs["finish_s"])
    return incomplete


def means_by_weight(jobs: npt.NDArray[Any]) -> dict[float, float]:
    """Mean completion time of each weight, seconds; the smallest weight first."""
    weights = np.unique(jobs["weight"]).tolist()
    return {weight: mean(completion_times(jobs[jobs["weight"] == weight])) for weight in weights}


def utilization(run: RoundOutcome) -> float:
    """Busy part of the time, mean over all GPUs; 0 if no time passed."""
    span_s = measured_s(run)
    return mean(run.busy_s / span_s) if span_s > 0 else 0.0


def utilization_by_model(run: RoundOutcome) -> dict[str, float]:
    """Busy part of the time of each GPU model; 0 for a model without GPUs."""
    ends = np.cumsum(run.gpus__g)[:-1]
    parts = np.split(run.busy_s, ends)
    names, span_s = run.setting.gpu_models, measured_s(run)
    return {
        name: mean(busy / span_s) if len(busy) and span_s > 0 else 0.0 for name, busy in zip(names, parts, strict=True)
    }


def measured_s(run: RoundOutcome) -> float:
    """Seconds over which utilization is measured: from the first arrival, or from 0 with ``use_from_zero``."""
    return run.makespan_s if run.options.quirk(USE_FROM_ZERO) else run.span_s


def slo_violations(run: RoundOutcome, compare_absolute: bool = False) -> int:
    """Jobs that count and were not complete at their deadline, as far as the run got.

    ``compare_absolute`` is Gavel's count: of complete jobs only, and an instant, the deadline, compared with a
    duration, the completion time.
    """
    jobs = counted(run)
    finish_s, deadline_s = jobs["finish_s"], jobs["deadline_s"]
    if compare_absolute:
        return int((finish_s - jobs["submit_s"] > deadline_s).sum())
    never = np.isnan(finish_s) & np.isfinite(deadline_s)
    late = np.where(never, given_up(jobs) | (run.makespan_s > deadline_s), finish_s > deadline_s)
    return int(late.sum())


def lease_extension_share(run: RoundOutcome) -> float:
    """Leases that kept their GPUs over those that could; NaN if none could."""
    return run.extensions / run.opportunities if run.opportunities else float("nan")


def finish_time_fairness(run: RoundOutcome, isolated_s: npt.ArrayLike) -> Floats:
    """Completion time of each job that counts over that of the same job alone; NaN if it is not complete.

    ``isolated_s`` has one value for every job of the run, in order of the ids, seconds.
    """
    alone = np.asarray(isolated_s, np.float64)
    if alone.shape != run.jobs.shape:
        raise InputError("isolated_s", f"{alone.size} times", f"one for each of the {len(run.jobs)} jobs")
    jobs = counted(run)
    rho: Floats = (jobs["finish_s"] - jobs["submit_s"]) / alone[jobs["id"]]
    return rho


def mean(values: Floats) -> float:
    """Mean of the values that are known; NaN without one."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def largest(values: Floats) -> float:
    """The largest value that is known; NaN without one."""
    known = values[~np.isnan(values)]
    return float(known.max()) if len(known) else float("nan")


def percentiles(values: Floats, percents: tuple[int, ...]) -> tuple[float, ...]:
    """Percentiles with linear interpolation between the two nearest ranks; NaN without values."""
    if not len(values):
        return (float("nan"),) * len(percents)
    return tuple(float(value) for value in np.percentile(values, percents))
