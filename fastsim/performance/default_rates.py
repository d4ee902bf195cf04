"""The rates that ship with fastsim: a small model of training steps, not measurements.

A step takes a fixed time for the host and the kernel launches, and the time of its arithmetic at 35 % of the GPU's
peak. A gang does one such step on every GPU, then adds up gradients around a ring; its rate counts all GPUs' steps.
Two jobs that share GPUs and do not fit into their memory together cannot run; otherwise each gets its share of the
busy time, less 5 % for switching. Peaks and memory are those of the boards' data sheets (K80: one of its two chips);
the cost of a sample is a round estimate from the size of the network. Measured rates: `fastsim import gavel-rates`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.performance.gavel_rates import JOB_NAMES
from fastsim.performance.rate_table import RateArrays

Floats = npt.NDArray[np.float64]


class _Gpu(NamedTuple):
    peak_gflop_s: float
    memory_mib: float
    link_mib_s: float


class _Network(NamedTuple):
    fixed_s: float
    gflop_sample: float
    base_mib: float
    sample_mib: float
    gradient_mib: float
    gangs: bool


GPUS = {
    "k80": _Gpu(4_370, 11_441, 7_000),
    "p100": _Gpu(9_300, 16_280, 10_000),
    "v100": _Gpu(15_700, 16_160, 20_000),
}
"""Peak GFLOP/s in single precision, memory in MiB, and MiB/s between the GPUs of one gang."""
NETWORKS = {
    "ResNet-18": _Network(fixed_s=0.012, gflop_sample=1.7, base_mib=900, sample_mib=6, gradient_mib=45, gangs=True),
    "ResNet-50": _Network(fixed_s=0.030, gflop_sample=12.3, base_mib=1300, sample_mib=85, gradient_mib=98, gangs=True),
    "Transformer": _Network(fixed_s=0.022, gflop_sample=6.0, base_mib=900, sample_mib=25, gradient_mib=230, gangs=True),
    "LM": _Network(fixed_s=0.014, gflop_sample=4.2, base_mib=800, sample_mib=30, gradient_mib=110, gangs=True),
    "Recommendation": _Network(
        fixed_s=0.008, gflop_sample=0.15, base_mib=1000, sample_mib=0.6, gradient_mib=200, gangs=False
    ),
    "A3C": _Network(fixed_s=0.140, gflop_sample=20.0, base_mib=1500, sample_mib=0, gradient_mib=5, gangs=False),
    "CycleGAN": _Network(fixed_s=0.055, gflop_sample=900.0, base_mib=4000, sample_mib=0, gradient_mib=90, gangs=False),
}
"""Seconds and MiB independent of the batch, cost and MiB of a sample, MiB of gradients, and whether there are gangs."""
GANGS = (1, 2, 4, 8)
"""Numbers of GPUs."""
EFFICIENCY = 0.35
"""Share of the peak that the arithmetic reaches."""
SWITCHING = 1.05
"""Factor by which two jobs on one GPU are slowed, beside their contention."""


def model_rates() -> RateArrays:
    """Rates of Gavel's 26 job types on K80, P100 and V100, alone and in pairs, steps/s."""
    kinds = [(name, n) for name in sorted(JOB_NAMES) for n in GANGS if n == 1 or NETWORKS[_network(name)[0]].gangs]
    alone = np.zeros((len(kinds), len(GPUS)))
    shared = np.full((len(kinds), len(kinds), len(GPUS)), np.nan)
    size = np.array([n for _, n in kinds])
    peers = size[:, None] == size[None, :]
    for column, gpu in enumerate(GPUS.values()):
        rate, busy, memory = (np.array(v) for v in zip(*(_alone(name, n, gpu) for name, n in kinds), strict=True))
        fits = memory <= gpu.memory_mib
        alone[:, column] = np.where(fits, rate, 0.0)
        together = memory[:, None] + memory[None, :] <= gpu.memory_mib
        slowed = rate[:, None] / (SWITCHING * np.maximum(1.0, busy[:, None] + busy[None, :]))
        shared[peers, column] = np.where(together, slowed, 0.0)[peers]
    return RateArrays(tuple(kinds), tuple(GPUS), alone, shared)


def _network(workload: str) -> tuple[str, int]:
    """Network and batch size of a job type."""
    match = re.fullmatch(r"(.*) \(batch size (\d+)\)", workload)
    return (match[1], int(match[2])) if match else (workload, 1)


def _alone(workload: str, num_gpu: int, gpu: _Gpu) -> tuple[float, float, float]:
    """Rate alone in steps/s, share of the time that each GPU is busy, MiB on each GPU."""
    name, batch_size = _network(workload)
    network = NETWORKS[name]
    busy_s = batch_size * network.gflop_sample / (EFFICIENCY * gpu.peak_gflop_s)
    ring_s = 2 * (num_gpu - 1) / num_gpu * network.gradient_mib / gpu.link_mib_s
    step_s = network.fixed_s + busy_s + ring_s
    return num_gpu / step_s, busy_s / step_s, network.base_mib + batch_size * network.sample_mib
