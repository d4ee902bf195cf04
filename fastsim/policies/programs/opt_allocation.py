"""The best use of CPUs and memory: which point of its surface each job runs at, and on which servers it stands.

First a program in whole numbers: maximise the sum of the jobs' speedups, where every job runs at one point of its
surface, none slower than at its fair share, and CPUs and memory suffice in all. Jobs of one kind are alike, so one
column counts those of a kind at a point; a point that another beats in speed, CPUs and memory at once is left out.
Then a linear program spreads the jobs over equal servers; its corners split few jobs. (Synergy, OSDI 2022.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.cluster.server import Server
from fastsim.errors import InputError
from fastsim.performance.sensitivity import Demands
from fastsim.performance.sensitivity_table import Grid
from fastsim.policies.solvers.highs import Program, Rows, Solver

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Point = tuple[float, float, float]
"""Speedup, CPUs and GB of one GPU."""


class Choice(NamedTuple):
    """`jobs` jobs of kind `kind`, of `num_gpu` GPUs each, at one point: CPUs and GB of the whole job, its speedup."""

    kind: int
    num_gpu: int
    jobs: int
    cpu: float
    memory_gb: float
    speedup: float


class Spread(NamedTuple):
    """Parts of jobs: ``share[i]`` of job ``job[i]`` stands on server ``server[i]``; shares of a job add up to 1."""

    job: Ints
    server: Ints
    share: Floats


def best_points(demands: Demands, count__k: Sequence[int], servers: int, solver: Solver) -> tuple[float, list[Choice]]:
    """Largest sum of speedups of ``count__k[k]`` jobs of each kind on so many servers, and a choice that reaches it.

    Choices stand by kind, the fastest first. A kind without a surface, or with no point within the fair share, is an
    InputError; more GPUs than there are is a SolverError.
    """
    kinds = [k for k, count in enumerate(count__k) if count]
    points = [useful_points(demands.grids[k], demands.server.fair, demands.kinds[k][0]) for k in kinds]
    if not kinds:
        return 0.0, []
    column = [(row, k, point) for row, (k, found) in enumerate(zip(kinds, points, strict=True)) for point in found]
    size = [demands.kinds[k][1] for _, k, _ in column]
    counts = np.array([count__k[k] for k in kinds], np.float64)
    totals = np.array([servers * demands.server.cpus, servers * demands.server.memory_gb])
    needs = [(n * cpu, n * memory, 1.0) for n, (_, _, (_, cpu, memory)) in zip(size, column, strict=True)]
    rows = Rows(
        low=np.concatenate([np.full(2, -np.inf), counts]),
        high=np.concatenate([totals, counts]),
        start=np.arange(0, 3 * len(column) + 1, 3, dtype=np.int32),
        row=np.array([(0, 1, 2 + row) for row, _, _ in column], np.int32).ravel(),
        value=np.array(needs).ravel(),
    )
    program = Program(
        cost=np.array([point[0] for _, _, point in column]),
        low=np.zeros(len(column)),
        high=np.array([counts[row] for row, _, _ in column]),
        rows=lambda: rows,
    )
    found = solver.whole(program, "the best points of all jobs")
    choices = [
        Choice(kind=k, num_gpu=n, jobs=count, cpu=n * point[1], memory_gb=n * point[2], speedup=point[0])
        for (_, k, point), n, count in zip(column, size, found.x.astype(np.int64).tolist(), strict=True)
        if count
    ]
    return found.objective, choices


def useful_points(grid: Grid | None, fair: Server, workload: str) -> list[Point]:
    """Points of one GPU that are as fast as its fair share and that no other beats in everything, the fastest first."""
    if grid is None:
        raise InputError(f"sensitivity of {workload}", "a demand only", "grid rows as well: opt chooses among them")
    least = grid.at(fair.cpus, fair.memory_gb)
    if least <= 0:
        found = f"no grid point within the fair share of {fair.cpus:g} CPUs and {fair.memory_gb:g} GB"
        raise InputError(f"sensitivity of {workload}", found, "one at least, above 0")
    points = [
        (float(grid.speedup__cm[c, m]), float(cpu), float(memory))
        for c, cpu in enumerate(grid.cpu__c)
        for m, memory in enumerate(grid.memory_gb__m)
        if grid.speedup__cm[c, m] >= least
    ]
    useful: list[Point] = []
    for speedup, cpu, memory in sorted(points, key=lambda point: (-point[0], point[1], point[2])):
        if not any(better[1] <= cpu and better[2] <= memory for better in useful):
            useful.append((speedup, cpu, memory))
    return useful


def spread(choices: Sequence[Choice], server: Server, servers: int, solver: Solver) -> Spread:
    """Spread jobs over servers, in parts if need be; jobs are numbered through the choices in their order.

    A SolverError if GPUs, CPUs or memory of the servers do not suffice.
    """
    classes = len(choices)
    counts = np.array([choice.jobs for choice in choices], np.float64)
    limits = np.tile(np.array([server.gpus, server.cpus, server.memory_gb], np.float64), servers)
    needs = np.array([(choice.num_gpu, choice.cpu, choice.memory_gb, 1.0) for choice in choices]).reshape(-1, 4)
    s, c = (axis.ravel() for axis in np.indices((servers, classes)))
    rows = Rows(
        low=np.concatenate([np.full(3 * servers, -np.inf), counts]),
        high=np.concatenate([limits, counts]),
        start=np.arange(0, 4 * servers * classes + 1, 4, dtype=np.int32),
        row=np.stack([3 * s, 3 * s + 1, 3 * s + 2, 3 * servers + c], axis=1).astype(np.int32).ravel(),
        value=needs[c].ravel(),
    )
    nothing = np.zeros(servers * classes)
    program = Program(cost=nothing, low=nothing, high=counts[c], rows=lambda: rows)
    if not classes:
        return Spread(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    solution = solver.maximum(program, "vertex", "the servers of all jobs")
    return _parts(solution.x.reshape(servers, classes), [choice.jobs for choice in choices])


def _parts(jobs__sc: Floats, count__c: Sequence[int]) -> Spread:
    """Jobs one after another from what each server takes of each class."""
    rows: list[tuple[int, int, float]] = []
    first = 0
    for c, count in enumerate(count__c):
        # Edges between servers on the line of the class's jobs; a corner is exact up to the solver's tolerance.
        edges = np.concatenate([[0.0], np.cumsum(np.maximum(jobs__sc[:, c], 0.0))])
        edges = np.where(np.abs(edges - np.rint(edges)) < 1e-7, np.rint(edges), edges)
        edges[-1] = count
        for job in range(count):
            low, high = np.maximum(edges[:-1], job), np.minimum(edges[1:], job + 1)
            rows += [(first + job, int(s), float(high[s] - low[s])) for s in np.flatnonzero(high > low)]
        first += count
    columns = list(zip(*rows, strict=True))
    return Spread(np.array(columns[0], np.int64), np.array(columns[1], np.int64), np.array(columns[2]))


class PointChooser:
    """Finds the best points with HiGHS, under the mechanism ``opt``."""

    def __init__(self) -> None:
        self.solver = Solver("vertex")

    @property
    def solver_s(self) -> float:
        """CPU seconds spent in a solver so far."""
        return self.solver.spent_s

    def parts(self, demands: Demands, count__k: Sequence[int], servers: int) -> Sequence[Any]:
        """Points of ``count__k[k]`` jobs of each kind on so many equal servers; by kind, the fastest first."""
        return best_points(demands, count__k, servers, self.solver)[1]
