"""Goodput of a job on so many GPUs, and the batch size of most goodput.

The model is that of Pollux (A. Qiao et al., OSDI 2021): throughput in samples/s, times the statistical efficiency: the
progress that a sample makes in a batch of that size, relative to one in a batch of the initial size. The arithmetic is
in `fastsim_ext.adaptive.goodput`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.errors import InputError
from fastsim_ext.adaptive import goodput as kernels

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Perf(NamedTuple):
    """Parameters of step times, seconds: fixed and for each sample (c), between nodes (n), in a node (r), overlap."""

    alpha_c: float
    beta_c: float
    alpha_n: float
    beta_n: float
    alpha_r: float
    beta_r: float
    gamma: float


class Noise(NamedTuple):
    """Gradients at one stage of training: squared norm, variance, and the batch size both refer to, samples."""

    sqr: float
    var: float
    init_batch: int


class BatchLimits(NamedTuple):
    """Batch sizes a job may use, samples.

    ``max_batch`` bounds a step of all GPUs, ``low`` and ``high`` the samples that a GPU takes at once. Without
    ``accumulation`` a step is one turn; if not ``tuned``, ``max_batch`` is the batch size. ``float32`` computes the
    candidates in single precision, as the scheduler of the published simulator does: sometimes another one is best.
    """

    max_batch: int
    low: int
    high: int
    accumulation: bool = True
    tuned: bool = True
    float32: bool = False


class Best(NamedTuple):
    """For each configuration: goodput (0 where no batch size is possible), samples a GPU takes at once, extra turns."""

    goodput: Floats
    atomic: Ints
    accum: Ints


class Evaluation(NamedTuple):
    """For each configuration: samples/s, and progress of a sample relative to one in a batch of the initial size."""

    throughput: Floats
    efficiency: Floats

    @property
    def goodput(self) -> Floats:
        """Samples/s, weighted by the efficiency."""
        return self.throughput * self.efficiency


@dataclass(frozen=True)
class Goodput:
    """A job's goodput at one stage of training on one kind of GPU."""

    perf: Perf
    noise: Noise

    @cached_property
    def _perf(self) -> Floats:
        return np.array(self.perf, np.float64)

    @cached_property
    def _noise(self) -> Floats:
        return np.array(self.noise, np.float64)

    def evaluated(
        self, nodes: npt.ArrayLike, replicas: npt.ArrayLike, atomic: npt.ArrayLike, accum: npt.ArrayLike = 0
    ) -> Evaluation:
        """Throughput and efficiency of configurations with known batch sizes; arguments are broadcast."""
        n, k, m, s = (_ints(part) for part in np.broadcast_arrays(nodes, replicas, atomic, accum))
        _at_least("replicas", k, 1)
        _at_least("batch size", k * m * (s + 1), self.noise.init_batch)
        evaluation = Evaluation(np.empty(len(k)), np.empty(len(k)))
        kernels.evaluated(self._perf, self._noise, n, k, m, s, *evaluation)
        return evaluation

    def best(self, nodes: npt.ArrayLike, replicas: npt.ArrayLike, limits: BatchLimits) -> Best:
        """The batch size of most goodput in each configuration; the smaller index of equals."""
        n, k = (_ints(part) for part in np.broadcast_arrays(nodes, replicas))
        _at_least("replicas", k, 1)
        if limits.max_batch < self.noise.init_batch or limits.low < 1:
            found = f"{limits.max_batch} samples, {limits.low} or more on a GPU"
            raise InputError("goodput: batch size", found, f"{self.noise.init_batch} or more, 1 or more on a GPU")
        configurations = Best(np.empty(len(k)), np.empty(len(k), np.int64), np.empty(len(k), np.int64))
        kernels.best(self._perf, self._noise, n, k, *limits, *configurations)
        return configurations

    def staged(
        self, nodes: npt.ArrayLike, pipelines: npt.ArrayLike, max_batch: int, stages: int, micro: int = 48
    ) -> Floats:
        """Goodput of pipelines of ``stages`` GPUs with ``micro`` micro-batches of one sample, in a unit of its own."""
        n, k = (_ints(part) for part in np.broadcast_arrays(nodes, pipelines))
        _at_least("pipelines", k, 1)
        _at_least("batch size", k * micro, self.noise.init_batch)
        sizes = np.empty(len(k))
        kernels.staged(self._perf, self._noise, n, k, max_batch, stages, micro, sizes)
        return sizes


def _ints(values: npt.ArrayLike) -> Ints:
    return np.ascontiguousarray(values, np.int64).reshape(-1)


def _at_least(quantity: str, values: Ints, least: int) -> None:
    if len(values) and int(values.min()) < least:
        raise InputError(f"goodput: {quantity}", int(values.min()), f"{least} or more")
