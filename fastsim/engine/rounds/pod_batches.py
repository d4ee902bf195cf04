"""Pods as jobs of ordered rounds: those with equal requests are of one kind, which needs their CPUs and memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastsim.engine.rounds.job_batches import JobBatches
from fastsim.performance.oracle import POD, Oracle
from fastsim.workload import Workload
from fastsim.workload import schema as s

Request = tuple[int, int, int]
"""GPUs, milli-CPU, MiB."""


def requests_of(workload: Workload) -> list[Request]:
    """The different requests of a workload, sorted."""
    return sorted({request for batch in workload.batches() for request in _rows(batch)})


def request_oracle(requests: list[Request], gpu_models: tuple[str, ...]) -> Oracle:
    """One step a second for every request, on every GPU model, GPUs never shared."""
    shape = (len(requests), len(gpu_models))
    together = np.broadcast_to(np.zeros(1), (len(requests), *shape))
    return Oracle(tuple((POD, request[0]) for request in requests), gpu_models, np.ones(shape), together, "pods")


def needs_by_kind(requests: list[Request]) -> npt.NDArray[np.float64]:
    """Milli-CPU and MiB of every request."""
    return np.array([request[1:] for request in requests], np.float64).reshape(len(requests), 2)


@dataclass
class PodBatches(JobBatches):
    """Pods as columns of the engine; a kind is the position of their request."""

    requests: list[Request] = field(kw_only=True)

    def plain_kinds(self, batch: pa.RecordBatch) -> npt.NDArray[np.int32]:
        """The position of every row's request."""
        index = {request: kind for kind, request in enumerate(self.requests)}
        return np.array([index[request] for request in _rows(batch)], np.int32)


def _rows(batch: pa.RecordBatch) -> list[Any]:
    columns = (batch[name].to_pylist() for name in (s.NUM_GPU, s.CPU_MILLI, s.MEMORY_MIB))
    return list(zip(*columns, strict=True))
