"""Speedups as Pollux believes in them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from fastsim.engine.adaptive.plan import Belief, JobView
from fastsim.errors import InputError
from fastsim.performance.applications.step_times import StepTimes
from fastsim.performance.goodput import Noise
from fastsim.policies.deciders.pollux_speedups import (
    believed,
    fair_goodput,
    fair_share,
    first_times,
    keeping,
    limits_of,
    speedups,
)
from tests.unit.policies.deciders.test_sia_decider import PERF, job

NOISE = Noise(1.0, 5000.0, 128)


def known() -> JobView:
    return job(0, noise=NOISE, beliefs={0: Belief(PERF, 2)})


def test_a_fair_share() -> None:
    assert fair_share(64, 16, 1) == (1, 64)
    assert fair_share(64, 16, 5) == (1, 13)
    assert fair_share(4, 16, 7) == (4, 1)


def test_jobs_that_know_nothing_believe_in_perfect_scaling() -> None:
    (found,) = speedups([job(0)], (1, 8), 4, True)
    assert found.tolist() == [[0, 0.125, 0.25, 0.375, 0.5]] * 2


def test_speedups_are_relative_to_the_fair_share() -> None:
    found = speedups([known(), job(1)], (1, 3), 8, True)
    assert found[0, 0, 3] == 1.0
    assert (found[0, 0, 2:] > found[0, 1, 2:]).all()
    assert found[1, 1, 6] == 2.0
    assert (found[:, :, 0] == 0).all()


def test_a_batch_size_too_small_for_the_fair_share() -> None:
    view = known()
    low = first_times(view).low
    view = view._replace(job=view.job._replace(batch_size=max(3 * low, 128), mode="scale-gpus"))
    limits = limits_of(view, True)
    most = limits.max_batch // low
    goodput = believed(view)
    assert goodput is not None
    assert fair_goodput(goodput, (1, 5 * most), limits) == goodput.best(1, most, limits).goodput[0] > 0
    assert fair_goodput(goodput, (1, 64), limits._replace(low=1 << 20, high=1 << 21)) == 0
    assert np.isfinite(speedups([view], (1, 5 * most), 8, True)).all()


def test_batch_sizes_that_jobs_may_use() -> None:
    assert limits_of(known(), True).tuned
    assert (limits_of(known(), False).tuned, limits_of(known(), False).max_batch) == (False, 1024)
    assert not limits_of(job(0, mode="scale-gpus"), True).tuned


def test_what_a_restart_leaves() -> None:
    young, old = job(0, age_s=20.0, restarts=1), job(1, age_s=270.0, restarts=2)
    assert keeping([young, old]).tolist() == [0.0, 210 / 300]


def test_pipelines_are_refused() -> None:
    view = job(0)
    times = view.application.steps["aws"]
    piped = StepTimes("gpt", times.rows, high=48, stages=4)
    app = dataclasses.replace(view.application, steps={"aws": piped})
    with pytest.raises(InputError, match="pipelines of 4 GPUs"):
        first_times(view._replace(application=app))
    assert np.isfinite(times.low)
