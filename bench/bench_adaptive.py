"""Adaptive jobs: the loop without a policy, whole runs of Sia, of Pollux and of rotation, one decision of each."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from bench.conftest import Timed
from fastsim.cluster.cluster import Cluster
from fastsim.cluster.published_specs import sia_nodes
from fastsim.engine.adaptive.plan import AdaptivePlan, AdaptiveSetting
from fastsim.engine.adaptive.run import adaptive_driver, run_adaptive
from fastsim.performance.applications.family import Applications
from fastsim.performance.step_time_fit import _fitted
from fastsim.policies.adaptive.pollux import Pollux
from fastsim.policies.adaptive.rotation import Rotation
from fastsim.policies.adaptive.sia import Sia
from fastsim.policies.deciders.sia_decider import SiaDecider
from fastsim.scenario.run_inputs import workload_from
from fastsim.simulation.engines.adaptive import groups_of, jobs_of, table_setting
from tests.adaptive import Whims

JOBS = "synth:sia?jobs=160&seed=1&style=philly&rate_per_hour=20"


def scene(round_s: float) -> AdaptiveSetting:
    """The cluster of most experiments, 64 GPUs, and the applications that ship."""
    return AdaptiveSetting(groups_of(Cluster(*sia_nodes())), Applications.default(), round_s)


@pytest.mark.parametrize(
    ("policy", "round_s", "budget"), [(Sia(), 60.0, 250.0), (Pollux(), 60.0, 3000.0), (Rotation(), 360.0, 20.0)]
)
def bench_run(policy: Any, round_s: float, budget: float, timed: Timed, part: int) -> None:
    """160 jobs to their end, with an empty cache of fits."""
    setting, jobs = scene(round_s), jobs_of(workload_from(JOBS).workload)
    jobs = jobs[: len(jobs) // part]

    def run() -> Any:
        _fitted.cache_clear()
        return run_adaptive(table_setting(setting), setting, policy.begin(setting), jobs)

    found = timed(run, items=len(jobs), budget=budget, rounds=1)
    assert np.isfinite(found.jobs["finish_s"]).all()


@pytest.mark.parametrize(
    ("policy", "times", "busy", "budget"),
    [(Sia(), 1, 8, 0.2), (Sia(), 32, 8, 2.0), (Sia(), 32, 16, 4.0), (Pollux(), 1, 8, 2.0), (Pollux(), 1, 24, 6.0)],
)
def bench_decision(policy: Any, times: int, busy: int, budget: float, timed: Timed) -> None:
    """One decision at 64 GPUs with 8 or 24 jobs, and of Sia at 2,048 GPUs with 256 or 512 initially equal jobs."""
    setting = AdaptiveSetting(
        groups_of(Cluster(*sia_nodes(f"{6 * times}:{2 * times}:{3 * times}"))), Applications.default(), 60
    )
    listed = f"{JOBS}&copies={times}".replace("jobs=160", f"jobs={160 * times}")
    jobs = jobs_of(workload_from(listed.replace("hour=20", "hour=80") if busy > 8 else listed).workload)
    rounds = adaptive_driver(setting, policy.begin(setting), jobs)
    while len(rounds.loop.active) < busy * times and rounds.loop.expected:
        rounds.loop.work()
        rounds.decide()
    view, decider = rounds.view(), rounds.plan.decider
    assert len(view.jobs) >= busy * times

    def decide() -> Any:
        if isinstance(decider, SiaDecider):  # its cache of the last call would answer at once
            decider.goodputs.known.clear()
            decider.solver.known.clear()
        return decider.decide(view)

    assert timed(decide, items=len(view.jobs), budget=budget, rounds=20)


def bench_loop(timed: Timed) -> None:
    """The loop alone: 40 jobs that move at random, 100 rounds, with all fits in the cache."""
    setting, jobs = scene(60.0), jobs_of(workload_from(JOBS).workload)[:40]

    def play() -> int:
        rounds = adaptive_driver(setting, AdaptivePlan(Whims(setting, random.Random(1))), jobs)
        for _ in range(100):
            rounds.loop.work()
            rounds.decide()
        return rounds.loop.job_rounds

    play()
    assert timed(play, items=100, budget=2.0, rounds=5) > 0
