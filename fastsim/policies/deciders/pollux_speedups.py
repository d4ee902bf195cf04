"""How much faster jobs become with more GPUs, as far as they know; 1 is what a fair share of the cluster gives them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from fastsim.engine.adaptive.plan import JobView
from fastsim.errors import InputError
from fastsim.performance.applications.step_times import StepTimes
from fastsim.performance.goodput import Goodput, Limits

Floats = npt.NDArray[np.float64]

RESTART_S = 30.0
"""What Pollux reckons with for every restart, seconds."""
REMEMBERED = 1 << 12
"""Goodputs that are kept; most jobs ask for the same ones in several rounds."""


def fair_share(gpus: int, nodes: int, jobs: int) -> tuple[int, int]:
    """Nodes and replicas with which a job's speedup is 1: an equal part of the GPUs, as if they were on few nodes."""
    share = 1.0 / gpus
    return math.ceil(nodes * share), math.ceil(1.0 / share / jobs)


def speedups(jobs: Sequence[JobView], fair: tuple[int, int], most: int, tuned: bool) -> Floats:
    """Speedup of each job with up to ``most`` replicas on one node and on several (axes: job, several, replicas)."""
    found = np.empty((len(jobs), 2, most + 1))
    replicas = np.arange(1, most + 1)
    for row, job in zip(found, jobs, strict=True):
        goodput, limits = believed(job), limits_of(job, tuned)
        base = 0.0 if goodput is None else fair_goodput(goodput, fair, limits)
        row[:, 0], row[:, 1:] = 0.0, replicas / fair[1]
        if goodput is not None and base > 0:
            row[:, 1:] = _goodputs(goodput, limits, most) / base
    return found


@lru_cache(maxsize=REMEMBERED)
def _goodputs(goodput: Goodput, limits: Limits, most: int) -> Floats:
    """Goodput with up to ``most`` replicas (second axis) on one node and on several: the same until an epoch ends."""
    return goodput.best(np.array([[1], [2]]), np.arange(1, most + 1), limits).goodput.reshape(2, most)


@lru_cache(maxsize=REMEMBERED)
def fair_goodput(goodput: Goodput, fair: tuple[int, int], limits: Limits) -> float:
    """Goodput with a fair share, or with as much of it as a fixed batch size can use; 0 if it can use nothing."""
    found = goodput.best(fair[0], fair[1], limits).goodput
    if not found[0]:
        found = goodput.best(fair[0], np.arange(fair[1], 0, -1), limits).goodput
    usable = found[found > 0]
    return float(usable[0]) if len(usable) else 0.0


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
