"""Packed programs of random jobs: our answers keep all limits and are as good as those of two algorithms of SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.engine.shares.plan import Floats, RoundView
from fastsim.policies.shares.max_min_fairness import MaxMinFairness
from fastsim.policies.shares.max_sum_throughput import MaxSumThroughput
from tests.reference.packed_programs import SharedTime
from tests.rounds import shared_time, shares_in, views

METHODS, BARS = ("highs-ds", "highs-ipm"), {"vertex": 1e-9, "centered": 1e-7}


def answers(policy: MaxMinFairness | MaxSumThroughput, view: RoundView, case: SharedTime) -> Floats:
    allocation = policy.begin(view.setting).allocator.allocate(view)
    assert allocation is not None
    shares = shares_in(case, view, allocation)
    assert case.excess(shares) <= BARS[policy.solution]
    return shares


@settings(max_examples=25, deadline=None)
@given(view=views(sizes=(1, 1, 2)))
def test_the_largest_sum_within_deadlines(view: RoundView) -> None:
    case, left_s = shared_time(view), view.deadline_s - view.now_s
    needed = np.where(left_s > 0, view.steps_left / left_s, 0.0)
    gain = (case.speed.reshape(len(view), -1, len(case.gpus)) / view.price__g).sum(axis=0).ravel()
    best = {method: case.best(gain, needed, method) for method in METHODS}
    assert (best["highs-ds"] is None) == (best["highs-ipm"] is None)
    if best["highs-ds"] is None:  # no shares meet all deadlines: the sum alone counts
        needed, best = np.zeros(len(view)), {method: case.best(gain, None, method) for method in METHODS}
    most = gain @ best["highs-ds"]
    assert gain @ best["highs-ipm"] == pytest.approx(most, rel=1e-9)
    for solution, bar in BARS.items():
        shares = answers(MaxSumThroughput("packed", per_cost=True, deadlines=True, solution=solution), view, case)
        assert gain @ shares == pytest.approx(most, rel=bar)
        assert (case.speed @ shares >= needed * (1 - 1e-6)).all()


@settings(max_examples=25, deadline=None)
@given(view=views(sizes=(1, 1, 2)))
def test_the_largest_smallest_rate(view: RoundView) -> None:
    case = shared_time(view)
    part = view.setting.gpus__g / view.setting.gpus__g.sum()
    scale = view.num_gpu / (np.nan_to_num(view.rate__jg) @ part) / view.weight
    most = case.largest_smallest(scale)[0]
    assert case.largest_smallest(scale, "highs-ipm")[0] == pytest.approx(most, rel=1e-9, abs=1e-12)
    for solution, bar in BARS.items():
        shares = answers(MaxMinFairness("packed", solution=solution), view, case)
        assert case.smallest(scale, shares) == pytest.approx(most, rel=bar, abs=1e-12)
