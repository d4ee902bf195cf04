"""Whole runs of adaptive jobs: nobody loses progress, no GPU is given twice, nobody grows faster than it learns."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.engine.adaptive.plan import AdaptiveSetting, AdaptiveView, Decider, JobView, Place
from fastsim.engine.adaptive.run import run_adaptive
from fastsim.policies.adaptive.pollux import Pollux
from fastsim.policies.adaptive.rotation import Rotation
from fastsim.policies.adaptive.sia import Sia
from fastsim.policies.deciders.pollux_decider import PolluxDecider
from fastsim.policies.deciders.sia_variants import RigidSiaDecider
from tests.adaptive import APPS, adaptive_setting, random_jobs, told_of
from tests.strategies import scenarios_per_run

POLICIES = (
    Sia(), Sia(power=0.5, unserved=-1.0), Sia(project=False), Pollux(generations=5), Rotation(),
    Sia(rigid=True, power=0.5, unserved=-1.0), Sia(rigid=True, changed=0.02), Sia(aware=False),
    Pollux(generations=5, tuned=False),
)  # fmt: skip


@dataclass
class Watched:
    """Looks at what a decider sees and says."""

    decider: Decider
    setting: AdaptiveSetting
    seen: dict[int, tuple[int, float]] = field(default_factory=dict)
    rounds: int = 0

    @property
    def solver_s(self) -> float:
        """As the decider says."""
        return self.decider.solver_s

    @property
    def fixed(self) -> bool:
        """Whether all jobs have what they ask for, or nothing."""
        held = isinstance(self.decider, PolluxDecider) and not self.decider.tuned
        return held or isinstance(self.decider, RigidSiaDecider) or not hasattr(self.decider, "power")

    def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
        """What the decider says."""
        for job in view.jobs:
            now = job.epoch, job.progress
            assert now >= self.seen.get(job.id, (0, 0.0))
            assert job.progress <= job.application.curve.progress(job.application.curve.epochs)
            self.seen[job.id] = now
        places = self.decider.decide(view)
        used = Counter((place.group, node) for place in places.values() for node in place.nodes)
        for (group, node), gpus in used.items():
            assert gpus <= self.setting.groups[group].gpus__n[node]
        jobs = {job.id: job for job in view.jobs}
        for number, place in places.items():
            assert len(place.nodes) <= most_gpus(jobs[number], self.fixed)
            assert not self.fixed or len(place.nodes) == jobs[number].job.num_gpu
        self.rounds += 1
        return places


def most_gpus(job: JobView, fixed: bool) -> int:
    """Twice as many GPUs as a job was ever seen on; as many as it asks for if it may not change them."""
    if fixed or job.job.mode == "rigid":
        return job.job.num_gpu
    grown = max([2 * estimate.most_replicas for estimate in job.estimates.values()], default=1)
    return max(grown, job.job.num_gpu) if job.job.mode == "scale-gpus" else grown


@settings(max_examples=scenarios_per_run(15), deadline=None)
@given(st.sampled_from(POLICIES), st.integers(1, 6), st.integers(0, 2**32))
def test_runs(policy: Any, count: int, seed: int) -> None:
    setting = adaptive_setting()
    plan = policy.begin(setting)
    watched = Watched(plan.decider, setting)
    jobs = random_jobs(random.Random(seed), count)
    run = run_adaptive(told_of(setting), setting, replace(plan, decider=watched), jobs, until_s=9000.0)
    assert watched.rounds == run.calls
    assert (run.jobs["run"] <= run.jobs["total"]).all()
    assert (run.trained["wasted_gpu_s"] <= run.trained["gpu_s"]).all()
    assert (run.trained["epochs"] <= [APPS[job.application].curve.epochs for job in jobs]).all()
    assert np.isfinite(run.busy_s).all() and (run.busy_s <= run.makespan_s + setting.round_s).all()
