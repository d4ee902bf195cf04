"""Intervals and tests against those of scipy and textbook values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fastsim.errors import ScenarioError
from fastsim.experiments.statistics.intervals import holm, interval, paired

SOME = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30)


@given(SOME, st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_intervals_are_those_of_student(values: list[float], level: float) -> None:
    found = interval(values, level)
    if found.sd > 1e-3:
        low, high = stats.t.interval(level, len(values) - 1, np.mean(values), stats.sem(values))
        # Two ways to the same quantile: what differs is rounding.
        assert [found.low, found.high] == pytest.approx([low, high], rel=1e-9, abs=1e-6)
    assert found.low <= found.mean <= found.high


@given(st.lists(st.tuples(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3)), min_size=3, max_size=20))
def test_p_values_are_those_of_the_paired_test(pairs: list[tuple[float, float]]) -> None:
    ours, theirs = zip(*pairs, strict=True)
    difference = np.subtract(ours, theirs)
    found = paired(ours, theirs)
    if difference.std() > 1e-3:
        assert found.p_value == pytest.approx(float(stats.ttest_rel(ours, theirs).pvalue), rel=1e-6, abs=1e-12)
    assert 0 <= found.p_value <= 1


def test_signs_of_differences() -> None:
    assert paired([1, 2, 3], [0, 0, 0], method="bootstrap").p_value == 2 / 8
    assert paired([1, -1], [0, 0], method="bootstrap").p_value == 1.0
    many = paired(np.arange(1, 21), np.zeros(20), method="bootstrap", seed=3)
    assert many == paired(np.arange(1, 21), np.zeros(20), method="bootstrap", seed=3) and many.p_value < 0.001


def test_bootstrap_is_seeded_and_close() -> None:
    values = np.random.Generator(np.random.PCG64(1)).normal(10, 2, 200)
    one, two = (interval(values, method="bootstrap", seed=seed) for seed in (0, 0))
    assert one == two != interval(values, method="bootstrap", seed=1)
    plain = interval(values)
    # Both estimate the same interval: with 200 values within a twentieth of its width.
    assert [one.low, one.high] == pytest.approx([plain.low, plain.high], abs=0.05)


def test_little_says_little() -> None:
    one = interval([3.0])
    assert one.mean == 3.0 and math.isnan(one.low) and math.isnan(paired([1], [2]).p_value)
    assert paired([1, 1], [1, 1]).p_value == 1.0 and paired([2, 2], [1, 1]).p_value == 0.0
    wrong: Any
    for wrong in ({"level": 1.0}, {"method": "magic"}):
        with pytest.raises(ScenarioError):
            interval([1.0, 2.0], **wrong)
    with pytest.raises(ScenarioError, match="no values"):
        interval([])
    with pytest.raises(ScenarioError, match="pairs"):
        paired([1.0], [1.0, 2.0])


def test_correction_for_many_comparisons() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    corrected = holm([math.nan, 0.5, 0.9])
    assert math.isnan(corrected[0]) and corrected[1:] == [1.0, 1.0]


def test_values_have_to_be_finite() -> None:
    with pytest.raises(ScenarioError, match="interval: found values that are not finite"):
        interval([1.0, math.inf])
