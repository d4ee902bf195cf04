"""Max-min fairness: small cases by hand, and that jobs alike may be one column."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.engine.shares.plan import ALONE, Allocation, RoundView
from fastsim.policies.programs.job_classes import Groups, grouped
from fastsim.policies.programs.objectives import MaxMin, fair_scale, level_program
from fastsim.policies.programs.share_program import Shares
from fastsim.policies.shares.max_min_fairness import MaxMinFairness
from fastsim.policies.solvers.highs import Solver
from tests.rounds import excess, oracle, rates_under, setting, view, views

SOLUTIONS = ("centered", "vertex")


def allocated(seen: RoundView, **parameters: str) -> Allocation:
    """What a new policy says of these jobs."""
    found = MaxMinFairness(**parameters).begin(seen.setting).allocator.allocate(seen)
    assert found is not None
    return found


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_each_job_gets_the_model_it_is_good_at(solution: str) -> None:
    # Both are 1 on the other's model and 3 on their own: 2 on average, 1.5 times that where they belong.
    seen = view(setting(oracle([[3.0, 1.0], [1.0, 3.0]]), [1, 1]), [0, 1])
    found = allocated(seen, solution=solution)
    assert found.share__rg.ravel() == pytest.approx([1, 0, 0, 1], abs=1e-6)
    assert found.solver_s > 0


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_a_heavier_job_gets_as_much_more_and_a_wider_one_as_much_less(solution: str) -> None:
    where = setting(oracle([[1.0], [1.0]], num_gpu=[1, 2]), [1])
    weighted = allocated(view(where, [0, 0], weight=[1.0, 3.0]), mode="base", solution=solution)
    assert weighted.share__rg.ravel() == pytest.approx([0.25, 0.75], abs=1e-6)
    # A job of two GPUs counts its share twice: equal GPU time, here half of the GPU each.
    wide = allocated(view(where, [0, 1]), mode="base", solution=solution)
    assert wide.share__rg.ravel() == pytest.approx([0.5, 0.25], abs=1e-6)


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_sharing_a_gpu_beats_taking_turns(solution: str) -> None:
    # Three jobs, one GPU: together they run at 0.8, so each is in a pair for two thirds of the time.
    seen = view(setting(oracle([[1.0]], [[[0.8]]]), [1]), [0, 0, 0])
    found = allocated(seen, mode="packed", solution=solution)
    assert rates_under(seen, found) == pytest.approx([0.8 * 2 / 3] * 3, rel=1e-6)
    pairs = found.second != ALONE
    assert found.share__rg[pairs].ravel() == pytest.approx([1 / 3] * 3, rel=1e-5)


def test_a_job_that_runs_nowhere_holds_nobody_down() -> None:
    seen = view(setting(oracle([[0.0], [2.0]]), [1]), [0, 1])
    assert allocated(seen).share__rg.ravel() == pytest.approx([0, 1], abs=1e-6)


def test_without_jobs_there_is_nothing_to_say() -> None:
    seen = view(setting(oracle([[1.0]]), [1]), [])
    plan = MaxMinFairness().begin(seen.setting)
    assert plan.allocator.allocate(seen) is None
    assert plan.allocator.state() == {}
    plan.allocator.restore({})


@pytest.mark.parametrize(
    ("mode", "pairs", "visit"), [("base", False, "shuffled"), ("perf", False, "fastest"), ("packed", True, "fastest")]
)
def test_plans(mode: str, pairs: bool, visit: str) -> None:
    plan = MaxMinFairness(mode=mode).begin(setting(oracle([[1.0]]), [1]))
    assert (plan.pairs, plan.visit, plan.strict) == (pairs, visit, False)


def level(seen: RoundView, groups: Groups) -> float:
    """The best smallest normalised rate."""
    return Solver("vertex").maximum(level_program(Shares(seen, groups), fair_scale(seen, groups))).objective


@settings(max_examples=100)
@given(views(sizes=(1, 2)), st.booleans())
def test_jobs_alike_may_be_one_column(seen: RoundView, pairs: bool) -> None:
    groups = grouped(seen, seen.rate__jg, seen.kind * 10 + seen.weight.astype(int), pairs)
    apart = grouped(seen, seen.rate__jg, np.arange(len(seen)), pairs)
    assert len(apart.size__c) == len(seen)
    # Both are corners of exact programs.
    assert level(seen, groups) == pytest.approx(level(seen, apart), rel=1e-8)


@settings(max_examples=60)
@given(views(sizes=(1, 2)), st.sampled_from(("base", "perf", "packed")), st.sampled_from(SOLUTIONS))
def test_shares_are_feasible_and_repeat(seen: RoundView, mode: str, solution: str) -> None:
    used = MaxMin(mode, solution)
    found = used.allocate(seen)
    assert found is not None and excess(seen, found) < 1e-6
    again = used.allocate(seen)
    assert again is not None and again.share__rg.tobytes() == found.share__rg.tobytes()
