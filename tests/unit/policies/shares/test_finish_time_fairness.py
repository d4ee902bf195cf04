"""Finish-time fairness: small cases by hand, the memory of past progress, and the optimum found another way."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fastsim.engine.shares.plan import Allocation, RoundView
from fastsim.policies.programs.finish_time import Bound, FinishTime
from fastsim.policies.programs.objectives import job_groups, level_program
from fastsim.policies.programs.share_program import Shares, isolated_rate
from fastsim.policies.shares.finish_time_fairness import FinishTimeFairness
from fastsim.policies.solvers.highs import Solution, Solver
from tests.rounds import excess, oracle, rates_under, setting, view, views

SOLUTIONS = ("centered", "vertex")


def allocated(seen: RoundView, **parameters: Any) -> Allocation:
    """What a new policy says of these jobs."""
    found = FinishTimeFairness(**parameters).begin(seen.setting).allocator.allocate(seen)
    assert found is not None
    return found


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_jobs_that_have_just_arrived_share_evenly(solution: str) -> None:
    # One GPU, equal jobs but for their length: each would have half the GPU to itself, and has.
    seen = view(setting(oracle([[2.0]]), [1]), [0, 0], steps_left=[100.0, 700.0])
    assert allocated(seen, solution=solution).share__rg.ravel() == pytest.approx([0.5, 0.5], abs=1e-6)


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_who_has_waited_gets_more(solution: str) -> None:
    # Both need 100 s alone, 200 s in isolation. The first has waited 100 s without a step: with shares x and 1 - x the
    # ratios (100 + 100/x) / 200 and (100 / (1 - x)) / 200 are equal where x**2 + x = 1.
    seen = view(setting(oracle([[1.0]]), [1]), [0, 0], 100.0, steps_left=[100.0, 100.0], submit_s=[0.0, 100.0])
    x = (np.sqrt(5) - 1) / 2
    assert allocated(seen, solution=solution).share__rg.ravel() == pytest.approx([x, 1 - x], rel=1e-6)


def test_without_heterogeneity_every_model_counts_as_the_fastest() -> None:
    # The second model is slow for both, which is not looked at: either may be on either.
    seen = view(setting(oracle([[4.0, 1.0]]), [1, 1]), [0, 0], steps_left=[100.0, 100.0])
    found = allocated(seen, mode="base")
    assert found.share__rg.sum(axis=1) == pytest.approx([1, 1], abs=1e-6)


def test_past_progress_counts_as_it_would_have_taken_in_isolation() -> None:
    where = setting(oracle([[1.0]]), [1])
    used: Any = FinishTime("perf", "vertex")
    used.allocate(view(where, [0, 0], 0.0, steps_left=[100.0, 100.0]))
    # 30 and 10 steps at half a step a second each.
    used.allocate(view(where, [0, 0], 60.0, steps_left=[70.0, 90.0]))
    assert used.state()["isolated_s"] == {"0": 60.0, "1": 20.0}
    assert used.state()["last"] == {"0": [70.0, 0.5], "1": [90.0, 0.5]}
    # A job alone would have the whole GPU: ten more steps now count half as long, but those of before do not.
    alone = replace(view(where, [0], 70.0, steps_left=[60.0]), job_id=np.array([1]))
    used.allocate(alone)
    assert used.state() == {"isolated_s": {"1": 20.0 + 60.0}, "last": {"1": [60.0, 1.0]}}


def test_no_jobs_end_what_was_last_seen_but_not_what_is_past() -> None:
    where = setting(oracle([[1.0]]), [1])
    used: Any = FinishTime("perf", "vertex")
    used.restore({"isolated_s": {"0": 5.0}, "last": {"0": [9.0, 1.0]}})
    assert used.allocate(view(where, [])) is None
    assert used.state() == {"isolated_s": {"0": 5.0}, "last": {}}


def test_a_bound_on_the_ratio_needs_rates() -> None:
    # Half a step at 1 step/s against half a second; after 10 s, 20 steps at 2 steps/s against 40 s; the others have no
    # work left, run nowhere or had no time in isolation.
    seen = view(setting(oracle([[1.0], [2.0], [0.0]]), [4]), [0, 1, 0, 2, 0])
    shares = Shares(seen, job_groups(seen, "perf"))
    age_s, left, fair_s = ([0.0, 10.0, 9.0, 9.0, 9.0], [0.5, 20.0, 0.0, 9.0, 9.0], [0.5, 40.0, 9.0, 9.0, 0.0])
    bound = Bound(shares, np.array(age_s), np.array(left), np.array(fair_s))
    assert bound.counts.tolist() == [True, True, False, False, False]
    assert bound.floor == 1.0  # (0 + 0.5 / 1) / 0.5; the second could reach (10 + 20 / 2) / 40 = 0.5
    assert bound.scale(2.0).tolist() == [2.0, 3.5, 0.0, 0.0, 0.0]  # (2 * 0.5 - 0) / 0.5, (2 * 40 - 10) / 20
    # The second job alone limits: at half of what it needs, its slack of 1 * 40 - 10 must be twice as long.
    optimum = Solution(np.zeros(6), np.array([0.0, -1.0, 0.0, 0.0, 0.0]), 0.5)
    assert bound.raised(1.0, optimum) == pytest.approx((10 + 2 * 30) / 40, rel=1e-12)  # Newton's steps end at rounding


def test_a_job_that_runs_nowhere_is_not_asked() -> None:
    seen = view(setting(oracle([[0.0], [2.0]]), [1]), [0, 1], steps_left=[10.0, 10.0])
    assert allocated(seen).share__rg.ravel() == pytest.approx([0, 1], abs=1e-6)


@settings(max_examples=40)
@given(views(sizes=(1, 2)), st.sampled_from(("base", "perf", "packed")))
def test_a_run_that_is_resumed_goes_on_as_it_would_have(seen: RoundView, mode: str) -> None:
    whole, first, second = (FinishTime(mode, "centered") for _ in range(3))
    later = replace(seen, now_s=seen.now_s + 400, steps_left=seen.steps_left * 0.75)
    for allocator in (whole, first):
        allocator.allocate(seen)
    second.restore(json.loads(json.dumps(first.state())))
    one, two = whole.allocate(later), second.allocate(later)
    assert one is not None and two is not None
    assert one.share__rg.tobytes() == two.share__rg.tobytes()
    assert whole.state() == second.state()


@settings(max_examples=60)
@given(views(sizes=(1, 2)), st.sampled_from(("perf", "packed")), st.sampled_from(SOLUTIONS))
def test_newtons_optimum_is_the_bisections(seen: RoundView, mode: str, solution: str) -> None:
    seen = replace(seen, weight=np.ones(len(seen)))
    found = FinishTime(mode, solution).allocate(seen)
    assert found is not None and excess(seen, found) < 1e-6
    alone = isolated_rate(seen.rate__jg, seen.num_gpu, seen.setting.gpus__g)
    age_s, fair_s = seen.now_s - seen.submit_s, seen.steps_left / alone
    reached = ((age_s + seen.steps_left / rates_under(seen, found)) / fair_s).max()
    shares, solver = Shares(seen, job_groups(seen, mode)), Solver("vertex")
    low, high = 0.0, reached * 1.01
    assume(np.isfinite(high))
    for _ in range(40):
        rho = (low + high) / 2
        scale = (rho * fair_s - age_s) / seen.steps_left
        enough = scale.min() > 0 and solver.maximum(level_program(shares, scale)).objective >= 1
        low, high = (low, rho) if enough else (rho, high)
    # Centred solutions are optimal to 1e-8 of the level; the ratio may depend on it more steeply.
    assert reached == pytest.approx(high, rel=1e-5 if solution == "centered" else 1e-7)
