"""The applications that ship with fastsim: a small model of training, not measurements.

A turn takes a fixed time for kernel launches and the time of its arithmetic at 35 % of the GPU's peak. Gradients travel
around a ring, at the speed of its slowest link, and half of that hides behind the arithmetic. Gradients get noisier as
training goes on, so larger batches pay off late: an epoch is so many samples' worth of progress, and a batch of
`scale` times the initial size makes (var + sqr) / (var / scale + sqr) times the progress of an initial one.

Applications and machines have the names of the published Sia experiments (aws: T4, rtx: RTX 2080 Ti, dgx-ext: A100),
so workloads made for those run here too. Measured ones: `fastsim import sia`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from fastsim.performance.applications.application import Application
from fastsim.performance.applications.step_times import MOST_NODES, Placement, StepRow, StepTimes, packed
from fastsim.performance.applications.training_curve import EpochRow, TrainingCurve


class _Machine(NamedTuple):
    gpus: int
    peak_gflop_s: float
    memory_mib: float
    inner_mib_s: float
    outer_mib_s: float


class _Network(NamedTuple):
    init_batch: int
    doublings: int
    epochs: int
    samples: int
    fixed_s: float
    gflop_sample: float
    base_mib: float
    sample_mib: float
    gradient_mib: float
    first_noise: float
    last_noise: float
    restart_s: float


MACHINES = {
    "aws": _Machine(4, 8_100, 15_100, 6_000, 1_500),
    "dgx-ext": _Machine(8, 62_000, 40_500, 90_000, 10_000),
    "rtx": _Machine(8, 13_450, 11_000, 6_000, 3_000),
}
"""GPUs of a machine, peak GFLOP/s of a GPU, its memory in MiB, and MiB/s inside a machine and between two."""
NETWORKS = {
    "bert": _Network(12, 5, 2, 88_000, 0.060, 65.0, 3_000, 800, 420, 30, 150, 120),
    "cifar10": _Network(128, 5, 100, 50_000, 0.020, 1.7, 900, 3, 45, 300, 6_000, 50),
    "deepspeech2": _Network(20, 5, 80, 7_100, 0.080, 12.0, 1_500, 100, 150, 20, 400, 25),
    "imagenet": _Network(200, 6, 90, 1_281_000, 0.060, 12.3, 1_500, 48, 98, 200, 8_000, 250),
    "ncf": _Network(256, 7, 10, 4_970_000, 0.004, 0.001, 800, 0.3, 32, 500, 40_000, 15),
    "yolov3": _Network(8, 6, 50, 16_500, 0.050, 65.0, 2_000, 900, 235, 20, 300, 80),
}
"""Batch sizes in samples and doublings, training set, cost of a turn and of a sample, MiB, and noise var / sqr."""
EFFICIENCY = 0.35
"""Share of the peak that the arithmetic reaches."""
HIDDEN = 0.5
"""Share of the network's time behind which the arithmetic goes on."""
BATCHES = 9
"""Batch sizes measured on each placement."""


def model_applications() -> dict[str, Application]:
    """Six applications on three kinds of machines, by name."""
    return {name: _application(name) for name in sorted(NETWORKS)}


def _application(name: str) -> Application:
    network = NETWORKS[name]
    steps = {
        machine: StepTimes(f"{name} on {machine}", _measurements(network, MACHINES[machine])) for machine in MACHINES
    }
    curve = TrainingCurve(name, _epochs(network))
    return Application(name, curve, steps, network.restart_s, network.restart_s)


def _epochs(network: _Network) -> Iterator[EpochRow]:
    """Recorded epochs at the initial batch size and its doublings."""
    epoch = np.arange(network.epochs)
    sqr = (network.first_noise / network.last_noise) ** (epoch / max(network.epochs - 1, 1))
    each = network.samples / network.init_batch
    for doubling in range(network.doublings + 1):
        gain = (network.first_noise + sqr) / (network.first_noise / 2**doubling + sqr)
        iterations = np.cumsum(np.ceil(each / gain))
        metric = 1.0 - np.exp(-3.0 * (epoch + 1) / network.epochs)
        for e in epoch.tolist():
            progress, iteration = each * (e + 1), float(iterations[e])
            batch = network.init_batch << doubling
            yield EpochRow(batch, e, progress, iteration, float(metric[e]), float(sqr[e]), network.first_noise)


def _measurements(network: _Network, machine: _Machine) -> Iterator[StepRow]:
    """Measurements of all placements on one or two machines and of a few full ones, and of sizes by nodes and GPUs."""
    largest = int(min((machine.memory_mib - network.base_mib) // network.sample_mib, network.init_batch << 7))
    smallest = max(1, min(network.init_batch // 4, largest // 4))
    batches = sorted({round(smallest * (largest / smallest) ** (i / (BATCHES - 1))) for i in range(BATCHES)})
    placements: list[Placement] = [(gpus,) for gpus in range(1, machine.gpus + 1)]
    placements += [(few, many) for many in range(1, machine.gpus + 1) for few in range(1, many + 1)]
    placements += [packed(nodes * machine.gpus, machine.gpus) for nodes in (3, 4)]
    for placement in placements:
        digits = "".join(map(str, placement))
        for batch in batches:
            yield StepRow(
                digits,
                len(placement),
                sum(placement),
                batch,
                *_seconds(network, machine, len(placement), sum(placement), batch),
            )
    for nodes in range(1, MOST_NODES + 1):
        for gpus in sorted({nodes, nodes * max(1, machine.gpus // 2), nodes * machine.gpus}):
            for batch in batches:
                yield StepRow(None, nodes, gpus, batch, *_seconds(network, machine, nodes, gpus, batch))


def _seconds(network: _Network, machine: _Machine, nodes: int, gpus: int, batch: int) -> tuple[float, float]:
    """Seconds of a step and of the part of its network time that arithmetic does not hide."""
    turn_s = network.fixed_s + batch * network.gflop_sample / (EFFICIENCY * machine.peak_gflop_s)
    link_mib_s = machine.outer_mib_s if nodes > 1 else machine.inner_mib_s
    ring_s = 2 * (gpus - 1) / gpus * network.gradient_mib / link_mib_s
    sync_s = max(ring_s - HIDDEN * min(ring_s, turn_s), 0.0)
    return turn_s + sync_s, sync_s
