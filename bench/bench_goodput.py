"""Goodput and what it is used for: rows of configurations, fits, Sia's program, and a generation of Pollux's search."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.conftest import Timed
from fastsim.performance.goodput import BatchLimits, Goodput, Noise, Perf
from fastsim.performance.step_time_fit import STOP, Observation, _fitted
from fastsim.policies.deciders.configurations import Configurations, NodeShape
from fastsim.policies.deciders.sia_program import NONE, SiaInstance, best_choices, values
from fastsim.policies.solvers.multiple_choice import ChoiceSolver
from fastsim_ext.adaptive.fitness import evaluated
from fastsim_ext.adaptive.genetic_operators import GeneticOperators

PERF = Perf(0.1, 0.001, 0.05, 0.002, 0.02, 0.001, 1.5)
GROUPS = (NodeShape("aws", 6, 4), NodeShape("dgx-ext", 2, 8), NodeShape("rtx", 3, 8))
POPULATION = 100


def bench_row(timed: Timed) -> None:
    """The best batch size of each of 19 configurations, 100 times."""
    sizes, limits = Configurations(GROUPS), BatchLimits(4096, 32, 1024, float32=True)
    models = [Goodput(PERF, Noise(1.0, 10.0 * n, 128)) for n in range(1, 101)]
    found = timed(
        lambda: [model.best(sizes.nodes__q, sizes.gpus__q, limits).goodput for model in models],
        items=100 * len(sizes), budget=0.4, rounds=10,
    )  # fmt: skip
    assert len(found) == 100 and found[0].min() > 0


def bench_fit(timed: Timed) -> None:
    """One fit to 16 observations, from scratch."""
    observed = []
    for nodes, gpus in ((1, 1), (1, 2), (1, 4), (2, 8)):
        for atomic in (8, 16, 32, 64):
            turn_s = 0.1 + 0.002 * atomic
            observed.append(Observation(nodes, gpus, atomic, turn_s, turn_s + 0.01 * nodes * (gpus > 1)))
    measured = tuple(observed)
    perf = timed(lambda: _fitted.__wrapped__(measured, STOP), items=1, budget=0.12, rounds=20)
    assert perf.alpha_c > 0


@pytest.mark.parametrize(("scale", "jobs", "budget"), [(1, 16, 0.3), (32, 512, 12.0)])
def bench_program(scale: int, jobs: int, budget: float, timed: Timed) -> None:
    """One choice of configurations for jobs that all differ."""
    groups = [NodeShape(g.gpu_model, g.nodes * scale, g.gpus_per_node, g.nodes) for g in GROUPS]
    sizes, random = Configurations(tuple(groups)), np.random.default_rng(1)
    speed = random.uniform(1.0, 8.0, (jobs, len(groups)))[:, sizes.group__q]
    goodput = speed * sizes.gpus__q ** random.uniform(0.2, 0.9, (jobs, 1))
    former = np.full(jobs, NONE)
    value = values(goodput, np.ones(jobs), former, -0.5)
    wishes = SiaInstance(value, sizes.group__q, sizes.gpus__q, former, np.zeros(jobs, np.bool_))
    solver = ChoiceSolver()
    found = timed(lambda: best_choices([wishes], sizes.gpus__g, 1.1, solver), items=jobs, budget=budget, rounds=5)
    assert (found.chosen[0] != NONE).any()


def bench_generation(timed: Timed) -> None:
    """Mutation, repair and fitness of 100 allocations of 16 nodes to 16 jobs."""
    jobs, nodes, node_gpus = 16, 16, 4
    _, key, used, *_ = np.random.RandomState(1).get_state()
    breeder = GeneticOperators(jobs, nodes, node_gpus, np.array(key, np.uint32), int(used))
    state = np.zeros((POPULATION, jobs, nodes), np.int8)
    base, speedup = state[0].copy(), np.random.RandomState(2).random_sample((jobs, 2, nodes * node_gpus + 1))
    most, least = np.full(jobs, 16, np.int32), np.zeros(jobs, np.int32)
    mean, utility = np.empty(POPULATION), np.empty(POPULATION)

    def generation() -> Any:
        breeder.mutated(state, base)
        breeder.repaired(state, most, least)
        evaluated(state, base, speedup, np.ones(jobs), np.full(jobs, 1 / 64), node_gpus, -1.0, mean, utility)
        return mean

    assert timed(generation, items=POPULATION, budget=0.03, rounds=50).max() > 0
