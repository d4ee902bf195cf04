"""Shortest total duration: small cases by hand, the published bisection, and feasibility."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.engine.shares.plan import Allocation, RoundView
from fastsim.policies.programs.objectives import MinDuration, bisected_s
from fastsim.policies.shares.min_total_duration import MinTotalDuration
from tests.rounds import excess, oracle, rates_under, setting, view, views

SOLUTIONS = ("centered", "vertex")


def allocated(seen: RoundView, **parameters: str) -> Allocation:
    """What a new policy says of these jobs."""
    found = MinTotalDuration(**parameters).begin(seen.setting).allocator.allocate(seen)
    assert found is not None
    return found


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_time_goes_where_the_steps_are(solution: str) -> None:
    # 100 and 300 steps on one GPU at one step a second: 400 s, a quarter and three quarters of the time.
    seen = view(setting(oracle([[1.0]]), [1]), [0, 0], steps_left=[100.0, 300.0])
    assert allocated(seen, solution=solution).share__rg.ravel() == pytest.approx([0.25, 0.75], abs=1e-6)


def test_the_bisections_duration_is_enough_and_no_more() -> None:
    seen = view(setting(oracle([[1.0]]), [1]), [0, 0], steps_left=[1e5, 3e5])
    found = allocated(seen, search="bisection", solution="vertex")
    reached_s = (seen.steps_left / rates_under(seen, found)).max()
    assert 4e5 <= reached_s <= bisected_s(4e5) * (1 + 1e-9) <= 4e5 * 1.05


def test_without_heterogeneity_every_model_counts_as_the_fastest() -> None:
    seen = view(setting(oracle([[4.0, 1.0]]), [1, 1]), [0, 0], steps_left=[100.0, 100.0])
    assert allocated(seen, mode="base").share__rg.sum(axis=1) == pytest.approx([1, 1], abs=1e-6)


def test_a_job_that_runs_nowhere_is_not_waited_for() -> None:
    seen = view(setting(oracle([[0.0], [2.0]]), [1]), [0, 1], steps_left=[10.0, 10.0])
    for search in ("optimum", "bisection"):
        assert allocated(seen, search=search, solution="vertex").share__rg[0].tolist() == [0]


def test_the_bisection_by_hand() -> None:
    # 100..1e6 -> 500050 is enough, 250075 is not, 375062.5 is, then 312568.75, 343815.625 and 359439.0625.
    assert bisected_s(350_000.0) == 359439.0625
    # Nothing below 1e6 is enough: from there to 1e7 the middles are 5.5e6, 3.25e6, 2.125e6, 2.6875e6, 2.40625e6, ...
    assert bisected_s(2_500_000.0) == 2_546_875.0
    assert bisected_s(1.0) <= 105
    assert bisected_s(500_050.0) == 500_050.0  # the first middle of 100 and 1,000,000: feasible, and none below it


@settings(max_examples=60)
@given(
    views(sizes=(1, 2)), st.sampled_from(("base", "perf", "packed")), st.sampled_from(SOLUTIONS),
    st.sampled_from(("optimum", "bisection")),
)  # fmt: skip
def test_shares_are_feasible_and_reach_the_duration(seen: RoundView, mode: str, solution: str, search: str) -> None:
    found = MinDuration(mode, solution, search).allocate(seen)
    best = MinDuration(mode, "vertex", "optimum").allocate(seen)
    assert found is not None and best is not None and excess(seen, found) < 1e-6
    rate = np.repeat(seen.reference__j[:, None], len(seen.setting.gpu_models), axis=1) if mode == "base" else None
    reached_s, shortest_s = ((seen.steps_left / rates_under(seen, it, rate)).max() for it in (found, best))
    allowed_s = bisected_s(shortest_s) if search == "bisection" else shortest_s
    assert shortest_s * (1 - 1e-6) <= reached_s <= allowed_s * (1 + 1e-6)
