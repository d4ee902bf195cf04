"""Optimus of Pollux's simulator: one GPU at a time, whole epochs, nodes that are kept."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np

from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptiveView, JobView
from fastsim.engine.adaptive.run import run_adaptive
from fastsim.policies.adaptive.optimus import Optimus
from fastsim.policies.deciders.optimus_decider import Size, Speeds
from fastsim.policies.deciders.optimus_oracle import OracleOptimusDecider, one_by_one
from tests.adaptive import APPS, adaptive_setting, random_jobs, told_of


def job(number: int, application: str = "cifar10", batch: int = 1024, **known: Any) -> JobView:
    """A job that has just come."""
    request = AdaptiveJob(0.0, application, 1, batch, "adaptive")
    return JobView(number, request, APPS[application], 100.0, 0, 0.0, 0.0, 0, 0.0, None, {}, None)._replace(**known)


def places(decider: OracleOptimusDecider, now_s: float, *jobs: JobView) -> dict[int, tuple[int, ...]]:
    """Nodes of each job."""
    return {number: place.nodes for number, place in decider.decide(AdaptiveView(now_s, jobs)).items()}


def test_gpus_go_out_one_by_one_to_the_largest_gain() -> None:
    seconds = {1: 10.0, 2: 9.0, 3: 1.0}
    speeds = Speeds({Size(0, gpus): value for gpus, value in seconds.items()})
    assert one_by_one([Size(0, 1), Size(0, 1)], [1.0, 2.0], [speeds, speeds], [1]) == [Size(0, 1), Size(0, 2)]
    assert one_by_one([Size(0, 1)], [1.0], [speeds], [5]) == [Size(0, 3)]
    slower = Speeds({Size(0, 1): 10.0, Size(0, 2): 10.5, Size(0, 3): 1.0})
    assert one_by_one([Size(0, 1)], [1.0], [slower], [5]) == [Size(0, 1)]  # only the next size counts
    as_fast = Speeds({Size(0, 1): 10.0, Size(0, 2): 10.0, Size(0, 3): 1.0})
    assert one_by_one([Size(0, 1)], [1.0], [as_fast], [5]) == [Size(0, 1)]
    assert one_by_one([Size(0, 1), Size(0, 1)], [1.0, 1.0], [speeds, speeds], [1]) == [Size(0, 2), Size(0, 1)]


def test_the_first_to_arrive_get_a_gpu_where_gpus_are_short() -> None:
    decider = OracleOptimusDecider(adaptive_setting(1, 0, 0), 0.0)
    assert sorted(places(decider, 60.0, *(job(n) for n in range(6)))) == [0, 1, 2, 3]


def test_steps_left_are_those_of_whole_epochs() -> None:
    decider, curve = OracleOptimusDecider(adaptive_setting(1, 0, 0), 0.0), APPS["cifar10"].curve
    last = curve.epochs - 1
    assert decider.work_left(job(0)) == curve.iteration(1024, last) - curve.iteration(1024, 0)
    assert decider.work_left(job(0, progress=1e6)) == decider.work_left(job(0))
    assert decider.work_left(job(0, epoch=last)) == 1.0


def test_jobs_whose_size_stays_keep_their_nodes() -> None:
    decider = OracleOptimusDecider(adaptive_setting(2, 0, 0), 0.0)
    jobs = [job(n) for n in range(8)]
    first = places(decider, 60.0, *jobs)
    assert places(decider, 120.0, *jobs) == first
    later = places(decider, 180.0, *jobs[1:])
    moved = [number for number in later if later[number] != first[number]]
    assert len(moved) == 1 and len(later[moved[0]]) == 2  # the one that grew


def test_one_gpu_accumulates_whatever_the_batch_size() -> None:
    decider, app = OracleOptimusDecider(adaptive_setting(1, 0, 0), 0.0), APPS["cifar10"]
    assert decider.least_turns(app, 1, app.init_batch) == 1 and decider.least_turns(app, 2, app.max_batch) == 0


def test_a_saved_state_goes_on() -> None:
    setting = adaptive_setting(2, 0, 0)
    decider, other = OracleOptimusDecider(setting, 0.0), OracleOptimusDecider(setting, 0.0)
    jobs = [job(n) for n in range(3)]
    first = places(decider, 60.0, *jobs)
    other.restore(json.loads(json.dumps(decider.state())))
    assert places(other, 120.0, *jobs) == first == places(decider, 120.0, *jobs)


def test_a_whole_run_ends() -> None:
    setting = adaptive_setting(2, 0, 0)
    jobs = random_jobs(random.Random(3), 6)
    outcome = run_adaptive(told_of(setting), setting, Optimus(oracle=True, interval_s=0.0).begin(setting), jobs)
    assert np.isfinite(outcome.jobs["finish_s"]).all()
