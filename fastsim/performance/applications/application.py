"""One application: what its training jobs really do on each GPU model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fastsim.errors import InputError
from fastsim.performance.applications.step_times import StepTimes, packed
from fastsim.performance.applications.training_curve import TrainingCurve

TOLERANCE = 1e-8
"""Excess over a whole number that counts as rounding."""
LONGEST_S = 12 * 3600.0
"""Longest duration of a job on a tuned size of several GPUs, seconds."""


class Split(NamedTuple):
    """Samples a GPU takes at once, and turns before the one that updates."""

    atomic: int
    accum: int


@dataclass(frozen=True, eq=False)
class Application:
    """One kind of training job.

    ``restart_s`` is the time of a checkpoint and a restart, ``believed_restart_s`` the scheduler's estimate of it. Jobs
    run ``slowdown`` times slower than their measured steps.
    """

    name: str
    curve: TrainingCurve
    steps: Mapping[str, StepTimes]
    restart_s: float = 30.0
    believed_restart_s: float = 30.0
    slowdown: float = 1.0

    def __post_init__(self) -> None:
        if not self.steps:
            raise InputError(f"application {self.name}", "no GPU model", "step times on one or more")
        for field in ("restart_s", "believed_restart_s", "slowdown"):
            value = getattr(self, field)
            if not (0 <= value < math.inf) or (field == "slowdown" and not value):
                raise InputError(f"application {self.name}: {field}", value, "0 or more (slowdown: above 0)")

    @property
    def init_batch(self) -> int:
        """Batch size a user would start with, samples."""
        return self.curve.init_batch

    @property
    def max_batch(self) -> int:
        """Largest batch size with which training still works, samples."""
        return self.curve.max_batch

    def on(self, gpu_model: str) -> StepTimes:
        """Step times on one GPU model; InputError where it was not measured."""
        if gpu_model not in self.steps:
            raise InputError(f"application {self.name}: GPU model", repr(gpu_model), f"one of {', '.join(self.steps)}")
        return self.steps[gpu_model]

    def rate_ratio(self, gpu_model: str, other: str) -> float:
        """How many times faster one GPU of a model is than one of another, each with its largest batch."""
        return self.on(gpu_model).one_gpu_rate / self.on(other).one_gpu_rate

    def split(self, gpu_model: str, placement: Sequence[int], batch: int) -> Split:
        """A fixed batch size in as few turns as fit; one GPU takes two, to learn the noise, above the initial size."""
        gpus, high = sum(placement), self.on(gpu_model).largest(placement)
        least = 1 if gpus == 1 and batch > self.init_batch else 0
        return fixed_split(batch, gpus, high, self.max_batch, least)

    def steps_per_s(self, gpu_model: str, placement: Sequence[int], batch: int) -> float:
        """Updates per second of a fixed batch size."""
        atomic, accum = self.split(gpu_model, placement, batch)
        step = self.on(gpu_model).seconds(placement, atomic)
        return 1.0 / (step.step_s + step.turn_s * accum)


def fixed_split(batch: int, gpus: int, high: int, max_batch: int, least_accum: int = 0) -> Split:
    """A batch size in as few equal turns of at most ``high`` samples on each GPU as possible."""
    local = math.ceil(batch / gpus - TOLERANCE)
    accum = max(math.ceil(local / high - TOLERANCE) - 1, least_accum)
    return Split(min(math.ceil(local / (accum + 1) - TOLERANCE), max_batch // (gpus * (accum + 1))), accum)


class TunedConfig(NamedTuple):
    """Seconds of a whole job alone on its GPUs, their number, and the batch size in samples."""

    jct_s: float
    num_gpu: int
    batch_size: int


def tuned_configs(
    app: Application, gpu_model: str, gpus_per_node: int, max_gpus: int, low: float = 0.5, high: float = 0.8
) -> list[TunedConfig]:
    """Sizes of more than one GPU whose speedup for each GPU is between ``low`` and ``high``; else one GPU.

    Sizes are the even numbers below ``max_gpus``; each comes with its fastest recorded batch size.
    """
    sizes = [1, *range(2, 2 * (max_gpus // 2), 2)]
    lasting = {n: _jcts(app, gpu_model, gpus_per_node, n) for n in sizes if n * app.on(gpu_model).low <= app.max_batch}
    best = [min(jcts) for jcts in lasting.values() if jcts]
    alone = next((config for config in best if config.num_gpu == 1), None)
    if alone is None:
        raise InputError(f"application {app.name} on {gpu_model}", "batch sizes not measured on one GPU", "all of them")
    shorter = [config for config in best[1:] if config.jct_s < LONGEST_S]
    return [config for config in shorter if low < alone.jct_s / config.jct_s / config.num_gpu < high] or [alone]


def _jcts(app: Application, gpu_model: str, gpus_per_node: int, num_gpu: int) -> list[TunedConfig]:
    """The whole job with each recorded batch size; none at all if one of them was not measured on so many GPUs."""
    times, placement = app.on(gpu_model), packed(num_gpu, gpus_per_node)
    configs = []
    for batch in app.curve.batches:
        if (local := math.ceil(batch / num_gpu - TOLERANCE)) < times.low:
            continue
        accum = math.ceil(local / times.high - TOLERANCE) - 1
        try:
            step = times.seconds(placement, math.ceil(local / (accum + 1) - TOLERANCE))
        except InputError:
            return []
        jct_s = app.curve.iteration(batch, app.curve.epochs - 1) * (step.step_s + accum * step.turn_s)
        configs.append(TunedConfig(jct_s, num_gpu, batch))
    return configs
