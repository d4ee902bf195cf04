"""Sia for jobs of fixed size: as good as trying everything, all that a job asks for or none, no GPU given twice."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptiveView, Belief, JobView, Place
from fastsim.engine.adaptive.run import run_adaptive
from fastsim.errors import PolicyError
from fastsim.performance.goodput import Goodput, Limits, Noise
from fastsim.policies import registry
from fastsim.policies.adaptive.sia import Sia
from fastsim.policies.deciders.goodput_by_hand import KnownGoodput, asked_row
from fastsim.policies.deciders.sia_decider import node_groups
from fastsim.policies.deciders.sia_rigid import RigidSiaDecider
from tests.adaptive import APPS, adaptive_setting, random_jobs, told_of
from tests.strategies import scenarios_per_run
from tests.unit.policies.deciders.test_sia_decider import PERF, job

SETTING = adaptive_setting(aws=2, dgx=1, rtx=1)
ROOM = [group.gpus for group in SETTING.groups]
NOISE = Noise(1.0, 5000.0, 128)
MAXIMISED, MINIMISED = (0.5, -1.0), (-0.5, 1.1)


def decider(power: float = 0.5, unserved: float = -1.0, **more: Any) -> RigidSiaDecider:
    return RigidSiaDecider(SETTING, power, unserved, True, False, **more)


def place(group: int, gpus: int) -> Place:
    """So many GPUs of a group."""
    per_node = SETTING.groups[group].gpus__n[0]
    return Place(group, tuple(gpu // per_node for gpu in range(gpus)))


@st.composite
def known_jobs(draw: st.DrawFn) -> list[JobView]:
    """A few jobs: new ones, some that know a model, some that stand on one."""
    found = []
    for number in range(draw(st.integers(1, 5))):
        gpus, group = draw(st.sampled_from([1, 2, 3, 4, 8])), draw(st.integers(0, 2))
        more: dict[str, Any] = {"age_s": float(draw(st.integers(0, 5000))), "restarts": draw(st.integers(0, 5))}
        if draw(st.booleans()):
            beta = draw(st.sampled_from([0.001, 0.002, 0.004]))
            more |= {"noise": NOISE, "beliefs": {group: Belief(PERF._replace(beta_c=beta), gpus)}}
            more["place"] = draw(st.sampled_from([None, place(group, gpus)]))
        found.append(job(number, "adaptive", gpus, **more))
    return found


def worth(sia: RigidSiaDecider, one: JobView, group: int) -> float | None:
    """What a job's GPUs of a group are worth, spelled out; None if it cannot have them."""
    gpus = min(one.job.num_gpu, min(ROOM))
    known = {g: belief for g, belief in one.beliefs.items() if one.noise is not None}
    rates: list[float] = []
    for g, nodes in enumerate(SETTING.groups):
        seen = g if g in known else min(known, default=None)
        if seen is None:
            continue
        assert one.noise is not None
        at, per_node = APPS["cifar10"].on(SETTING.groups[seen].gpu_model), SETTING.groups[seen].gpus__n[0]
        limits = Limits(one.job.batch_size, at.low, at.high, tuned=False, float32=True)
        found = Goodput(known[seen].perf, one.noise).best([-(-gpus // per_node)], [gpus], limits).goodput[0]
        rates.append(found * APPS["cifar10"].on(nodes.gpu_model).one_gpu_rate / at.one_gpu_rate)
    some = [rate for rate in rates if rate > 0]
    row = rates[group] / min(some) if some else float(gpus)
    if one.place is not None:
        moves = sia.moves.get(one.id, 0)
        left = max(one.age_s - 30 * (one.restarts - moves) - 45 * moves, 0.0)
        row *= 1.0 if one.place.group == group else left / (one.age_s + 45)
    return float(np.round(np.float32(row**sia.power), 2)) if row > 0 else None


def objective(
    sia: RigidSiaDecider, jobs: list[JobView], former: dict[int, int], chosen: tuple[int | None, ...]
) -> float:
    """What all choices add up to; infinite if there are not enough GPUs or somebody cannot have them."""
    sign, used, total = 1.0 if sia.power < 0 else -1.0, Counter[int](), 0.0
    for one, group in zip(jobs, chosen, strict=True):
        before = former.get(one.id)
        total += sia.changed * ((group is not None and group != before) + (before is not None and group != before))
        value = sia.unserved if group is None else worth(sia, one, group)
        if value is None:
            return np.inf
        total += sign * value
        if group is not None:
            used[group] += min(one.job.num_gpu, min(ROOM))
    return total if all(used[g] <= ROOM[g] for g in used) else np.inf


@settings(max_examples=scenarios_per_run(60), deadline=None)
@given(known_jobs(), st.sampled_from([MAXIMISED, MINIMISED]), st.sampled_from([0.0, 0.01, 0.237]))
def test_as_good_as_trying_everything(jobs: list[JobView], sense: tuple[float, float], changed: float) -> None:
    sia = decider(*sense, changed=changed)
    former = {one.id: one.place.group for one in jobs if one.place is not None}
    sia.chosen = dict(former)
    places = sia.decide(AdaptiveView(60.0, jobs))
    chosen = tuple(places[one.id].group if one.id in places else None for one in jobs)
    best = min(objective(sia, jobs, former, every) for every in product((None, 0, 1, 2), repeat=len(jobs)))
    # Values are of single precision, and ties are broken by less than a ten-thousandth.
    assert objective(sia, jobs, former, chosen) == pytest.approx(best, abs=1e-4)
    for one in jobs:
        assert len(places[one.id].nodes) == one.job.num_gpu if one.id in places else True
    used = Counter((at.group, node) for at in places.values() for node in at.nodes)
    assert all(gpus <= SETTING.groups[group].gpus__n[node] for (group, node), gpus in used.items())


def test_more_than_the_scarcest_model_has_is_cut_to_it() -> None:
    assert len(decider().decide(AdaptiveView(60.0, [job(0, num_gpu=40)]))[0].nodes) == min(ROOM) == 8


def test_what_is_unknown_counts_as_many_as_the_gpus_and_the_worst_known_1() -> None:
    groups, limits = node_groups(SETTING), Limits(1024, 1, 1024, tuned=False)
    seen, unseen = KnownGoodput(Goodput(PERF, NOISE), limits, 4), KnownGoodput(None, limits, 4)
    assert asked_row([unseen, unseen, unseen], {}, groups, 4).tolist() == [4.0, 4.0, 4.0]
    assert asked_row([unseen, seen, unseen], {}, groups, 4).tolist() == [4.0, 1.0, 4.0]
    assert asked_row([unseen, seen, unseen], {(0, 1): 0.5, (2, 1): 2.0}, groups, 4).tolist() == [1.0, 2.0, 4.0]
    too_large = KnownGoodput(Goodput(PERF, NOISE), limits._replace(low=1000), 4)
    assert asked_row([too_large, unseen, unseen], {}, groups, 4).tolist() == [4.0, 4.0, 4.0]
    assert asked_row([seen, seen, seen], {}, groups, 9).tolist() == [0.0, 0.0, 0.0]


def test_moves_cost_more_than_restarts_and_waiting_jobs_pay_nothing() -> None:
    sia, known = decider(), dict[str, Any](noise=NOISE, beliefs={0: Belief(PERF, 2)})
    sia.decide(AdaptiveView(60.0, [job(0, place=place(0, 2), **known)]))
    moved = job(0, age_s=1000.0, restarts=3, place=place(1, 2), **known)
    sia.decide(AdaptiveView(120.0, [moved]))
    assert (sia.home, sia.moves) == ({0: 1}, {0: 1})
    left_s = 1000.0 - 2 * 30 - 45
    assert sia.keeping([moved]).tolist() == [[left_s / 1045, 1.0, left_s / 1045]]
    assert sia.keeping([moved._replace(place=None)]).tolist() == [[1.0, 1.0, 1.0]]


def test_jobs_that_want_the_same_gpus_do_not_take_them_in_turns() -> None:
    setting = adaptive_setting(aws=1, dgx=0, rtx=0)
    jobs = [AdaptiveJob(float(number), "bert", 4, 384) for number in range(3)]  # restarts take two rounds
    for sia in (Sia(rigid=True), Sia(rigid=True, power=0.5, unserved=-1)):
        run = run_adaptive(told_of(setting), setting, sia.begin(setting), jobs, until_s=1e6)
        assert run.jobs["ended"].all() and run.trained["restarts"].max() <= 1


def test_a_price_of_change_keeps_jobs_where_they_are() -> None:
    known: dict[str, Any] = {"noise": NOISE, "beliefs": {0: Belief(PERF, 2)}, "place": place(0, 2), "age_s": 1e6}
    free, dear = decider(), decider(changed=50.0)
    for sia in (free, dear):
        sia.chosen = {0: 0}
    one = AdaptiveView(60.0, [job(0, **known)])
    assert free.decide(one)[0].group != 0  # A100 are known to be faster
    assert dear.decide(one)[0].group == 0


def test_whole_runs_end_and_keep_batch_sizes() -> None:
    jobs = random_jobs(random.Random(3), 5, 600.0)
    for sia in (Sia(rigid=True), Sia(rigid=True, power=0.5, unserved=-1, changed=0.01)):
        plan = sia.begin(SETTING)
        assert not plan.tuned
        assert run_adaptive(told_of(SETTING), SETTING, plan, jobs).jobs["ended"].all()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sia(rigid=1)", "rigid"),
        ("sia(rigid=True, changed=-1)", "changed"),
        ("sia(changed=0.1)", "changed"),
        ("sia(rigid=True, aware=False)", "aware"),
        ("sia(rigid=True, power=0.5)", "unserved"),
        ("sia(rigid=True, unserved=-1)", "unserved"),
    ],
)
def test_parameters_are_checked(text: str, complaint: str) -> None:
    with pytest.raises(PolicyError, match=f"policy sia, parameter {complaint}"):
        registry.parse(text)
