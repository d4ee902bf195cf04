"""Packed programs, written down anew from their definitions: recorded answers, ours and SciPy's are all optima.

Where jobs end at other times than in the original although each program has its optimum, one of many was chosen.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fastsim.engine.shares.plan import Floats, RoundView
from tests.golden.gavel.gavel_lp import Call, calls, recorded_allocation, recordings, round_policy
from tests.golden.gavel.test_gavel_lp import proportional, remember
from tests.reference.packed_programs import SharedTime, least_worst_ratio, worst_ratio
from tests.rounds import shared_time, shares_in

METHODS, EXACT = ("highs-ds", "highs-ipm"), 1e-9
BARS = {"vertex": EXACT, "centered": 1e-8, "recorded": 1e-7}
"""Relative bars: interior solutions end short of the optimum, and the original rounds rates of pairs to 1e-7."""


def told(name: str) -> Iterator[tuple[Call, RoundView, SharedTime, dict[str, Floats]]]:
    """The recorded calls with the shares that were recorded and those of ours."""
    for call in calls(name):
        view = call.view
        case, found = shared_time(view), {"recorded": recorded_allocation(call)}
        for solution in ("centered", "vertex"):
            allocator = round_policy(call.policy, solution=solution).begin(view.setting).allocator
            remember(allocator, call)
            found[solution] = allocator.allocate(view)
        answers = {who: shares_in(case, view, allocation) for who, allocation in found.items()}
        for who, shares in answers.items():
            assert case.excess(shares) <= BARS[who]
        yield call, view, case, answers


@pytest.mark.parametrize("name", [name for name in recordings("max_sum") if "packed" in name])
def test_the_largest_sum_within_deadlines(name: str) -> None:
    apart = []
    for _call, view, case, answers in told(name):
        left_s = view.deadline_s - view.now_s
        needed = np.where(left_s > 0, view.steps_left / left_s, 0.0)
        gain = (case.speed.reshape(len(view), -1, len(case.gpus)) / view.price__g).sum(axis=0).ravel()
        best = {method: case.best(gain, needed, method) for method in METHODS}
        if any(shares is None for shares in best.values()):  # no shares meet all deadlines: the sum alone counts
            needed, best = np.zeros(len(view)), {method: case.best(gain, None, method) for method in METHODS}
        most = gain @ best["highs-ds"]
        assert gain @ best["highs-ipm"] == pytest.approx(most, rel=EXACT)
        for who, shares in answers.items():
            assert gain @ shares == pytest.approx(most, rel=BARS[who])
            assert (case.speed @ shares >= needed * (1 - 1e-6)).all()
        apart.append(abs(answers["recorded"] - best["highs-ds"]).max())
    assert max(apart) > 0.1


@pytest.mark.parametrize("name", recordings("max_min_fairness_packed"))
def test_the_largest_smallest_rate(name: str) -> None:
    for _call, view, case, answers in told(name):
        scale = view.num_gpu / proportional(view) / view.weight
        most = case.largest_smallest(scale)[0]
        assert case.largest_smallest(scale, "highs-ipm")[0] == pytest.approx(most, rel=EXACT)
        for who, shares in answers.items():
            assert case.smallest(scale, shares) == pytest.approx(most, rel=BARS[who])


@pytest.mark.parametrize("name", recordings("finish_time_fairness_packed"))
def test_the_smallest_worst_finish_ratio(name: str) -> None:
    apart = []
    for call, view, case, answers in list(told(name))[::4]:
        fair_s = np.array([call.meta["isolated_denominator_s"][str(job)] for job in view.job_id])
        ages = view.now_s - view.submit_s, view.steps_left * view.weight, fair_s
        least = least_worst_ratio(case, *ages)
        assert least_worst_ratio(case, *ages, method="highs-ipm") == pytest.approx(least, rel=EXACT)
        for who, shares in answers.items():
            # Some of the original's cones ended within 3.4e-5 of the optimum, half of them within 1e-10.
            limit = 1e-4 if who == "recorded" else EXACT
            assert worst_ratio(case.speed @ shares, *ages) == pytest.approx(least, rel=limit)
        apart.append([abs(answers["recorded"] - answers[who]).max() for who in ("centered", "vertex")])
    assert np.median(apart, axis=0).min() > 0.05
