"""Largest sum of rates: small cases by hand, prices, deadlines, and that jobs alike may be one column."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.engine.shares.plan import Allocation, RoundView
from fastsim.errors import PolicyError
from fastsim.policies import registry
from fastsim.policies.programs import objectives
from fastsim.policies.programs.job_classes import grouped
from fastsim.policies.programs.objectives import MaxSum, needed_rate, worth__rg
from fastsim.policies.registry import parse
from fastsim.policies.shares.max_sum_throughput import MaxSumThroughput
from tests.rounds import excess, oracle, rates_under, setting, view, views

SOLUTIONS = ("centered", "vertex")


def allocated(seen: RoundView, **parameters: Any) -> Allocation:
    """What a new policy says of these jobs."""
    found = MaxSumThroughput(**parameters).begin(seen.setting).allocator.allocate(seen)
    assert found is not None
    return found


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_the_fast_job_gets_the_gpu(solution: str) -> None:
    seen = view(setting(oracle([[1.0], [3.0]]), [1]), [0, 1])
    assert allocated(seen, solution=solution).share__rg.ravel() == pytest.approx([0, 1], abs=1e-6)


def test_prices_move_it_to_the_cheap_model() -> None:
    # 4 steps/s for 2 $/h or 3 steps/s for 1 $/h.
    seen = view(setting(oracle([[4.0, 3.0]]), [1, 1]), [0], price__g=[2.0, 1.0])
    assert allocated(seen).share__rg.ravel() == pytest.approx([1, 0], abs=1e-6)
    assert allocated(seen, per_cost=True).share__rg.ravel() == pytest.approx([0, 1], abs=1e-6)


@pytest.mark.parametrize("solution", SOLUTIONS)
def test_a_deadline_takes_what_it_needs(solution: str) -> None:
    where = setting(oracle([[1.0], [3.0]]), [1])
    late = view(where, [0, 1], steps_left=[25.0, 1.0], deadline_s=[100.0, np.inf])
    assert allocated(late, deadlines=True, solution=solution).share__rg.ravel() == pytest.approx([0.25, 0.75], abs=1e-6)
    # Not even all the time is enough: then no deadline counts. One that has passed counts for nothing either.
    for left, deadline in ((125.0, 100.0), (25.0, -1.0)):
        lost = view(where, [0, 1], steps_left=[left, 1.0], deadline_s=[deadline, np.inf])
        assert allocated(lost, deadlines=True, solution=solution).share__rg.ravel() == pytest.approx([0, 1], abs=1e-6)


def test_a_deadline_needs_the_steps_left_over_the_time_left() -> None:
    where = setting(oracle([[1.0]]), [1])
    deadline_s = [100.0, 40.5, 40.0, 20.0, np.inf]
    seen = view(where, [0] * 5, 40.0, steps_left=[30.0, 2.0, 30.0, 30.0, 30.0], deadline_s=deadline_s)
    assert needed_rate(seen).tolist() == [0.5, 4.0, 0.0, 0.0, 0.0]  # 60 s and half a second are left, or none


def test_a_unit_of_a_group_is_worth_the_rates_of_all_its_members_over_the_price() -> None:
    # Three jobs of kind 0 (0.5 each in a pair), one of kind 1 (0.25 beside one of kind 0, which runs at 0.75).
    rates = oracle([[1.0, 2.0], [4.0, 6.0]], [[[0.5, 1.0], [0.75, 0.0]], [[0.25, 0.0], [0.0, 0.0]]])
    seen = view(setting(rates, [2, 2]), [0, 0, 0, 1])
    groups = grouped(seen, seen.rate__jg, seen.kind, pairs=True)
    # Masses are 3 and 1 alone, 1.5 within the class, 1 between the two.
    expected = [[3.0, 1.5], [4.0, 1.5], [1.5, 0.75], [1.0, 0.0]]
    assert worth__rg(groups, np.array([1.0, 4.0])).tolist() == expected


def test_a_pair_counts_both_of_its_members() -> None:
    seen = view(setting(oracle([[1.0]], [[[0.7]]]), [1]), [0, 0])
    found = allocated(seen, mode="packed")
    assert rates_under(seen, found) == pytest.approx([0.7, 0.7], rel=1e-6)


def test_what_makes_no_sense_is_one_clear_error() -> None:
    seen = view(setting(oracle([[4.0, 3.0]]), [1, 1]), [0], price__g=[2.0, 0.0])
    with pytest.raises(PolicyError, match=r"per_cost: found price 0\.0 of m1, expected prices above 0"):
        allocated(seen, per_cost=True)
    with pytest.raises(PolicyError, match="one of perf, packed"):
        registry.parse("max_sum_throughput(mode=base)")
    with pytest.raises(PolicyError, match="parameter deadlines: found 'yes', expected True or False"):
        registry.parse("max_sum_throughput(deadlines=yes)")


@settings(max_examples=80)
@given(views(sizes=(1, 2)), st.sampled_from(("perf", "packed")), st.sampled_from(SOLUTIONS), st.booleans())
def test_shares_are_feasible_and_deadlines_kept(seen: RoundView, mode: str, solution: str, per_cost: bool) -> None:
    found = MaxSum(mode, solution, per_cost, deadlines=True).allocate(seen)
    free = MaxSum(mode, solution, per_cost, deadlines=False).allocate(seen)
    assert found is not None and free is not None
    assert max(excess(seen, found), excess(seen, free)) < 1e-6
    by_model = 1 / seen.price__g if per_cost else None
    total, most = (rates_under(seen, it, by_model=by_model).sum() for it in (found, free))
    assert total <= most * (1 + 1e-6)
    # Shares are exact to 1e-6, so a rate is exact to that part of the job's best.
    kept = (rates_under(seen, found) >= needed_rate(seen) - 1e-6 * seen.rate__jg.max(axis=1)).all()
    assert kept or total == pytest.approx(most, rel=1e-6)


@settings(max_examples=80)
@given(views(sizes=(1, 2)), st.sampled_from(("perf", "packed")), st.booleans())
def test_jobs_alike_may_be_one_column(seen: RoundView, mode: str, deadlines: bool) -> None:
    found = MaxSum(mode, "vertex", False, deadlines).allocate(seen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objectives, "alike", lambda *columns: np.arange(len(columns[0])))
        apart = MaxSum(mode, "vertex", False, deadlines).allocate(seen)
    assert found is not None and apart is not None
    # Both are corners of exact programs.
    assert rates_under(seen, found).sum() == pytest.approx(rates_under(seen, apart).sum(), rel=1e-8)


@pytest.mark.parametrize(("text", "said"), [("true", "True"), ("false", "False")])
def test_a_truth_value_in_small_letters_says_how_to_write_it(text: str, said: str) -> None:
    with pytest.raises(PolicyError, match=f"expected True or False; write deadlines={said}"):
        parse(f"max_sum_throughput(deadlines={text})")


def test_truth_in_small_letters_says_what_to_write() -> None:
    with pytest.raises(PolicyError, match="found 'true', expected True or False; write deadlines=True"):
        registry.parse("max_sum_throughput(deadlines=true)")
    with pytest.raises(PolicyError, match="found 'true', expected True or False; write deadlines=True"):
        MaxSumThroughput(deadlines="true")  # type: ignore[arg-type]
