"""Sia that tells no GPU models apart: as good as trying everything on equal GPUs; a job has real ones of one model."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.engine.adaptive.plan import AdaptiveSetting, AdaptiveView, Belief, JobView, Place
from fastsim.engine.adaptive.run import run_adaptive
from fastsim.performance.goodput import Goodput, Noise
from fastsim.policies.adaptive.sia import Sia
from fastsim.policies.deciders.pollux_speedups import limits_of
from fastsim.policies.deciders.sia_variants import TypeBlindSiaDecider
from tests.adaptive import adaptive_setting, random_jobs, told_of
from tests.strategies import scenarios_per_run
from tests.unit.policies.deciders.test_sia_decider import PERF, job

SETTING = adaptive_setting(aws=1, dgx=1, rtx=0)
SIZES = {1: 1, 2: 1, 4: 1}
"""GPUs and nodes: nobody has more than the scarcest model, 4."""
NOISE = Noise(1.0, 5000.0, 128)


def decider(setting: AdaptiveSetting = SETTING, **more: Any) -> TypeBlindSiaDecider:
    given = {"power": -0.5, "unserved": 1.1, "project": True, "tuned": True} | more
    return TypeBlindSiaDecider(setting, **given)


@st.composite
def known_jobs(draw: st.DrawFn) -> list[JobView]:
    """A few jobs: new ones, some that have learned, some of fixed size, some in a restart."""
    found = []
    for number in range(draw(st.integers(1, 4))):
        more: dict[str, Any] = {"age_s": float(draw(st.integers(0, 5000))), "restarts": draw(st.integers(0, 5))}
        if draw(st.booleans()):
            beta = draw(st.sampled_from([0.001, 0.002, 0.004]))
            belief = Belief(PERF._replace(beta_c=beta), draw(st.sampled_from([1, 2, 4])))
            more |= {"noise": NOISE, "beliefs": dict.fromkeys(range(2), belief)}
        mode = draw(st.sampled_from(["adaptive", "adaptive", "scale-gpus", "rigid"]))
        found.append(job(number, mode, draw(st.sampled_from([1, 2, 4])), **more))
    return found


def worth(one: JobView, gpus: int, former: int | None, power: float) -> float | None:
    """What so many GPUs are worth to a job, spelled out; None if it cannot have them."""
    best = {1: 1.0}
    asked, belief = one.job.num_gpu, next(iter(one.beliefs.values()), None)
    if one.job.mode == "rigid":
        best = {asked: float(asked)}
    elif belief is not None and one.noise is not None:
        most = asked if one.job.mode == "scale-gpus" else 2 * belief.most_replicas
        limits = limits_of(one, True)._replace(float32=True)
        found = {k: Goodput(belief.perf, one.noise).best([n], [k], limits).goodput[0] for k, n in SIZES.items()}
        best = {k: at for k, at in found.items() if k <= most and at > 0}
        best = {k: at / min(best.values()) for k, at in best.items()}
    if gpus not in best:
        return None
    kept = max(one.age_s - 30 * one.restarts, 0) / (one.age_s + 30) if former not in (None, gpus) else 1.0
    return 3000.0 if kept == 0 else min(float(np.round(np.float32((best[gpus] * kept) ** power), 2)), 3000.0)


def objective(jobs: list[JobView], former: dict[int, int], chosen: tuple[int, ...], changed: float) -> float:
    """What all choices add up to; infinite if there are too few GPUs or somebody cannot have them."""
    total = 0.0
    for one, gpus in zip(jobs, chosen, strict=True):
        before = former.get(one.id)
        total += changed * ((gpus > 0 and gpus != before) + (before is not None and gpus != before))
        value = worth(one, gpus, before, -0.5) if gpus else 1.1
        total += np.inf if value is None else value
    return total if sum(chosen) <= SETTING.gpus else np.inf


@settings(max_examples=scenarios_per_run(60), deadline=None)
@given(known_jobs(), st.sampled_from([0.0, 0.01, 0.237]), st.data())
def test_as_good_as_trying_everything(jobs: list[JobView], changed: float, data: st.DataObject) -> None:
    sia = decider(changed=changed)
    former = {}
    for one in jobs:
        gpus = data.draw(st.sampled_from([0, one.job.num_gpu if one.job.mode == "rigid" else 1]))
        if gpus:
            former[one.id] = gpus
            sia.chosen[one.id] = 0
    places = sia.decide(AdaptiveView(60.0, jobs))
    sizes = {one.id: sia._size(one) for one in jobs if one.id in sia.chosen}
    chosen = tuple(sizes.get(one.id, 0) for one in jobs)
    best = min(objective(jobs, former, every, changed) for every in product((0, *SIZES), repeat=len(jobs)))
    # Values are of single precision, and ties are broken by less than a ten-thousandth.
    assert objective(jobs, former, chosen, changed) == pytest.approx(best, abs=1e-4)
    used = Counter((at.group, node) for at in places.values() for node in at.nodes)
    assert all(gpus <= SETTING.groups[group].gpus__n[node] for (group, node), gpus in used.items())
    for one in jobs:
        if one.id in places:
            assert len(places[one.id].nodes) <= sizes[one.id]
            assert one.job.mode != "rigid" or len(places[one.id].nodes) == one.job.num_gpu


def test_what_one_model_taught_is_believed_of_all() -> None:
    plan = Sia(aware=False).begin(SETTING)
    assert plan.merged and plan.tuned


def test_who_stays_as_large_stays_where_it_is() -> None:
    sia, one, other = decider(), job(0), job(1)
    first = sia.decide(AdaptiveView(60.0, [one, other]))
    assert sia.decide(AdaptiveView(120.0, [other._replace(place=first[1])])) == {1: first[1]}
    assert len(sia.given) == 1


def test_gpus_of_a_second_model_are_dropped() -> None:
    setting = adaptive_setting(aws=1, dgx=1, rtx=1)
    sia = decider(setting)
    sia.chosen = {0: 0}
    row = np.zeros(len(sia.nodes), np.int8)
    row[:2] = 1, 1
    sia.given, sia.chosen = {0: row}, {0: int(np.flatnonzero(sia.configurations.gpus__q == 2)[0])}
    (place,) = sia._placed_on([job(0)]).values()
    assert place == Place(1, (0,))  # as many on T4 and A100: the better one stays
    assert sia.given == {}
    (whole,) = sia._placed_on([job(0)]).values()
    assert whole == Place(0, (0, 0)) and sia.given[0].sum() == 2  # it had lost one, so it goes where there are two


@pytest.mark.parametrize("setting", [adaptive_setting(), adaptive_setting(4, 0, 0)])
def test_whole_runs_end(setting: AdaptiveSetting) -> None:
    jobs = random_jobs(random.Random(3), 5, 600.0)
    for sia in (Sia(aware=False), Sia(aware=False, changed=0.05)):
        assert run_adaptive(told_of(setting), setting, sia.begin(setting), jobs).jobs["ended"].all()
