"""The recorded calls of Gavel's linear programs: our optimum is as good, and nobody gets what there is not."""

from __future__ import annotations

import json
from fractions import Fraction
from importlib.resources import files
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.optimize import linprog

from fastsim.engine.shares.plan import Allocation, Floats, RoundView
from fastsim.policies.programs.geometric_mean import Discounted
from fastsim.policies.programs.objectives import bisected_s
from fastsim.policies.shares.water_filling import WaterFillingFairness, entities_of
from tests.golden.gavel.gavel_lp import (
    GAVEL,
    Call,
    calls,
    golden_setting,
    recorded_allocation,
    recordings,
    round_policy,
)
from tests.reference.exact_levels import exact_levels
from tests.reference.rounds.water_levels import claims, filled
from tests.rounds import excess, rates_under
from tests.rounds import view as view_of

FEASIBLE = 1e-6
"""The recordings' own bar."""
SOLUTIONS = ("centered", "vertex")


def answers(name: str, solution: str) -> list[tuple[Call, RoundView, Allocation]]:
    """Our allocations of all calls of a recording, each of them checked."""
    found = []
    for call in calls(name):
        view = call.view
        allocator = round_policy(call.policy, solution=solution).begin(view.setting).allocator
        remember(allocator, call)
        allocation = allocator.allocate(view)
        assert allocation is not None and excess(view, allocation) <= FEASIBLE
        assert allocation.first[: len(view)].tolist() == view.job_id.tolist()
        found.append((call, view, allocation))
    return found


def remember(allocator: Any, call: Call) -> None:
    """Give an allocator what the original's remembered when it was called."""
    past_s = call.jobs["cumulative_isolated_time"]
    if past_s.dtype != pl.Null:
        isolated_s = {str(job): past for job, past in zip(call.jobs["job_id"], past_s, strict=True)}
        allocator.restore({"isolated_s": isolated_s, "last": {}})


def proportional(view: RoundView) -> Floats:
    """Rate of each job that spends its time on the models by the number of their GPUs."""
    share: Floats = view.setting.gpus__g / view.setting.gpus__g.sum()
    rate: Floats = np.nan_to_num(view.rate__jg) @ share
    return rate


def normalised(view: RoundView, allocation: Allocation, policy: str) -> Floats:
    """Normalised rates; without heterogeneity a rate is the share of time itself."""
    if policy.endswith(("_perf", "_packed")):
        return rates_under(view, allocation) / proportional(view)
    return rates_under(view, allocation, np.ones_like(view.rate__jg))


def plain(family: str) -> list[str]:
    """Recordings of one family: base, perf and packed."""
    suffixes = {family, f"{family}_perf", f"{family}_packed"}
    return [name for name in recordings(family) if name.partition("__")[2] in suffixes]


@pytest.mark.parametrize("solution", SOLUTIONS)
@pytest.mark.parametrize("name", plain("max_min_fairness"))
def test_max_min_fairness(name: str, solution: str) -> None:
    for call, view, allocation in answers(name, solution):
        smallest = (normalised(view, allocation, call.policy) * view.num_gpu / view.weight).min()
        # The recordings' bar; the reference's own gap is 2e-9.
        assert smallest == pytest.approx(call.meta["objective_opt"], rel=1e-6)


def finish_rates(view: RoundView, allocation: Allocation, policy: str) -> Floats:
    """Rates as the policies that look at steps see them: without heterogeneity every model is the fastest."""
    if policy.endswith(("_perf", "_packed")):
        return rates_under(view, allocation)
    return rates_under(view, allocation, np.repeat(view.reference__j[:, None], len(view.setting.gpu_models), axis=1))


@pytest.mark.parametrize("solution", SOLUTIONS)
@pytest.mark.parametrize("name", plain("finish_time_fairness"))
def test_finish_time_fairness(name: str, solution: str) -> None:
    for call, view, allocation in answers(name, solution):
        fair_s = np.array([call.meta["isolated_denominator_s"][str(job)] for job in view.job_id])
        rate = finish_rates(view, allocation, call.policy) / (view.weight if name.endswith("_packed") else 1.0)
        worst = ((view.now_s - view.submit_s + view.steps_left / rate) / fair_s).max()
        # The recordings' bar; ours is compared with the optimum found by bisection, not with the original's.
        assert worst == pytest.approx(call.meta["objective_opt"], rel=1e-6)


@pytest.mark.parametrize("solution", SOLUTIONS)
@pytest.mark.parametrize("name", plain("min_total_duration"))
def test_min_total_duration(name: str, solution: str) -> None:
    for call, view, allocation in answers(name, solution):
        reached_s = (view.steps_left / finish_rates(view, allocation, call.policy)).max()
        shortest_s, bisection_s = call.meta["T_opt"], call.meta["T_bisect_highs"]
        assert bisected_s(shortest_s) == bisection_s
        assert shortest_s * (1 - 1e-7) <= reached_s <= bisection_s * (1 + 1e-7)


@pytest.mark.parametrize("name", plain("min_total_duration"))
def test_the_shortest_total_duration_itself(name: str) -> None:
    for call in calls(name):
        view = call.view
        found = round_policy(call.policy, search="optimum").begin(view.setting).allocator.allocate(view)
        reached_s = (view.steps_left / finish_rates(view, found, call.policy)).max()
        assert reached_s == pytest.approx(call.meta["T_opt"], rel=1e-6)


@pytest.mark.parametrize("solution", SOLUTIONS)
@pytest.mark.parametrize("name", recordings("max_sum_throughput"))
def test_max_sum_throughput(name: str, solution: str) -> None:
    for call, view, allocation in answers(name, solution):
        price = view.price__g if "cost" in call.policy else np.ones(len(view.setting.gpu_models))
        total = rates_under(view, allocation, by_model=1 / price).sum()
        assert total == pytest.approx(call.meta["objective_opt"], rel=1e-6)
        if call.meta.get("slo_feasible"):
            left_s = view.deadline_s - view.now_s
            needed = np.where(left_s > 0, view.steps_left / left_s, 0.0)
            assert (rates_under(view, allocation) >= needed * (1 - 1e-6)).all()


@pytest.mark.parametrize("solution", SOLUTIONS)
@pytest.mark.parametrize("name", plain("max_min_fairness_water_filling"))
def test_water_filling(name: str, solution: str) -> None:
    for call, view, allocation in answers(name, solution):
        found = normalised(view, allocation, call.policy)
        original = [call.meta["normalized_throughput_ref"][str(job)] for job in view.job_id]
        # The reference's own gap to the lexicographic optimum is up to 3.4e-5; ours is the solver's.
        assert found == pytest.approx(original, rel=1e-4)
        exact = call.meta.get("normalized_throughput_lexopt")
        assert exact is None or found == pytest.approx([exact[str(job)] for job in view.job_id], rel=1e-6)


HIERARCHIES = json.loads((GAVEL / "lp/hierarchical.json").read_text()) if GAVEL.exists() else []


def possible_gain(view: RoundView, relative__jg: Floats, reached: Floats) -> float:
    """By how much the sum of normalised rates can still rise if no job's falls, relative."""
    count, models = relative__jg.shape
    own, use = np.kron(np.eye(count), np.ones(models)), np.kron(np.ones(count), np.eye(models))
    # What was reached is only known to 1e-7.
    rows = np.concatenate([-own * relative__jg.ravel(), own, use])
    limits = np.concatenate([-np.maximum(reached, 0) * (1 - 1e-7), np.ones(count), view.setting.gpus__g])
    best = linprog(-relative__jg.ravel(), rows, limits, bounds=(0, 1))
    return float(-best.fun / reached.sum() - 1)


def hierarchy(told: dict[str, Any]) -> tuple[str, tuple[str, ...], RoundView]:
    """Entities of a recorded answer as a text, the entity of each job, and the view of the jobs."""
    entities = ",".join(f"{name}:{weight}:{told['entity_policy']}" for name, weight in told["entity_weights"].items())
    tenant = {job: name for name, jobs in told["entity_jobs"].items() for job in jobs}
    setting = golden_setting(told["cluster"])
    kinds = [setting.oracle.kind_index[(kind, 1)] for kind in told["job_types"]]
    names = tuple(tenant[job] for job in range(len(kinds)))
    return entities, names, view_of(setting, kinds, weight=told["weights"], tenant=names)


@pytest.mark.parametrize("mode", ["base", "perf"])
@pytest.mark.parametrize("index", range(len(HIERARCHIES)))
def test_entities(index: int, mode: str) -> None:
    """Max-min fairness raises every job that can have more without slowing one that has no more than it.

    So where jobs can still have more at no cost to any other, an answer is not the one that is defined. The original
    ends when a step holds no further job, and some of its answers are such; ours never are.
    """
    told = HIERARCHIES[index]
    entities, names, seen = hierarchy(told)
    kinds, setting = seen.kind, seen.setting
    policy = WaterFillingFairness(mode=mode, entities=entities)
    allocation = policy.begin(setting).allocator.allocate(seen)
    assert allocation is not None and excess(seen, allocation) <= FEASIBLE
    found = normalised(seen, allocation, f"water_filling_{mode}")
    rate = seen.rate__jg / proportional(seen)[:, None] if mode == "perf" else np.ones_like(seen.rate__jg)
    gpus = np.ones(len(kinds)), setting.gpus__g.astype(float)
    # The definition, followed job by job; every level is one of up to 18 that may each miss by 1e-7.
    assert found == pytest.approx(filled(rate, *gpus, seen.weight, names, entities_of(entities)), rel=1e-5, abs=1e-6)
    original = np.array(told["normalized_effective_throughput"][mode])
    gain = possible_gain(seen, rate, original)
    if gain < 1e-5:
        # The recordings' bar for these vectors.
        assert found == pytest.approx(original, rel=1e-4, abs=1e-5)
    else:
        # What jobs could have besides is more than 1 % of all, so no noise; the lowest level is one and the same.
        claim = claims(np.zeros(len(kinds), bool), seen.weight, names, entities_of(entities))
        assert gain > 0.01 and found.sum() > original.sum()
        if mode == "base":  # all models are one, so fractions say without rounding who is right
            exact = exact_levels(
                [[Fraction(1)]] * len(kinds), [int(setting.gpus__g.sum())], [*map(Fraction, told["weights"])], names,
                {name: (Fraction(weight), inner) for name, (weight, inner) in entities_of(entities).items()},
            )  # fmt: skip
            assert found == pytest.approx([float(level) for level in exact], rel=1e-7)
            assert abs(original - [float(level) for level in exact]).max() > 0.01
        assert (found / claim).min() == pytest.approx((original / claim).min(), rel=1e-4)


@pytest.mark.parametrize("name", [*plain("max_min_fairness"), *recordings("max_sum"), *plain("min_total_duration")])
def test_among_many_optima_the_recorded_one(name: str) -> None:
    for call, view, allocation in answers(name, "centered"):
        found, expected = (useful_shares(view, it) for it in (allocation, recorded_allocation(call)))
        # The original's rates of pairs are rounded to 1e-7, and along a face of optima that counts a hundredfold.
        tolerance = 2e-5 if "_packed" in name else 1e-6
        for pair in {*found, *expected}:
            assert found.get(pair, 0.0) == pytest.approx(expected.get(pair, 0.0), abs=tolerance)


@pytest.mark.parametrize("name", [name for name in plain("finish_time_fairness") if not name.endswith("_packed")])
def test_the_published_cones_end_where_they_did(name: str) -> None:
    apart = []
    for call, view, allocation in answers(name, "centered"):
        recorded = recorded_allocation(call)
        assert recorded.first.tolist() == view.job_id.tolist()
        apart.append(abs(allocation.share__rg[: len(view)] - recorded.share__rg).max())
    # Where the face is flat, the last digits of the steps decide; another optimum is 0.03 to 0.1 away (median).
    assert np.median(apart) < 1e-5 and max(apart) < 1e-3


def test_how_many_answers_leave_gpus_idle_and_by_how_much() -> None:
    """The numbers that the guide of exactness tells of the recorded answers of water filling among entities."""
    gains, more = [], []
    for told in HIERARCHIES:
        entities, _, seen = hierarchy(told)
        for mode in ("base", "perf"):
            rate = seen.rate__jg / proportional(seen)[:, None] if mode == "perf" else np.ones_like(seen.rate__jg)
            original = np.array(told["normalized_effective_throughput"][mode])
            gain = possible_gain(seen, rate, original)
            if gain >= 1e-5:
                ours = WaterFillingFairness(mode=mode, entities=entities).begin(seen.setting).allocator.allocate(seen)
                assert ours is not None
                gains.append(gain)
                more.append((original - normalised(seen, ours, f"water_filling_{mode}")).max())
    told, alike = 2 * len(HIERARCHIES), 2 * len(HIERARCHIES) - len(gains)
    text = " ".join((files("fastsim") / "guides/exactness.md").read_text(encoding="utf-8").split())
    assert f"Of {told} recorded answers of water filling among entities {alike} are" in text
    assert f"({100 * min(gains):.1f} to {100 * max(gains):.0f} % of all rates)" in text
    assert f"give some up to {max(more):.2f} more" in text


def useful_shares(view: RoundView, allocation: Allocation) -> dict[tuple[int, int], Floats]:
    """Shares of jobs and pairs on the models where they run; the original also hands out shares that lead nowhere."""
    first = np.searchsorted(view.job_id, allocation.first)
    second = np.searchsorted(view.job_id, allocation.second)
    alone = allocation.second < 0
    runs = np.nan_to_num(view.rate__jg[first]) > 0
    rates = view.pair_rates(first[~alone], second[~alone])
    runs[~alone] = (np.nan_to_num(rates[0]) > 0) | (np.nan_to_num(rates[1]) > 0)
    pairs = zip(allocation.first.tolist(), allocation.second.tolist(), strict=True)
    return dict(zip(pairs, allocation.share__rg * runs, strict=True))


PROOFS = json.loads((GAVEL / "lp/strategy_proof.json").read_text()) if GAVEL.exists() else []


@pytest.mark.parametrize("index", range(len(PROOFS)))
def test_strategy_proof(index: int) -> None:
    told = PROOFS[index]
    setting = golden_setting(told["cluster"])
    seen = view_of(setting, [setting.oracle.kind_index[(kind, 1)] for kind in told["job_types"]])
    policy = Discounted("perf")
    _, rate = policy.proportional_fairness(seen)
    # The original's solver works to 1e-8 of the product, which is 1e-5 where the product is flat.
    assert policy.discount__j(seen, rate) == pytest.approx(told["discount_factors"], rel=2e-5)
    allocation = policy.allocate(seen)
    assert allocation is not None and excess(seen, allocation) <= FEASIBLE
    original = (seen.rate__jg * np.array(told["allocation"])).sum(axis=1)
    assert rates_under(seen, allocation) == pytest.approx(original, rel=2e-5)
