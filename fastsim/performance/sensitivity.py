"""Dependence of jobs on CPUs, memory and storage: their demand on a server, and their speed with it.

A :class:`Sensitivity` holds one :class:`~fastsim.performance.sensitivity_table.WorkloadProfile` for each workload, for
one GPU. Jobs have *kinds*: a workload and a number of GPUs, as everywhere. ``sensitivity.demands(kinds, Server(8, 24,
500, 500, 40))`` attaches the profiles to kinds on servers of that shape and answers columns, one value for each kind:

====================  =============================================================================================
``cpu__k``            CPUs of the whole job, at most what a server has (or the fair share if it spans several)
``memory_gb__k``      GB likewise
``storage_mb_s__k``   MB/s likewise; 0 where the storage of the server is unknown
``speedup__k``        rate with this demand over the rate at the fair share
``iteration_s__k``    seconds of an iteration at the fair share, whatever the number of GPUs
``grids``             the whole surface for each GPU, `Grid(cpu__c, memory_gb__m, speedup__cm)`, None if unknown
====================  =============================================================================================

A job that lasts ``duration_s`` at its fair share has ``int(duration_s / iteration_s)`` iterations.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv

from fastsim.cluster.server import Server
from fastsim.errors import InputError, suggestion
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.option_texts import elements
from fastsim.foundation.parquet import replacing, write_parquet
from fastsim.performance.oracle import Kind, Oracle
from fastsim.performance.sensitivity_table import Grid, WorkloadProfile, profile_table, profiles, sensitivity_rows

TABLES = Path(__file__).parent / "tables"

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

QUIRKS = {
    "storage_demand_fixed": "a job asks for 62.5 MB/s of storage a GPU, whatever its profile says",
    "clip_by_cpu": "a demand cut to a server slows a job by its CPUs alone, and not at all by its memory",
}
"""Compat switches of Synergy that attaching a profile honours, and what they do."""
FIXED_STORAGE_MB_S = 62.5
"""Demand of a GPU under ``storage_demand_fixed``, MB/s."""
SIZES = (1, 2, 4, 8, 16)
"""Numbers of GPUs of the published experiments' jobs."""


class Demand(NamedTuple):
    """Demand of one job with all its GPUs, and its speedup with it."""

    cpu: float
    memory_gb: float
    storage_mb_s: float
    speedup: float


@dataclass(frozen=True, eq=False)
class Demands:
    """Columns over kinds; see the top of the module."""

    kinds: tuple[Kind, ...]
    server: Server
    cpu__k: Floats
    memory_gb__k: Floats
    storage_mb_s__k: Floats
    speedup__k: Floats
    iteration_s__k: Floats
    grids: tuple[Grid | None, ...]

    def iterations(self, round_s: float) -> tuple[Ints, Ints]:
        """Whole iterations in a round: at the fair share, and with the demand met."""
        fair = np.floor(round_s / self.iteration_s__k)
        met = np.floor(round_s / (self.iteration_s__k / self.speedup__k))
        return fair.astype(np.int64), met.astype(np.int64)

    def grid_iterations(self, round_s: float) -> list[Ints | None]:
        """Whole iterations in a round at each point of the surface of each kind; 0 where it makes no progress."""
        iterations: list[Ints | None] = []
        for grid, iteration_s in zip(self.grids, self.iteration_s__k.tolist(), strict=True):
            if grid is None:
                iterations.append(None)
                continue
            with np.errstate(divide="ignore"):
                iterations.append(np.floor(round_s / (iteration_s / grid.speedup__cm)).astype(np.int64))
        return iterations


@whole_process
@dataclass(frozen=True, eq=False)
class Sensitivity:
    """Profiles of workloads, in the order that mixes count them; an object is equal to itself alone."""

    profiles: tuple[WorkloadProfile, ...]
    name: str = "sensitivity"

    # ------------------------------------------------------------------ makers

    @classmethod
    def default(cls, cpus_per_gpu: float = 3) -> Sensitivity:
        """Synergy's ten models on servers with 3, 4, 5 or 6 CPUs for each GPU."""
        return _default(float(cpus_per_gpu))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], cpus_per_gpu: float | None = None) -> Sensitivity:
        """The profiles of a CSV or Parquet file with the columns of `sensitivity_table`.

        ``cpus_per_gpu`` chooses the rows of servers with so many; None = the fewest that the table has.
        """
        table, where = sensitivity_rows(path)
        return cls(profiles(table, str(path), where, cpus_per_gpu), str(path))

    @classmethod
    def from_table(cls, table: pa.Table, cpus_per_gpu: float | None = None, name: str = "sensitivity") -> Sensitivity:
        """Likewise from an Arrow table."""
        return cls(profiles(table, name, lambda row: f"{name}:{row + 1}", cpus_per_gpu), name)

    def extended(self, other: Sensitivity) -> Sensitivity:
        """These workloads and those of ``other``; a known name is replaced where it stands."""
        theirs = {profile.workload: profile for profile in other.profiles}
        own = tuple(theirs.pop(profile.workload, profile) for profile in self.profiles)
        return Sensitivity((*own, *theirs.values()), self.name)

    # ------------------------------------------------------------------ reading

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Position of each workload."""
        return {profile.workload: place for place, profile in enumerate(self.profiles)}

    @property
    def workloads(self) -> tuple[str, ...]:
        """Names, in the order that mixes count them."""
        return tuple(profile.workload for profile in self.profiles)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Families of workloads, in the order of their first members."""
        return tuple(dict.fromkeys(profile.task for profile in self.profiles))

    def profile(self, workload: str) -> WorkloadProfile:
        """The profile of a workload; an unknown name is an InputError."""
        if workload not in self.index:
            expected = f"one of {', '.join(self.workloads)}"
            raise InputError(f"{self.name}: workload", repr(workload), expected, suggestion(workload, self.workloads))
        return self.profiles[self.index[workload]]

    def demands(self, kinds: Iterable[Kind], server: Server, quirks: Collection[str] = ()) -> Demands:
        """Demands of jobs of these kinds on servers of this shape; ``quirks`` as in :data:`QUIRKS`."""
        kinds = elements("kinds", kinds, "a list of (workload, GPUs)")
        profiles = [self.profile(workload) for workload, _ in kinds]
        demands = [attached(p, n, server, quirks) for p, (_, n) in zip(profiles, kinds, strict=True)]
        cpu, memory, storage, speedup = (np.array([d[i] for d in demands], np.float64) for i in range(4))
        iteration_s = np.array([p.iteration_s for p in profiles], np.float64)
        grids = tuple(p.grid for p in profiles)
        return Demands(
            kinds=kinds,
            server=server,
            cpu__k=cpu,
            memory_gb__k=memory,
            storage_mb_s__k=storage,
            speedup__k=speedup,
            iteration_s__k=iteration_s,
            grids=grids,
        )

    def oracle(self, gpu_models: Sequence[str], sizes: Sequence[int] = SIZES) -> Oracle:
        """Iterations per second at the fair share, the same on every GPU model, GPUs never shared: for any policy."""
        gpu_models = elements("GPU models", gpu_models, "a list of names", alone=(str,))
        sizes = elements("sizes", sizes, "a list of numbers of GPUs", alone=(int,))
        kinds = tuple(sorted((p.workload, int(n)) for p in self.profiles for n in sizes))
        rate = np.array([1.0 / self.profile(workload).iteration_s for workload, _ in kinds])
        shape = (len(kinds), len(gpu_models))
        alone = np.broadcast_to(rate[:, None], shape)
        return Oracle(kinds, gpu_models, alone, np.zeros((len(kinds), *shape)), self.name)

    def table(self, cpus_per_gpu: float | None = None) -> pa.Table:
        """The profiles as rows of `SENSITIVITY_SCHEMA`, as measured on servers of ``cpus_per_gpu``."""
        return profile_table(self.profiles, cpus_per_gpu)

    def write(self, path: str | os.PathLike[str], cpus_per_gpu: float | None = None) -> int:
        """Writes the table as Parquet or .csv, complete or not at all, and returns the number of rows."""
        table = self.table(cpus_per_gpu)
        if not str(path).endswith(".csv"):
            stamp = {"fastsim.schema": "sensitivities", "fastsim.schema_version": "1.0"}
            return write_parquet(path, table.to_batches(), table.schema, stamp, ())
        with replacing(path) as partial:
            pyarrow.csv.write_csv(table, partial, pyarrow.csv.WriteOptions(quoting_style="needed"))
        return int(table.num_rows)


def attached(profile: WorkloadProfile, num_gpu: int, server: Server, quirks: Collection[str] = ()) -> Demand:
    """Demand of a job of ``num_gpu`` GPUs: its profile times its GPUs, but no more than one server has.

    A job that needs several servers for its GPUs gets its fair share of what one server cannot give, and gains
    nothing. Any other job whose demand is cut gains less, in proportion to what is left above its fair share.
    """
    if num_gpu < 1:
        raise InputError(f"{profile.workload}: num_gpu", num_gpu, "1 or more")
    storage = FIXED_STORAGE_MB_S if "storage_demand_fixed" in quirks else profile.storage_mb_s
    wanted = (num_gpu * profile.cpu, num_gpu * profile.memory_gb, num_gpu * storage * (server.storage_mb_s > 0))
    limits, fair = server[1:4], server.fair[1:4]
    demands, speedup, cut = list(wanted), profile.speedup, False
    for i, limit in enumerate(limits):
        if wanted[i] > limit:
            spans = num_gpu > server.gpus
            demands[i], cut = (num_gpu * fair[i], False) if spans else (limit, True)
            speedup = 1.0 if spans else speedup
    if cut:
        lowered = [0] if "clip_by_cpu" in quirks else [i for i in range(len(demands)) if demands[i] < wanted[i]]
        speedup = min(_between(profile, num_gpu * fair[i], demands[i], wanted[i]) for i in lowered)
    return Demand(demands[0], demands[1], demands[2], speedup)


def _between(profile: WorkloadProfile, fair: float, given: float, wanted: float) -> float:
    """Speedup of what is given, on the line from 1 at the fair share to the profile's at what is wanted."""
    if wanted == fair:
        found = "a job whose memory or storage is cut and whose CPUs are just the fair share"
        expected = "CPUs above or below it to interpolate by, or no compat switch clip_by_cpu"
        raise InputError(f"sensitivity of {profile.workload}", found, expected)
    # In this very order: the last bit decides about an iteration more or less in a round.
    return 1 + (profile.speedup - 1) / (wanted - fair) * (given - fair)


@cache
def _default(cpus_per_gpu: float) -> Sensitivity:
    sensitivity = Sensitivity.from_file(TABLES / "synergy.csv", cpus_per_gpu)
    return Sensitivity(sensitivity.profiles, "Synergy's models")
