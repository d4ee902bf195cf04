"""Sia that tells no GPU models apart: as good as trying everything on equal GPUs; a job has real ones of one model."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import product
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.engine.adaptive.plan import AdaptiveJob, AdaptiveSetting, AdaptiveView, JobView, Place, SpeedEstimate
from fastsim.engine.adaptive.run import run_adaptive
from fastsim.errors import PolicyError
from fastsim.performance.goodput import BatchLimits, Goodput, Noise
from fastsim.policies import registry
from fastsim.policies.adaptive.sia import Sia
from fastsim.policies.deciders.goodput_table import KnownGoodput, requested_row
from fastsim.policies.deciders.pollux_decider import limits_of
from fastsim.policies.deciders.sia_decider import node_groups
from fastsim.policies.deciders.sia_variants import RigidSiaDecider, TypeBlindSiaDecider
from tests.adaptive import APPS, adaptive_setting, random_jobs, told_of
from tests.strategies import scenarios_per_run
from tests.unit.policies.deciders.test_sia_decider import PERF, job

SETTING = adaptive_setting(aws=1, dgx=1, rtx=0)
SIZES = {1: 1, 2: 1, 4: 1}
"""GPUs and nodes: nobody has more than the scarcest model, 4."""
NOISE = Noise(1.0, 5000.0, 128)
SETTING_SIA_RIGID = adaptive_setting(aws=2, dgx=1, rtx=1)
ROOM = [group.gpus for group in SETTING_SIA_RIGID.groups]
MAXIMISED, MINIMISED = (0.5, -1.0), (-0.5, 1.1)


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
            estimate = SpeedEstimate(PERF._replace(beta_c=beta), draw(st.sampled_from([1, 2, 4])))
            more |= {"noise": NOISE, "estimates": dict.fromkeys(range(2), estimate)}
        mode = draw(st.sampled_from(["adaptive", "adaptive", "scale-gpus", "rigid"]))
        found.append(job(number, mode, draw(st.sampled_from([1, 2, 4])), **more))
    return found


def worth(one: JobView, gpus: int, former: int | None, power: float) -> float | None:
    """What so many GPUs are worth to a job, spelled out; None if it cannot have them."""
    best = {1: 1.0}
    asked, estimate = one.job.num_gpu, next(iter(one.estimates.values()), None)
    if one.job.mode == "rigid":
        best = {asked: float(asked)}
    elif estimate is not None and one.noise is not None:
        most = asked if one.job.mode == "scale-gpus" else 2 * estimate.most_replicas
        limits = limits_of(one, True)._replace(float32=True)
        found = {k: Goodput(estimate.perf, one.noise).best([n], [k], limits).goodput[0] for k, n in SIZES.items()}
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
    assert len(sia.held) == 1


def test_gpus_of_a_second_model_are_dropped() -> None:
    setting = adaptive_setting(aws=1, dgx=1, rtx=1)
    sia = decider(setting)
    sia.chosen = {0: 0}
    row = np.zeros(len(sia.nodes), np.int8)
    row[:2] = 1, 1
    sia.held, sia.chosen = {0: row}, {0: int(np.flatnonzero(sia.configurations.gpus__q == 2)[0])}
    (place,) = sia._placed_on([job(0)]).values()
    assert place == Place(1, (0,))  # as many on T4 and A100: the better one stays
    assert sia.held == {}
    (whole,) = sia._placed_on([job(0)]).values()
    assert whole == Place(0, (0, 0)) and sia.held[0].sum() == 2  # it had lost one, so it goes where there are two


@pytest.mark.parametrize("setting", [adaptive_setting(), adaptive_setting(4, 0, 0)])
def test_whole_runs_end(setting: AdaptiveSetting) -> None:
    jobs = random_jobs(random.Random(3), 5, 600.0)
    for sia in (
        Sia(aware=False),
        Sia(aware=False, changed=0.05),
        Sia(aware=False, power=0.5, unserved=-1, changed=-0.02),
    ):
        assert run_adaptive(told_of(setting), setting, sia.begin(setting), jobs).jobs["ended"].all()


def sia_rigid_decider(power: float = 0.5, unserved: float = -1.0, **more: Any) -> RigidSiaDecider:
    return RigidSiaDecider(SETTING_SIA_RIGID, power, unserved, True, False, **more)


def place(group: int, gpus: int) -> Place:
    """So many GPUs of a group."""
    per_node = SETTING_SIA_RIGID.groups[group].gpus__n[0]
    return Place(group, tuple(gpu // per_node for gpu in range(gpus)))


@st.composite
def sia_rigid_known_jobs(draw: st.DrawFn) -> list[JobView]:
    """A few jobs: new ones, some that know a model, some that stand on one."""
    found = []
    for number in range(draw(st.integers(1, 5))):
        gpus, group = draw(st.sampled_from([1, 2, 3, 4, 8])), draw(st.integers(0, 2))
        more: dict[str, Any] = {"age_s": float(draw(st.integers(0, 5000))), "restarts": draw(st.integers(0, 5))}
        if draw(st.booleans()):
            beta = draw(st.sampled_from([0.001, 0.002, 0.004]))
            more |= {"noise": NOISE, "estimates": {group: SpeedEstimate(PERF._replace(beta_c=beta), gpus)}}
            more["place"] = draw(st.sampled_from([None, place(group, gpus)]))
        found.append(job(number, "adaptive", gpus, **more))
    return found


def sia_rigid_worth(sia: RigidSiaDecider, one: JobView, group: int) -> float | None:
    """What a job's GPUs of a group are worth, spelled out; None if it cannot have them."""
    gpus = min(one.job.num_gpu, min(ROOM))
    known = {g: estimate for g, estimate in one.estimates.items() if one.noise is not None}
    rates: list[float] = []
    for g, nodes in enumerate(SETTING_SIA_RIGID.groups):
        seen = g if g in known else min(known, default=None)
        if seen is None:
            continue
        assert one.noise is not None
        at, per_node = (
            APPS["cifar10"].on(SETTING_SIA_RIGID.groups[seen].gpu_model),
            SETTING_SIA_RIGID.groups[seen].gpus__n[0],
        )
        limits = BatchLimits(one.job.batch_size, at.low, at.high, tuned=False, float32=True)
        found = Goodput(known[seen].perf, one.noise).best([-(-gpus // per_node)], [gpus], limits).goodput[0]
        rates.append(found * APPS["cifar10"].on(nodes.gpu_model).one_gpu_rate / at.one_gpu_rate)
    some = [rate for rate in rates if rate > 0]
    row = rates[group] / min(some) if some else float(gpus)
    if one.place is not None:
        moves = sia.moves.get(one.id, 0)
        left = max(one.age_s - 30 * (one.restarts - moves) - 45 * moves, 0.0)
        row *= 1.0 if one.place.group == group else left / (one.age_s + 45)
    return float(np.round(np.float32(row**sia.power), 2)) if row > 0 else None


def sia_rigid_objective(
    sia: RigidSiaDecider, jobs: list[JobView], former: dict[int, int], chosen: tuple[int | None, ...]
) -> float:
    """What all choices add up to; infinite if there are not enough GPUs or somebody cannot have them."""
    sign, used, total = 1.0 if sia.power < 0 else -1.0, Counter[int](), 0.0
    for one, group in zip(jobs, chosen, strict=True):
        before = former.get(one.id)
        total += (
            sign * sia.changed * ((group is not None and group != before) + (before is not None and group != before))
        )
        value = sia.unserved if group is None else sia_rigid_worth(sia, one, group)
        if value is None:
            return np.inf
        total += sign * value
        if group is not None:
            used[group] += min(one.job.num_gpu, min(ROOM))
    return total if all(used[g] <= ROOM[g] for g in used) else np.inf


@settings(max_examples=scenarios_per_run(60), deadline=None)
@given(sia_rigid_known_jobs(), st.sampled_from([MAXIMISED, MINIMISED]), st.sampled_from([0.0, 0.01, 0.237]))
def test_as_good_as_trying_everything_of_sia_rigid(
    jobs: list[JobView], sense: tuple[float, float], changed: float
) -> None:
    sia = sia_rigid_decider(*sense, changed=math.copysign(changed, -sense[0]))
    former = {one.id: one.place.group for one in jobs if one.place is not None}
    sia.chosen = dict(former)
    places = sia.decide(AdaptiveView(60.0, jobs))
    chosen = tuple(places[one.id].group if one.id in places else None for one in jobs)
    best = min(sia_rigid_objective(sia, jobs, former, every) for every in product((None, 0, 1, 2), repeat=len(jobs)))
    # Values are of single precision, and ties are broken by less than a ten-thousandth.
    assert sia_rigid_objective(sia, jobs, former, chosen) == pytest.approx(best, abs=1e-4)
    for one in jobs:
        assert len(places[one.id].nodes) == one.job.num_gpu if one.id in places else True
    used = Counter((at.group, node) for at in places.values() for node in at.nodes)
    assert all(gpus <= SETTING_SIA_RIGID.groups[group].gpus__n[node] for (group, node), gpus in used.items())


def test_more_than_the_scarcest_model_has_is_cut_to_it() -> None:
    assert len(sia_rigid_decider().decide(AdaptiveView(60.0, [job(0, num_gpu=40)]))[0].nodes) == min(ROOM) == 8


def test_what_is_unknown_counts_as_many_as_the_gpus_and_the_worst_known_1() -> None:
    groups, limits = node_groups(SETTING_SIA_RIGID), BatchLimits(1024, 1, 1024, tuned=False)
    seen, unseen = KnownGoodput(Goodput(PERF, NOISE), limits, 4), KnownGoodput(None, limits, 4)
    assert requested_row([unseen, unseen, unseen], {}, groups, 4).tolist() == [4.0, 4.0, 4.0]
    assert requested_row([unseen, seen, unseen], {}, groups, 4).tolist() == [4.0, 1.0, 4.0]
    assert requested_row([unseen, seen, unseen], {(0, 1): 0.5, (2, 1): 2.0}, groups, 4).tolist() == [1.0, 2.0, 4.0]
    too_large = KnownGoodput(Goodput(PERF, NOISE), limits._replace(low=1000), 4)
    assert requested_row([too_large, unseen, unseen], {}, groups, 4).tolist() == [4.0, 4.0, 4.0]
    assert requested_row([seen, seen, seen], {}, groups, 9).tolist() == [0.0, 0.0, 0.0]


def test_moves_cost_more_than_restarts_and_waiting_jobs_pay_nothing() -> None:
    sia, known = sia_rigid_decider(), dict[str, Any](noise=NOISE, estimates={0: SpeedEstimate(PERF, 2)})
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
    known: dict[str, Any] = {
        "noise": NOISE,
        "estimates": {0: SpeedEstimate(PERF, 2)},
        "place": place(0, 2),
        "age_s": 1e6,
    }
    free, dear = sia_rigid_decider(), sia_rigid_decider(changed=-50.0)
    for sia in (free, dear):
        sia.chosen = {0: 0}
    one = AdaptiveView(60.0, [job(0, **known)])
    assert free.decide(one)[0].group != 0  # A100 are known to be faster
    assert dear.decide(one)[0].group == 0


def test_whole_runs_end_and_keep_batch_sizes() -> None:
    jobs = random_jobs(random.Random(3), 5, 600.0)
    for sia in (Sia(rigid=True), Sia(rigid=True, power=0.5, unserved=-1, changed=-0.02)):
        plan = sia.begin(SETTING_SIA_RIGID)
        assert not plan.tuned
        assert run_adaptive(told_of(SETTING_SIA_RIGID), SETTING_SIA_RIGID, plan, jobs).jobs["ended"].all()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sia(rigid=1)", "rigid"),
        ("sia(rigid=True, changed=-1)", "changed"),
        ("sia(rigid=True, power=0.5, unserved=-1, changed=0.02)", "changed"),
        ("sia(aware=False, power=0.5, unserved=-1, changed=0.02)", "changed"),
        ("sia(changed=0.1)", "changed"),
        ("sia(rigid=True, aware=False)", "aware"),
        ("sia(rigid=True, power=0.5)", "unserved"),
        ("sia(rigid=True, unserved=-1)", "unserved"),
    ],
)
def test_parameters_are_checked(text: str, complaint: str) -> None:
    with pytest.raises(PolicyError, match=f"policy sia, parameter {complaint}"):
        registry.parse(text)
