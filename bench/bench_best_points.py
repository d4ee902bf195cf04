"""Synergy's `opt` for one round, and its jobs: the best points of a full cluster, their servers, jobs from a seed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from bench.conftest import Timed
from fastsim.cluster.server import Server
from fastsim.performance.sensitivity import Demands, Sensitivity
from fastsim.policies.programs.opt_allocation import best_points, spread
from fastsim.policies.solvers.highs import Solver
from fastsim.workload.generators.synergy import synth_synergy

SERVER = Server(8, 24, 500, 500, 40)
JOBS = 20_000
CASES = [(16, 1.2), (256, 1.5)]
"""Servers, and the ratio that finding the points may not exceed."""


def full_queue(servers: int) -> tuple[Demands, list[int]]:
    """Jobs of drawn kinds that fill the GPUs of so many servers."""
    random, models = np.random.default_rng(1), Sensitivity.default()
    count: Counter[tuple[str, int]] = Counter()
    left = servers * SERVER.gpus
    while left:
        size = int(random.choice([1, 2, 4, 8], p=[0.7, 0.1, 0.15, 0.05]))
        size = size if size <= left else 1
        count[models.workloads[random.integers(len(models.workloads))], size] += 1
        left -= size
    kinds = sorted(count)
    return models.demands(kinds, SERVER), [count[kind] for kind in kinds]


@pytest.mark.parametrize(("servers", "budget"), CASES, ids=[f"{8 * servers}-gpus" for servers, _ in CASES])
def bench_points(servers: int, budget: float, timed: Timed) -> None:
    """The integer program, with the solver warmed up."""
    demands, counts = full_queue(servers)
    solver = Solver("vertex")
    objective, _ = best_points(demands, counts, servers, solver)
    found = timed(lambda: best_points(demands, counts, servers, solver), items=sum(counts), budget=budget, rounds=5)
    assert found[0] == objective > sum(counts)


@pytest.mark.parametrize(("servers", "budget"), [(16, 0.3), (256, 10)], ids=["128-gpus", "2048-gpus"])
def bench_servers(servers: int, budget: float, timed: Timed) -> None:
    """The servers of the jobs at their best points."""
    demands, counts = full_queue(servers)
    _, choices = best_points(demands, counts, servers, Solver("vertex"))
    found = timed(lambda: spread(choices, SERVER, servers, Solver("vertex")), items=sum(counts), budget=budget)
    assert len(np.unique(found.job)) == sum(counts)


def bench_jobs(timed: Timed) -> None:
    """Jobs from a seed, all columns of them."""
    table = timed(lambda: synth_synergy(JOBS, log=1000).table(), items=JOBS, budget=2)
    assert table.num_rows == JOBS
