"""Whatever comes, jobs grow by doubling, no GPU is given twice, and progress never falls."""

from __future__ import annotations

import random

import hypothesis.strategies as st
from hypothesis import given, settings

from fastsim.engine.adaptive.run import adaptive_driver
from fastsim.policies.adaptive.sia import Sia
from tests.adaptive import adaptive_setting, random_jobs
from tests.strategies import scenarios_per_run

ROUNDS = 90


@given(st.integers(0, 1 << 30), st.booleans(), st.sampled_from([0.5, -0.5]))
@settings(max_examples=scenarios_per_run(10), deadline=None)
def test_jobs_double_at_most(seed: int, project: bool, power: float) -> None:
    setting, jobs = adaptive_setting(), random_jobs(random.Random(seed), 8)
    policy = Sia(power=power, unserved=1.1 if power < 0 else -1.0, project=project)
    rounds = adaptive_driver(setting, policy.begin(setting), jobs)
    most, progress = [0] * len(jobs), [0.0] * len(jobs)
    for _ in range(ROUNDS):
        rounds.loop.work()
        rounds.decide()
        rounds.loop.verify()  # no GPU has two jobs
        for job in rounds.loop.active:
            place = rounds.places.get(job.id)
            gpus = 0 if place is None else len(place.nodes)
            if jobs[job.id].mode == "rigid":
                assert gpus in (0, jobs[job.id].num_gpu)
            elif jobs[job.id].mode == "scale-gpus":
                assert gpus <= jobs[job.id].num_gpu
            else:
                assert gpus <= max(2 * most[job.id], 1)
            most[job.id] = max(most[job.id], gpus)
            assert job.progress >= progress[job.id]
            progress[job.id] = job.progress
