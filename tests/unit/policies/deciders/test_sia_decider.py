"""Sia round by round: what it gives to jobs it knows nothing of, to growing ones, to those in a restart."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptiveView, JobView, NodeGroup, Place, SpeedEstimate
from fastsim.engine.adaptive.run import adaptive_driver, run_adaptive
from fastsim.errors import PolicyError, ScenarioError
from fastsim.performance.goodput import Noise, Perf
from fastsim.policies.adaptive.sia import Sia
from fastsim.policies.deciders.sia_decider import SiaDecider, node_groups
from tests.adaptive import APPS, adaptive_setting, told_of

PERF = Perf(0.05, 0.001, 0.02, 0.001, 0.01, 0.001, 1.5)


def job(number: int, mode: str = "adaptive", num_gpu: int = 2, **known: Any) -> JobView:
    """A job of cifar10 that has just come, or what is known of it."""
    request = AdaptiveJob(0.0, "cifar10", num_gpu, 1024, mode)
    new = JobView(number, request, APPS["cifar10"], 100.0, 0, 0.0, 0.0, 0, 0.0, None, {}, None)
    return new._replace(**known)


def decider(**more: Any) -> SiaDecider:
    given = {"power": -0.5, "unserved": 1.1, "project": True, "tuned": True} | more
    return SiaDecider(adaptive_setting(), **given)


def test_new_jobs_get_one_gpu_each() -> None:
    places = decider().decide(AdaptiveView(60.0, [job(0), job(1)]))
    assert sorted(places) == [0, 1]
    assert [len(place.nodes) for place in places.values()] == [1, 1]


@pytest.mark.parametrize(("power", "unserved"), [(-0.5, 1.1), (0.5, -1.1)])
def test_of_equal_choices_the_last_may_be_taken(power: float, unserved: float) -> None:
    # A new job is worth the same on every model.
    sia = decider(power=power, unserved=unserved, last=True)
    (place,) = sia.decide(AdaptiveView(60.0, [job(0)])).values()
    assert place.group == len(sia.configurations.groups) - 1


@pytest.mark.parametrize("options", [{"ties": 3}, {"solver": "cbc"}])
def test_the_last_is_not_drawn(options: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match="parameter picks"):
        Sia(picks="last", **options)


def test_a_job_doubles_at_most() -> None:
    known: dict[str, Any] = {
        "noise": Noise(1.0, 5000.0, 128),
        "estimates": {1: SpeedEstimate(PERF, 2)},
        "place": Place(1, (0, 0)),
    }
    sia = decider()
    sia.chosen = {0: 7}
    (place,) = sia.decide(AdaptiveView(60.0, [job(0, **known)])).values()
    assert len(place.nodes) == 4


def test_restarts_are_not_cut_short() -> None:
    sia = decider()
    first = sia.decide(AdaptiveView(60.0, [job(0)]))
    known: dict[str, Any] = {
        "noise": Noise(1.0, 5000.0, 128),
        "estimates": {0: SpeedEstimate(PERF, 4)},
        "place": first[0],
    }
    again = sia.decide(AdaptiveView(120.0, [job(0, restart_left_s=10.0, **known)]))
    assert (again[0].group, len(again[0].nodes)) == (first[0].group, 1)


def test_rigid_jobs_get_what_they_ask_for_or_nothing() -> None:
    places = decider().decide(AdaptiveView(60.0, [job(n, "rigid", 8) for n in range(4)]))
    assert len(places) == 3  # two nodes of 4, and two of 8
    assert all(len(place.nodes) == 8 for place in places.values())


def test_a_job_of_fixed_batch_size_never_gets_more_than_it_asks_for() -> None:
    known: dict[str, Any] = {"noise": Noise(1.0, 5000.0, 128), "estimates": {1: SpeedEstimate(PERF, 8)}}
    (place,) = decider().decide(AdaptiveView(60.0, [job(0, "scale-gpus", 2, **known)])).values()
    assert len(place.nodes) <= 2


def test_without_projection_other_models_are_worth_one_gpu() -> None:
    known: dict[str, Any] = {"noise": Noise(1.0, 5000.0, 128), "estimates": {0: SpeedEstimate(PERF, 1)}}
    guessing, plain = decider(), decider(project=False)
    assert (guessing.goodputs.rows([job(0, **known)]) > 0.5).sum() > (
        plain.goodputs.rows([job(0, **known)]) > 0.5
    ).sum()


def test_the_same_program_is_solved_once() -> None:
    sia, view = decider(), AdaptiveView(60.0, [job(0), job(1)])
    first = sia.decide(view)
    sia.chosen, sia.decided = {}, 0
    assert sia.decide(view) == first
    assert len(sia.solver.known) == 1 and sia.solver_s > 0


def test_no_jobs_are_no_places() -> None:
    assert decider().decide(AdaptiveView(60.0, [])) == {}


def test_nodes_of_a_model_are_of_one_size() -> None:
    setting = dataclasses.replace(adaptive_setting(), groups=(NodeGroup("aws", (4, 8), (0, 1)),))
    with pytest.raises(ScenarioError, match="nodes of aws"):
        node_groups(setting)


@pytest.mark.parametrize(("name", "value"), [("power", 0), ("power", "x"), ("unserved", 1e9), ("project", 1)])
def test_parameters_are_checked(name: str, value: object) -> None:
    with pytest.raises(PolicyError, match=name):
        Sia(**{name: value})  # type: ignore[arg-type]


def test_a_run_ends_and_gpus_are_given_once() -> None:
    setting = adaptive_setting()
    jobs = [AdaptiveJob(30.0 * n, "cifar10", 2, 1024, mode) for n, mode in enumerate(("adaptive", "rigid") * 3)]
    rounds = adaptive_driver(setting, Sia().begin(setting), jobs)
    while rounds.loop.active or rounds.loop.expected:
        rounds.loop.work()
        rounds.decide()
        rounds.loop.verify()
    run = run_adaptive(told_of(setting), setting, Sia().begin(setting), jobs)
    assert run.jobs["finish_s"].tolist() == [
        job.finish_s for job in sorted(rounds.loop.ended_jobs, key=lambda at: at.id)
    ]
    assert np.isfinite(run.jobs["finish_s"]).all()
