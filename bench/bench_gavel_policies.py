"""One call of each policy that shares time by a program, over the number of active jobs: assembly, solver and rows.

Kinds and rates are drawn: 26 kinds of one GPU on three models, the cluster a quarter of the jobs on each. Only jobs of
equal kind and weight are one column, so policies that look at steps or pairs of jobs are asked with fewer jobs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bench.conftest import Timed
from fastsim.engine.rounds.options import Setting
from fastsim.engine.shares.plan import RoundView
from fastsim.performance.oracle import Oracle
from fastsim.policies.registry import parse

KINDS, MODELS = 26, ("k80", "p100", "v100")

CASES = [
    ("max_min_fairness(mode=base)", 32, 0.03),
    ("max_min_fairness", 32, 0.02),
    ("max_min_fairness", 512, 0.03),
    ("max_min_fairness", 2_048, 0.04),
    ("max_min_fairness", 10_000, 0.1),
    ("max_min_fairness(mode=packed)", 32, 0.2),
    ("max_min_fairness(mode=packed)", 256, 1),
    ("max_min_fairness_water_filling", 32, 0.2),
    ("max_min_fairness_water_filling", 512, 0.9),
    ("max_min_fairness_water_filling", 10_000, 1),
    ("max_min_fairness_water_filling(mode=packed)", 32, 1),
    ("finish_time_fairness", 32, 0.06),
    ("finish_time_fairness", 512, 0.5),
    ("finish_time_fairness", 1_024, 1),
    ("finish_time_fairness(mode=packed)", 32, 0.8),
    ("min_total_duration", 32, 0.02),
    ("min_total_duration", 512, 0.1),
    ("min_total_duration", 2_048, 0.9),
    ("max_sum_throughput", 512, 0.04),
    ("max_sum_throughput(per_cost=True)", 10_000, 0.08),
    ("strategy_proof", 32, 4),
]
"""Policy, active jobs, and the ratio a call may not exceed."""


def drawn_view(jobs: int) -> RoundView:
    """Jobs of drawn kinds, weights and progress."""
    random = np.random.default_rng(1)
    alone = random.uniform(1.0, 10.0, (KINDS, 1)) * np.sort(random.uniform(0.2, 1.0, (KINDS, 3)), axis=1)
    shared = alone[:, None, :] * random.uniform(0.3, 0.9, (KINDS, KINDS, 3))
    oracle = Oracle(tuple((f"kind {k}", 1) for k in range(KINDS)), MODELS, alone, shared)
    setting = Setting(MODELS, np.full(3, max(1, jobs // 4)), oracle, alone[:, 2])
    ones = np.ones(jobs)
    return RoundView(
        setting, 1e5, np.arange(jobs), random.integers(0, KINDS, jobs), np.ones(jobs, np.int64),
        random.choice([1.0, 5.0], jobs, p=[0.8, 0.2]), random.uniform(0, 1e5, jobs), random.uniform(1e3, 1e6, jobs),
        ones * np.inf, np.array([0.135, 0.405, 0.61]),
    )  # fmt: skip


@pytest.mark.parametrize(("policy", "jobs", "budget"), CASES, ids=[f"{policy}-{jobs}" for policy, jobs, _ in CASES])
def bench_call(policy: str, jobs: int, budget: float, timed: Timed) -> None:
    """One call, with the solver warmed up."""
    view = drawn_view(jobs)
    rule: Any = parse(policy)
    allocator = rule.begin(view.setting).allocator
    allocator.allocate(view)
    found = timed(lambda: allocator.allocate(view), items=jobs, budget=budget, rounds=10)
    assert len(found.first) >= jobs
