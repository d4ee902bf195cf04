"""Compiled adaptive jobs do what they do by hand, to the last bit, whatever GPUs they are given."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from fastsim.engine.adaptive.driver import AdaptiveDriver
from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptivePlan, AdaptiveView, Place
from fastsim.engine.adaptive.run import adaptive_driver
from fastsim.errors import InputError
from fastsim.performance.applications.step_times import placement_of
from fastsim.performance.step_time_fit import LATE_STOP, STOP, Observation, fitted
from fastsim.policies.adaptive.pollux import Pollux
from fastsim_ext.adaptive.training_job import TrainingJob
from tests.adaptive import APPS, Whims, adaptive_setting, random_jobs
from tests.reference.rounds.adaptive_job import JobByHand, ring_of
from tests.reference.rounds.adaptive_rounds import disturbed
from tests.strategies import scenarios_per_run

ROUNDS = 60
"""Rounds that are compared: half an hour beyond the last arrival."""


def by_hand(job: JobByHand) -> tuple[object, ...]:
    state = job.atomic, job.accum, job.epoch, job.progress, job.restarts, job.restart_left_s
    return *state, job.service_s, job.used_s, job.wasted_s, job.finish_s, job.noise and job.noise[:2]


def compiled(job: TrainingJob) -> tuple[object, ...]:
    state = job.atomic, job.accum, job.epoch, job.progress, job.restarts, job.restart_left_s
    finish_s = job.finish_s if job.finish_s == job.finish_s else None
    return *state, job.service_s, job.used_s, job.wasted_s, finish_s, job.gradients


def move(hand: JobByHand, place: Place | None, rounds: AdaptiveDriver) -> None:
    if place is None:
        hand.move(None, ())
        return
    model = rounds.setting.groups[place.group].gpu_model
    hand.move(model, ring_of(place.nodes, hand.app.on(model).max_nodes))


@given(
    st.integers(0, 1 << 30), st.booleans(), st.sampled_from([60.0, 45.0, 360.0]), st.sampled_from([STOP, LATE_STOP]),
    st.sampled_from([0.0, 0.5]),
)  # fmt: skip
@settings(max_examples=scenarios_per_run(15))
def test_jobs_train_as_by_hand(seed: int, merged: bool, round_s: float, fit_stop: float, interference: float) -> None:
    draw = random.Random(seed)
    setting, jobs = replace(adaptive_setting(round_s=round_s), interference=interference), random_jobs(draw, 6)
    rounds = adaptive_driver(setting, AdaptivePlan(Whims(setting, draw), merged=merged, fit_stop=fit_stop), jobs)
    hands = [JobByHand(APPS[job.application], job, job.mode == "adaptive", merged, fit_stop) for job in jobs]
    loop = rounds.loop
    for _ in range(ROUNDS):
        before = list(loop.active)
        loop.work()
        rounds.decide()
        loop.verify()
        for job in before:
            hands[job.id].step(round_s)
        for job in loop.active:
            if job not in before:
                hands[job.id].clock_s = loop.now_s
            move(hands[job.id], rounds.places.get(job.id), rounds)
            hands[job.id].undisturbed = 1.0 - interference if disturbed(job.id, rounds.places) else 1.0
        for job in {*before, *loop.active}:
            assert compiled(job) == by_hand(hands[job.id])


def test_jobs_on_several_nodes_disturb_each_other_on_one() -> None:
    setting = adaptive_setting(3, 0, 0)
    jobs = [AdaptiveJob(0.0, "cifar10", 2, 1024, "rigid")] * 3
    places = {0: Place(0, (0, 1)), 1: Place(0, (1, 2)), 2: Place(0, (2, 2))}

    class Fixed(Whims):
        def decide(self, view: AdaptiveView) -> Mapping[int, Place]:
            return {job.id: places[job.id] for job in view.jobs}

    def trained(interference: float, *there: int) -> list[float]:
        world = replace(setting, interference=interference)
        rounds = adaptive_driver(world, AdaptivePlan(Fixed(world, random.Random(0))), [jobs[job] for job in there])
        for _ in range(2):
            rounds.loop.work()
            rounds.decide()
        return [job.progress for job in rounds.loop.active]

    alone, slowed = trained(0.0, 0, 1, 2), trained(0.25, 0, 1, 2)
    assert slowed == pytest.approx([0.75 * alone[0], 0.75 * alone[1], alone[2]])
    assert slowed[2] == alone[2] > 0  # on one node
    assert trained(0.25, 0) == [alone[0]]


def test_what_was_measured_is_fitted_once_for_all_jobs_that_measured_the_same() -> None:
    setting = adaptive_setting()
    same = [AdaptiveJob(0.0, "cifar10", 1, 256)] * 2

    class Both(Whims):
        def decide(self, view: object) -> dict[int, Place]:
            return {0: Place(0, (0, 0)), 1: Place(0, (1, 1))}

    rounds = adaptive_driver(setting, AdaptivePlan(Both(setting, random.Random(0))), same)
    for _ in range(20):
        rounds.loop.work()
        rounds.decide()
    first, second = rounds.loop.active
    assert list(first.history__g) == list(second.history__g)
    measured = rounds.performance.measurements(int(first.history__g[0]))
    assert [at[:2] for at in measured] == [(1, 2)] * len(measured)
    assert rounds.performance.n == len(measured) + 1


@pytest.mark.parametrize(("policy", "stop"), [(Pollux(), STOP), (Pollux(fit_stop=LATE_STOP), LATE_STOP)])
def test_fits_end_as_the_policy_says(policy: Pollux, stop: float) -> None:
    setting, draw = adaptive_setting(0, 1, 0), random.Random(3)
    plan = policy.begin(setting)
    rounds = adaptive_driver(setting, replace(plan, decider=Whims(setting, draw)), random_jobs(draw, 6))
    for _ in range(ROUNDS):
        rounds.loop.work()
        rounds.decide()
    kinds = {each: set[tuple[float, ...]]() for each in (STOP, LATE_STOP)}
    found = set()
    for job in (*rounds.loop.active, *rounds.loop.ended_jobs):
        history = int(job.history__g[0])
        observed = [Observation(*at) for at in rounds.performance.measurements(history)]
        found.add(rounds.performance.parameters(history)[0])
        for each, perfs in kinds.items():
            perfs.add(tuple(fitted(observed, each)))
    assert kinds[STOP] != kinds[LATE_STOP] and found == kinds[stop]


def test_more_nodes_than_were_ever_measured_count_as_fewer() -> None:
    assert ring_of((0, 0, 1, 2, 2, 2), 3) == (2, 1, 3)
    assert ring_of((0, 1, 2, 3, 4), 2) == (3, 2)
    assert ring_of((), 2) == ()


@given(st.lists(st.integers(0, 4), max_size=12), st.integers(1, 6))
def test_rings_are_those_by_hand(nodes: list[int], most_nodes: int) -> None:
    assert placement_of(nodes, most_nodes) == ring_of(nodes, most_nodes)


def test_a_batch_size_that_cannot_train_is_refused() -> None:
    setting = adaptive_setting()
    with pytest.raises(InputError, match=r"job 0: batch_size: found 64, expected 128"):
        adaptive_driver(setting, AdaptivePlan(Whims(setting, random.Random(0))), [AdaptiveJob(0.0, "cifar10", 1, 64)])
