"""Programs as they were published: optima of random jobs, found another way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastsim.errors import PolicyError
from fastsim.policies.programs.published_programs import last_rise, least_ratio
from fastsim.policies.shares.finish_time_fairness import FinishTimeFairness
from fastsim.policies.shares.water_filling import WaterFillingFairness
from tests.rounds import excess, rates_under, views

POLICIES = (FinishTimeFairness, WaterFillingFairness)


def test_one_job_takes_its_fastest_model() -> None:
    found = least_ratio(np.array([[1.0, 4.0]]), np.array([2]), np.array([2, 2]), np.array([0.5]), np.array([3.0]))
    assert found is not None and found == pytest.approx(np.array([[0.0, 1.0]]), abs=1e-6)


def test_two_jobs_that_are_alike_have_equal_shares() -> None:
    ones = np.ones(2)
    found = least_ratio(np.ones((2, 1)), np.array([1, 1]), np.array([1]), ones, ones)
    assert found is not None and found.ravel() == pytest.approx([0.5, 0.5], abs=1e-7)


@pytest.mark.parametrize("last", [[True, True], [True, False]])
def test_the_last_rise_keeps_levels(last: list[bool]) -> None:
    # One GPU, two jobs at 1/4: both rise to 1/2, or the first alone to 3/4.
    found = last_rise(np.ones((2, 1)), np.array([1, 1]), np.array([1]), np.full(2, 0.25), np.ones(2), np.array(last))
    expected = [0.5, 0.5] if all(last) else [0.75, 0.25]
    assert found is not None and found.ravel() == pytest.approx(expected, abs=1e-6)


RATE = np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 5.0]])
USE, GPUS = np.array([1, 1, 2]), np.array([2, 2])


def test_cones_end_where_the_published_solver_ends() -> None:
    # GPUs are left over, so many shares are as good; these are ECOS's.
    fair_s = np.array([10.0, 12.0, 24.0])
    found = least_ratio(RATE, USE, GPUS, np.array([1.0, 2.0, 3.0]) / fair_s, np.array([10.0, 20.0, 30.0]) / fair_s)
    ends = np.array([[0.11489098, 0.82284887], [1.0, 0.0], [0.24992987, 0.45788306]])
    assert found is not None and found == pytest.approx(ends, abs=1e-5)


def test_the_last_rise_ends_where_the_published_solver_ends() -> None:
    levels, factor = np.array([0.8, 0.5, 1.0]), np.array([1.0, 2.0, 1.0])
    found = last_rise(RATE, USE, GPUS, levels, factor, np.array([True, True, False]))
    ends = np.array([[0.0, 1.0], [0.59938964, 0.21743414], [0.3832806, 0.23393083]])
    assert found is not None and found == pytest.approx(ends, abs=1e-7)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=25)
@given(data=st.data())
def test_the_optimum_is_the_same(policy: type, data: st.DataObject) -> None:
    seen = data.draw(views(sizes=(1, 2)))
    ours, published = (
        policy(program_compat=compat).begin(seen.setting).allocator.allocate(seen) for compat in (False, True)
    )
    assert excess(seen, published) <= 1e-6
    rates = [rates_under(seen, one) for one in (ours, published)]
    if policy is WaterFillingFairness:  # all rates are determined
        assert rates[0] == pytest.approx(rates[1], rel=1e-5, abs=1e-7)
    else:
        fair: Any = FinishTimeFairness().begin(seen.setting).allocator
        fair_s = seen.steps_left / isolated(seen) + fair._past_s(seen, isolated(seen))
        worst = [((seen.now_s - seen.submit_s + seen.steps_left / rate) / fair_s).max() for rate in rates]
        assert worst[0] == pytest.approx(worst[1], rel=1e-6)


def isolated(seen: object) -> np.ndarray:
    """Rates with an equal part of the cluster."""
    from fastsim.policies.programs.share_program import isolated_rate

    return isolated_rate(seen.rate__jg, seen.num_gpu, seen.setting.gpus__g)  # type: ignore[attr-defined]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("options", [{"mode": "packed"}, {"solution": "vertex"}])
def test_the_published_program_is_of_jobs_alone(policy: type, options: dict[str, str]) -> None:
    with pytest.raises(PolicyError, match="program_compat"):
        policy(program_compat=True, **options)
