"""Pollux round by round: who gets what, what it remembers, what it refuses."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import numpy as np
import pytest

from fastsim.engine.adaptive.plan import AdaptiveSetting, AdaptiveView, JobView, SpeedEstimate
from fastsim.engine.adaptive.run import AdaptiveOutcome, run_adaptive
from fastsim.errors import InputError, PolicyError
from fastsim.performance.applications.step_times import StepTimes
from fastsim.performance.goodput import Noise
from fastsim.policies import registry
from fastsim.policies.adaptive.pollux import Pollux
from fastsim.policies.deciders.pollux_decider import (
    PolluxDecider,
    fair_goodput,
    fair_share,
    first_times,
    keeping,
    learned_goodput,
    limits_of,
    speedups,
)
from tests.adaptive import adaptive_setting, random_jobs, told_of
from tests.unit.policies.deciders.test_sia_decider import PERF, job

NOISE = Noise(1.0, 5000.0, 128)


def decider(setting: AdaptiveSetting | None = None, **more: Any) -> PolluxDecider:
    given = {"power": -1.0, "generations": 20, "tuned": True} | more
    return PolluxDecider(setting or adaptive_setting(), **given)


def played(setting: AdaptiveSetting, count: int = 4, **parameters: Any) -> AdaptiveOutcome:
    policy = Pollux(generations=10, **parameters)
    return run_adaptive(told_of(setting), setting, policy.begin(setting), random_jobs(random.Random(5), count, 600.0))


def test_new_jobs_get_one_gpu_each() -> None:
    places = decider().decide(AdaptiveView(60.0, [job(0), job(1)]))
    assert [len(places[number].nodes) for number in (0, 1)] == [1, 1]


@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_a_lone_job_doubles_and_no_more_on_nodes_of_one_model(gpus: int) -> None:
    setting = adaptive_setting()
    known: dict[str, Any] = {
        "noise": Noise(1.0, 5000.0, 128),
        "estimates": dict.fromkeys(range(3), SpeedEstimate(PERF, gpus)),
    }
    (place,) = decider(setting).decide(AdaptiveView(60.0, [job(0, age_s=9000.0, **known)])).values()
    assert len(place.nodes) == 2 * gpus
    assert set(place.nodes) <= set(range(len(setting.groups[place.group].gpus__n)))


def test_rigid_jobs_and_untuned_ones_get_what_they_ask_for() -> None:
    view = AdaptiveView(60.0, [job(0, "rigid", 3), job(1)])
    assert [len(place.nodes) for place in decider().decide(view).values()] == [3, 1]
    found = decider(tuned=False).decide(AdaptiveView(60.0, [job(0, num_gpu=3), job(1, num_gpu=2)]))
    assert [len(found[number].nodes) for number in (0, 1)] == [3, 2]


@pytest.mark.parametrize(("tuned", "expected"), [(True, (1, 1)), (False, (0, 2))])
def test_fixed_jobs_keep_the_first_of_two_models(
    tuned: bool, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PolluxDecider, "_best", lambda *_: np.array([[1, 0, 1, 0, 0, 0]], np.int8))
    (place,) = decider(tuned=tuned).decide(AdaptiveView(60.0, [job(0, num_gpu=2)])).values()
    assert (place.group, len(place.nodes)) == expected  # others keep the preferred one


def test_states_of_the_last_search_begin_the_next_one() -> None:
    pollux = decider()
    pollux.decide(AdaptiveView(60.0, [job(0), job(1), job(2)]))
    ids, states = pollux.population
    assert ids == (0, 1, 2)
    initial = pollux._initial_states((2, 7, 0), np.zeros((3, len(pollux.nodes)), np.int32))
    assert (initial[:, 1] == 0).all()
    # Rows go by their order, not by their jobs.
    assert np.array_equal(initial[:, 0], states[:, 0]) and np.array_equal(initial[:, 2], states[:, 2])


@pytest.mark.long
def test_whole_runs_and_their_variants() -> None:
    for setting, parameters in (
        (adaptive_setting(), {}),
        (adaptive_setting(4, 0, 0), {}),  # one GPU model
        (adaptive_setting(), {"tuned": False}),
        (adaptive_setting(), {"power": 0}),
    ):
        run = played(setting, **parameters)
        assert run.jobs["ended"].all()
        assert run.busy_s.sum() <= run.trained["gpu_s"].sum()
        assert run.solver_s > 0


def test_the_seed_decides() -> None:
    groups, apps = adaptive_setting().groups, adaptive_setting().applications
    one, same, other = (played(AdaptiveSetting(groups, apps, 60.0, seed)) for seed in (1, 1, 2))
    assert np.array_equal(one.jobs, same.jobs) and np.array_equal(one.trained, same.trained)
    assert not np.array_equal(one.trained, other.trained)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("pollux(power=1000)", "power"),
        ("pollux(generations=0)", "generations"),
        ("pollux(generations=1.5)", "generations"),
        ("pollux(tuned=3)", "tuned"),
        ("pollux(fit_stop=-1)", "fit_stop"),
        ("pollux(fit_stop=nan)", "fit_stop"),
        ("pollux(fit_stop=True)", "fit_stop"),
    ],
)
def test_parameters_are_checked(text: str, complaint: str) -> None:
    with pytest.raises(PolicyError, match=f"policy pollux, parameter {complaint}"):
        registry.parse(text)
    assert str(registry.parse("pollux(power=-2.0)")) == "pollux(power=-2.0)"


def known() -> JobView:
    return job(0, noise=NOISE, estimates={0: SpeedEstimate(PERF, 2)})


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
    goodput = learned_goodput(view)
    assert goodput is not None
    assert fair_goodput(goodput, (1, 5 * most), limits) == goodput.best(1, most, limits).goodput[0] > 0
    assert fair_goodput(goodput, (1, 64), limits._replace(low=1 << 20, high=1 << 21)) == 0
    assert np.isfinite(speedups([view], (1, 5 * most), 8, True)).all()


def test_batch_sizes_that_jobs_may_use() -> None:
    assert limits_of(known(), True).tuned
    assert (limits_of(known(), False).tuned, limits_of(known(), False).max_batch) == (True, 1024)
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
