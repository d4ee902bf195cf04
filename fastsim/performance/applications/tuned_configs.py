"""Sizes that a careful user would ask for: the batch size is the best one, and the GPUs are put to good use."""

from __future__ import annotations

import math
from typing import NamedTuple

from fastsim.errors import InputError
from fastsim.performance.applications.application import TOLERANCE, Application
from fastsim.performance.applications.step_times import packed

LONGEST_S = 12 * 3600.0
"""A job that takes longer than this alone on its GPUs is not asked for, seconds."""


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
    alone = next((found for found in best if found.num_gpu == 1), None)
    if alone is None:
        raise InputError(f"application {app.name} on {gpu_model}", "batch sizes not measured on one GPU", "all of them")
    shorter = [found for found in best[1:] if found.jct_s < LONGEST_S]
    return [found for found in shorter if low < alone.jct_s / found.jct_s / found.num_gpu < high] or [alone]


def _jcts(app: Application, gpu_model: str, gpus_per_node: int, num_gpu: int) -> list[TunedConfig]:
    """The whole job with each recorded batch size; none at all if one of them was not measured on so many GPUs."""
    times, placement = app.on(gpu_model), packed(num_gpu, gpus_per_node)
    found = []
    for batch in app.curve.batches:
        if (local := math.ceil(batch / num_gpu - TOLERANCE)) < times.low:
            continue
        accum = math.ceil(local / times.high - TOLERANCE) - 1
        try:
            step = times.seconds(placement, math.ceil(local / (accum + 1) - TOLERANCE))
        except InputError:
            return []
        jct_s = app.curve.iteration(batch, app.curve.epochs - 1) * (step.step_s + accum * step.turn_s)
        found.append(TunedConfig(jct_s, num_gpu, batch))
    return found
