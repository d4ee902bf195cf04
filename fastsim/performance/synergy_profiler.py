"""From a few measurements to a job's sensitivity: the analytical part of Synergy's profiler.

Time without stalls is measured with several numbers of CPUs at full memory; memory is modelled. Of a data set as much
is cached as memory holds, and an epoch finds that part there whatever the order of reading (a MinIO cache). With ``c``
CPUs and a cache of ``m`` GB out of ``D`` an epoch takes

    max(compute_s(c), m / memory_gb_s(c) + 1024 (D - m) / disk_mb_s)

and the storage must deliver ``1024 (D - m) / (compute_s(c) - m / memory_gb_s(c))`` MB/s to keep up; where it
cannot, the demand is all its bandwidth. CPUs and GB here are those of the whole job of ``num_gpu`` GPUs.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fastsim.cluster.server import Server
from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.csv_table import csv_line, read_csv
from fastsim.foundation.parquet import replacing
from fastsim.performance.sensitivity_table import Grid, WorkloadProfile

Floats = npt.NDArray[np.float64]
PERCENTS = tuple(range(0, 101, 10))
"""Parts of the data set whose caching is looked at, per cent."""
MB_PER_GB = 1024


@dataclass(frozen=True, eq=False)
class Measured:
    """One job: seconds of an iteration and GB/s read from memory with ``cpus__c[c]`` CPUs, and its data."""

    cpus__c: Floats
    iteration_s__c: Floats
    memory_gb_s__c: Floats
    dataset_gb: float
    disk_mb_s: float
    samples: int
    batch_size: int
    num_gpu: int = 1

    def __post_init__(self) -> None:
        for name in ("dataset_gb", "disk_mb_s", "samples", "batch_size", "num_gpu"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ScenarioError(f"profile: {name}", value, "a number above 0")

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str], **data: Any) -> Measured:
        """Measurements of a CSV file with the columns cpus, iteration_s, memory_gb_s; the rest by name."""
        names = ("cpus", "iteration_s", "memory_gb_s")
        rows = read_csv(path, dict.fromkeys(names, pa.float64()), names).to_pylist()
        if not rows:
            raise InputError(str(path), "no measurements", "a row for each number of CPUs")
        for number, row in enumerate(rows):
            for name in names:
                if row[name] is None or not (math.isfinite(row[name]) and row[name] > 0):
                    raise InputError(f"{path}:{csv_line(path, number)}: {name}", row[name], "a number above 0")
        rows.sort(key=lambda row: float(row["cpus"]))
        columns = [np.array([row[name] for row in rows], np.float64) for name in names]
        if (np.diff(columns[0]) == 0).any():
            twice = columns[0][np.flatnonzero(np.diff(columns[0]) == 0)[0]]
            raise InputError(f"{path}: cpus", f"{twice:g} twice", "every number of CPUs once")
        return cls(columns[0], columns[1], columns[2], **data)

    @property
    def iterations(self) -> float:
        """Iterations of an epoch."""
        return self.samples / self.num_gpu / self.batch_size

    @property
    def cached_gb(self) -> list[float]:
        """Sizes of the cache that are looked at."""
        return [percent / 100 * self.dataset_gb for percent in PERCENTS]

    def epoch_s(self, cpus: float, cached_gb: float) -> float:
        """Seconds of an epoch; between two measured numbers of CPUs the rate is interpolated."""
        compute_s, memory_gb_s = self._with(cpus)
        return max(compute_s, self._fetch_s(cached_gb, memory_gb_s))

    def storage_mb_s(self, cpus: float, cached_gb: float) -> float:
        """Bandwidth that the storage has to deliver, or all it has where that is too little, MB/s."""
        compute_s, memory_gb_s = self._with(cpus)
        if self._fetch_s(cached_gb, memory_gb_s) > compute_s:
            return self.disk_mb_s
        missing_mb = (self.dataset_gb - cached_gb) * MB_PER_GB
        return missing_mb / (compute_s - cached_gb / memory_gb_s) if missing_mb > 0 else 0.0

    def _fetch_s(self, cached_gb: float, memory_gb_s: float) -> float:
        return cached_gb / memory_gb_s + (self.dataset_gb - cached_gb) * MB_PER_GB / self.disk_mb_s

    def _with(self, cpus: float) -> tuple[float, float]:
        """Seconds of an epoch without stalls, and GB/s from memory."""
        known = self.cpus__c
        if not known[0] <= cpus <= known[-1]:
            expected = f"{known[0]:g} to {known[-1]:g}, as measured"
            raise InputError("profile: CPUs", f"{cpus:g}", expected, "measure with fewer or more CPUs")
        at = np.flatnonzero(known == cpus)
        if len(at):
            iteration_s, memory_gb_s = float(self.iteration_s__c[at[0]]), float(self.memory_gb_s__c[at[0]])
        else:
            iteration_s = 1 / float(np.interp(cpus, known, 1 / self.iteration_s__c))
            memory_gb_s = float(np.interp(cpus, known, self.memory_gb_s__c))
        return iteration_s * self.iterations, memory_gb_s


def profile_document(measured: Measured) -> list[dict[str, Any]]:
    """Three objects: iteration seconds by CPUs, epoch seconds and storage MB/s by CPUs and per cent of data cached."""
    cpus = measured.cpus__c.tolist()
    names = [f"{count:g}" for count in cpus]
    by_cache = dict(zip(map(str, PERCENTS), measured.cached_gb, strict=True))
    epochs, storage = (
        {
            name: {percent: model(count, cached_gb) for percent, cached_gb in by_cache.items()}
            for name, count in zip(names, cpus, strict=True)
        }
        for model in (measured.epoch_s, measured.storage_mb_s)
    )
    return [dict(zip(names, measured.iteration_s__c.tolist(), strict=True)), epochs, storage]


def write_profile(measured: Measured, path: str | os.PathLike[str]) -> None:
    """Writes the three objects as JSON, complete or not at all."""
    with replacing(path) as partial:
        partial.write_text(json.dumps(profile_document(measured), indent=1) + "\n", encoding="utf-8")


def modelled_profile(
    measured: Measured, server: Server, workload: str, task: str = "", slack: float = 0.05
) -> WorkloadProfile:
    """The profile of a workload on servers of this shape, and its whole surface, for one GPU.

    Its demand is the least that is worth having: the fewest CPUs, and with them the least memory, that make an epoch
    at most ``slack`` longer than the best one, but never longer than it is at the fair share. Storage is shared: if
    the server's bandwidth is known, at most the fair share of it counts.
    """
    if not 0 <= slack < 1:
        raise ScenarioError("profile: slack", slack, "a part of 1, 0 or more")
    n, fair = measured.num_gpu, server.fair
    if fair.storage_mb_s:
        measured = replace(measured, disk_mb_s=min(measured.disk_mb_s, n * fair.storage_mb_s))
    fair_gb = min(n * fair.memory_gb, measured.dataset_gb)
    fair_s = measured.epoch_s(n * fair.cpus, fair_gb)
    cpus, cached = measured.cpus__c.tolist(), measured.cached_gb
    epoch_s__cm = np.array([[measured.epoch_s(count, gb) for gb in cached] for count in cpus])
    enough = min(float(epoch_s__cm.min()) * (1 + slack), fair_s)
    good = np.argwhere(epoch_s__cm <= enough)
    if not len(good):
        # The fair share lies between the points, and none of them is as good: the demand is the fair share.
        requested_cpus, requested_gb, requested_s = n * fair.cpus, fair_gb, fair_s
    else:
        c, m = (int(place) for place in good[0])
        requested_cpus, requested_gb, requested_s = cpus[c], cached[m], float(epoch_s__cm[c, m])
    grid = Grid(np.array(cpus) / n, np.array(cached) / n, fair_s / epoch_s__cm)
    storage_mb_s = measured.storage_mb_s(requested_cpus, requested_gb) / n
    return WorkloadProfile(
        workload=workload,
        task=task or workload,
        batch_size=measured.batch_size,
        iteration_s=fair_s / measured.iterations,
        cpu=requested_cpus / n,
        memory_gb=requested_gb / n,
        storage_mb_s=storage_mb_s,
        speedup=fair_s / requested_s,
        grid=grid,
    )
