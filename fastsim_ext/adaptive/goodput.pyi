"""Goodput of a training job whose batch size may change: samples a second, each weighed by what it teaches."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

def evaluated(
    perf: Floats,
    noise: Floats,
    nodes: Ints,
    replicas: Ints,
    atomic: Ints,
    accum: Ints,
    throughput: Floats,
    efficiency: Floats,
) -> None:
    """Samples/s and what a sample teaches, for each configuration with its batch size."""

def best(
    perf: Floats,
    noise: Floats,
    nodes: Ints,
    replicas: Ints,
    max_batch: int,
    low: int,
    high: int,
    accumulation: bool,
    tuned: bool,
    float32: bool,
    goodput: Floats,
    atomic: Ints,
    accum: Ints,
) -> None:
    """The best batch size of each configuration: goodput in samples/s, samples a GPU takes at once, extra turns."""

def staged(
    perf: Floats,
    noise: Floats,
    nodes: Ints,
    pipelines: Ints,
    max_batch: int,
    stages: int,
    micro: int,
    goodput: Floats,
) -> None:
    """Goodput of each configuration of pipelines, in a unit of its own."""
