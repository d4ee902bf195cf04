"""Optimus round by round: everybody starts small, ends come nearer, batch sizes and modes are respected."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import fastsim as fs
from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptiveView, JobView
from fastsim.engine.adaptive.run import adaptive_driver, run_adaptive
from fastsim.errors import InputError, PolicyError
from fastsim.policies import registry
from fastsim.policies.adaptive.optimus import Optimus
from fastsim.policies.deciders.optimus_decider import OptimusDecider, Size, Speeds, grown, iteration_s
from tests.adaptive import APPS, adaptive_setting, random_jobs, told_of


def job(number: int, mode: str = "adaptive", num_gpu: int = 2, batch: int = 1024, **known: Any) -> JobView:
    """A job of cifar10 that has just come."""
    request = AdaptiveJob(0.0, "cifar10", num_gpu, batch, mode)
    return JobView(number, request, APPS["cifar10"], 100.0, 0, 0.0, 0.0, 0, 0.0, None, {}, None)._replace(**known)


def sizes(decider: OptimusDecider, now_s: float, *jobs: JobView) -> dict[int, tuple[str, int]]:
    """GPU model and GPUs of each job."""
    places = decider.decide(AdaptiveView(now_s, jobs))
    models = [group.gpu_model for group in decider.setting.groups]
    return {number: (models[place.group], len(place.nodes)) for number, place in places.items()}


def test_everybody_gets_a_gpu_before_anybody_grows() -> None:
    found = sizes(OptimusDecider(adaptive_setting(2, 0, 0), 600.0), 60.0, *(job(n) for n in range(8)))
    assert found == dict.fromkeys(range(8), ("aws", 1))


def test_gpus_that_are_left_go_where_they_help() -> None:
    decider = OptimusDecider(adaptive_setting(2, 0, 0), 600.0)
    curve = APPS["cifar10"].curve
    late = job(1, epoch=curve.epochs - 1, progress=curve.progress(curve.epochs - 1))
    found = sizes(decider, 60.0, job(0), late)
    assert found[0][1] > found[1][1] >= 1


def test_jobs_do_not_exceed_what_their_modes_allow() -> None:
    decider = OptimusDecider(adaptive_setting(4, 0, 0), 600.0)
    found = sizes(decider, 60.0, job(0, "rigid", 8), job(1, "scale-gpus", 3), job(2))
    assert found[0][1] == 8 and found[1][1] <= 3
    assert sizes(decider, 660.0, job(0, "rigid", 32)) == {}  # more than there are


def test_sizes_stay_for_an_interval_and_newcomers_start_with_what_is_free() -> None:
    decider = OptimusDecider(adaptive_setting(2, 0, 0), 600.0)
    first = sizes(decider, 60.0, job(0, "scale-gpus", 4))
    assert first == {0: ("aws", 4)}
    assert sizes(decider, 120.0, job(0, "scale-gpus", 4), job(1)) == {0: ("aws", 4), 1: ("aws", 1)}
    later = sizes(decider, 660.0, job(0, "scale-gpus", 4), job(1))
    assert later[1][1] > 1


def test_the_shortest_time_left_goes_first_where_gpus_are_short() -> None:
    decider = OptimusDecider(adaptive_setting(1, 0, 0), 600.0)
    curve = APPS["cifar10"].curve
    late: dict[str, Any] = {"epoch": curve.epochs - 1, "progress": curve.progress(curve.epochs - 1)}
    assert sorted(sizes(decider, 60.0, *(job(n, "rigid", 2) for n in range(3)), job(3, "rigid", 2, **late))) == [0, 3]


def test_jobs_move_to_faster_gpus_when_these_are_left_over() -> None:
    decider = OptimusDecider(adaptive_setting(1, 1, 0), 600.0)
    assert sizes(decider, 60.0, job(0, "rigid", 4)) == {0: ("dgx-ext", 4)}
    decider.sizes[0] = decider.sizes[0]._replace(group=0)
    assert sizes(decider, 660.0, job(0, "rigid", 4)) == {0: ("dgx-ext", 4)}


def test_an_iteration_takes_all_turns_of_its_batch() -> None:
    app = APPS["cifar10"]
    steps = app.steps_per_s("aws", (4,), 1024)
    assert iteration_s(app, "aws", (4,), 1024) == pytest.approx(app.slowdown / steps)
    with pytest.raises(InputError, match="each with samples enough"):
        iteration_s(app, "aws", (4,), 1)


@pytest.mark.parametrize("seed", range(3))
def test_a_run_ends_with_the_batch_sizes_that_were_asked_for(seed: int) -> None:
    setting, asked = adaptive_setting(), random_jobs(random.Random(seed), 14)
    plan = Optimus().begin(setting)
    run = run_adaptive(told_of(setting), setting, plan, asked)
    assert np.isfinite(run.jobs["finish_s"]).all()
    assert not plan.tuned
    rounds = adaptive_driver(setting, Optimus(interval_s=0.0).begin(setting), asked)
    while rounds.loop.active or rounds.loop.expected:
        rounds.loop.work()
        rounds.decide()
        rounds.loop.verify()


def test_it_is_a_policy_like_all_others() -> None:
    runs = [fs.simulate("sia:2:1:1", "synth:sia?jobs=12&seed=3", "optimus", seed=1) for _ in range(2)]
    assert runs[0].jobs.equals(runs[1].jobs) and "peng2018optimus" in runs[0].cite()
    described = registry.describe("optimus")
    assert described.engine == "adaptive" and "gain[j, k] =" in described.text
    assert str(registry.parse("optimus(interval_s=60)")) == "optimus(interval_s=60)"
    with pytest.raises(PolicyError, match="parameter interval_s: found -1, expected seconds of 0 or more"):
        Optimus(interval_s=-1)


def speeds(*unit_s: float, group: int = 0) -> Speeds:
    """Seconds with 1, 2, 3 ... GPUs."""
    return Speeds({Size(group, gpus): second for gpus, second in enumerate(unit_s, 1)})


def on_one(has: list[int], left: list[float], known: list[Speeds], free: int) -> list[int]:
    return [size.gpus for size in grown([Size(0, gpus) for gpus in has], left, known, [free])]


def test_gpus_go_to_the_largest_gain() -> None:
    known = [speeds(10.0, 5.0, 4.0), speeds(10.0, 8.0, 7.5)]
    assert on_one([1, 1], [1.0, 1.0], known, 1) == [2, 1]
    assert on_one([1, 1], [1.0, 1.0], known, 2) == [2, 2]
    assert on_one([1, 1], [1.0, 10.0], known, 1) == [1, 2]
    assert on_one([1, 1], [1.0, 1.0], known, 9) == [3, 3]
    assert on_one([1, 1], [0.0, 0.0], known, 9) == [1, 1]


def test_a_gpu_that_saves_no_time_is_not_taken() -> None:
    assert on_one([1], [1.0], [speeds(10.0, 10.0)], 1) == [1]


def test_a_single_gpu_accumulates_above_the_initial_batch_size_only() -> None:
    decider, app = OptimusDecider(adaptive_setting(1, 0, 0), 600.0), APPS["cifar10"]
    cases = ((1, app.init_batch), (1, app.init_batch + 1), (2, app.max_batch))
    assert [decider.least_turns(app, gpus, batch) for gpus, batch in cases] == [0, 1, 0]


def test_after_the_last_epoch_no_work_is_left() -> None:
    decider, curve = OptimusDecider(adaptive_setting(1, 0, 0), 600.0), APPS["cifar10"].curve
    assert decider.work_left(job(0, epoch=curve.epochs)) == 0.0
    assert decider.work_left(job(0)) == curve.iteration(1024, curve.epochs - 1)  # nothing is done yet


def test_a_slow_size_is_stepped_over_if_there_are_gpus() -> None:
    known = [speeds(10.0, 12.0, 4.0)]
    assert on_one([1], [1.0], known, 2) == [3]
    assert on_one([1], [1.0], known, 1) == [1]


def test_a_step_that_is_too_large_becomes_a_smaller_one() -> None:
    known = [speeds(10.0, 9.9, 1.0), speeds(10.0, 5.0)]
    assert on_one([1, 1], [1.0, 1.1], known, 2) == [2, 2]


def test_equal_jobs_are_served_in_their_order() -> None:
    assert on_one([1, 1, 1], [1.0] * 3, [speeds(2.0, 1.0)] * 3, 2) == [2, 2, 1]


def test_jobs_move_to_a_faster_group_and_leave_their_gpus_to_others() -> None:
    slow, fast = Size(0, 1), Size(1, 1)
    known = Speeds({slow: 4.0, Size(0, 2): 2.0, fast: 1.0})
    assert grown([slow, slow], [1.0, 1.0], [known, known], [0, 1]) == [fast, Size(0, 2)]


def test_the_least_size_of_each_group_comes_fastest_first() -> None:
    known = Speeds({Size(0, 2): 4.0, Size(0, 4): 2.0, Size(1, 1): 1.0})
    assert list(known.least.values()) == [Size(1, 1), Size(0, 2)]
    assert known.seconds(Size(2, 1)) == math.inf


@st.composite
def convex(draw: st.DrawFn) -> Speeds:
    """Times that fall by less and less."""
    drops = sorted(draw(st.lists(st.integers(0, 50), min_size=0, max_size=4)), reverse=True)
    return speeds(*(float(1 + sum(drops[at:])) for at in range(len(drops) + 1)))


@given(st.lists(st.tuples(convex(), st.integers(1, 5)), min_size=1, max_size=4), st.integers(0, 8))
def test_for_convex_times_no_other_sizes_add_up_better(jobs: list[tuple[Speeds, int]], free: int) -> None:
    known, left = [speed for speed, _ in jobs], [float(work) for _, work in jobs]
    found = on_one([1] * len(jobs), left, known, free)

    def total(sizes: tuple[int, ...] | list[int]) -> float:
        return sum(w * k.seconds(Size(0, gpus)) for w, k, gpus in zip(left, known, sizes, strict=True))

    assert sum(found) <= len(jobs) + free
    choices = itertools.product(*(range(1, len(k.unit_s) + 1) for k in known))
    assert total(found) == min(total(sizes) for sizes in choices if sum(sizes) <= len(jobs) + free)


@given(
    st.lists(st.tuples(st.integers(0, 1), st.lists(st.integers(1, 9), min_size=6, max_size=6)), max_size=6),
    st.tuples(st.integers(0, 6), st.integers(0, 6)),
)
def test_no_group_gives_more_than_it_has_and_nobody_gets_slower(
    jobs: list[tuple[int, list[int]]], free: tuple[int, int]
) -> None:
    known = [Speeds({Size(at // 3, at % 3 + 1): float(unit_s) for at, unit_s in enumerate(times)}) for _, times in jobs]
    has = [Size(group, 1) for group, _ in jobs]
    found = grown(has, [1.0] * len(jobs), known, free)
    for group in (0, 1):
        there = free[group] + sum(size.gpus for size in has if size.group == group)
        assert sum(size.gpus for size in found if size.group == group) <= there
    assert all(k.seconds(size) <= k.seconds(was) for k, size, was in zip(known, found, has, strict=True))
