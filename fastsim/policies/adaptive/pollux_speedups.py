"""How much faster jobs become with more GPUs, as far as they know; 1 is what a fair share of the cluster gives them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fastsim.adaptive_plan import JobView
from fastsim.apps.step_times import StepTimes
from fastsim.errors import InputError
from fastsim.goodput import Goodput, Limits

Floats = npt.NDArray[np.float64]

RESTART_S = 30.0
"""What Pollux reckons with for every restart, seconds."""


def fair_share(gpus: int, nodes: int, jobs: int) -> tuple[int, int]:
    """Nodes and replicas with which a job's speedup is 1: an equal part of the GPUs, as if they were on few nodes."""
    share = 1.0 / gpus
    return math.ceil(nodes * share), math.ceil(1.0 / share / jobs)


def speedups(jobs: Sequence[JobView], fair: tuple[int, int], most: int, tuned: bool) -> Floats:
    """Speedup of each job with up to ``most`` replicas on one node and on several (axes: job, several, replicas)."""
    found = np.empty((len(jobs), 2, most + 1))
    for row, job in zip(found, jobs, strict=True):
        goodput, replicas = believed(job), np.arange(1, most + 1)
        row[:, 0] = 0.0
        if goodput is None:
            row[:, 1:] = replicas / fair[1]
            continue
        limits = limits_of(job, tuned)
        base = goodput.best(fair[0], fair[1], limits).goodput[0]
        row[:, 1:] = goodput.best(np.array([[1], [2]]), replicas, limits).goodput.reshape(2, most) / base
    return found


def believed(job: JobView) -> Goodput | None:
    """A job's goodput on any GPU, as Pollux does not tell them apart; None before it has trained."""
    belief = next(iter(job.beliefs.values()), None)
    return None if belief is None or job.noise is None else Goodput(belief.perf, job.noise)


def limits_of(job: JobView, tuned: bool) -> Limits:
    """Batch sizes that a job may use: those of the first GPU model it was ever measured on."""
    times = first_times(job)
    if tuned and job.job.mode == "adaptive":
        return Limits(job.application.max_batch, times.low, times.high)
    return Limits(job.job.batch_size, times.low, times.high, tuned=False)


def first_times(job: JobView) -> StepTimes:
    """Step times on the first GPU model, by name."""
    app = job.application
    times = app.steps[min(app.steps)]
    if times.stages > 1:
        expected = "an application that trains on one GPU: Pollux knows no pipelines"
        raise InputError(f"application {app.name}", f"pipelines of {times.stages} GPUs", expected)
    return times


def keeping(jobs: Sequence[JobView]) -> Floats:
    """Part of each job's life that another restart leaves to its work."""
    age = np.array([job.age_s for job in jobs])
    restarts = np.array([job.restarts for job in jobs])
    found: Floats = np.maximum(age - restarts * RESTART_S, 0.0) / (age + RESTART_S)
    return found
