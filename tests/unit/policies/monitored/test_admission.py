"""The three stages of admission, one at a time, and numbers that are none."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastsim.errors import PolicyError
from fastsim.policies.monitored.admission import (
    Admission,
    AdmissionOutcome,
    autocorrelation,
    lagged_line,
    quotient,
    relative_deviation,
    total,
)

RULE = Admission()
STEADY = [10_000.0] * 30
READINGS = st.lists(st.integers(0, 32_510).map(float), min_size=21, max_size=60)


def test_what_nobody_declared_is_given_without_asking() -> None:
    assert RULE(7_000, 7_000) == AdmissionOutcome("direct") and RULE(7_000, 7_000)


def test_too_few_readings_say_nothing() -> None:
    answer = RULE(7_000, 6_999, STEADY[:19], STEADY)
    assert answer.outcome == "not_enough_values" and not answer


def test_steady_readings_lend_what_most_of_them_leave_over() -> None:
    used = [20_000.5] * 24 + [25_000.9] * 6  # the percentile is the first of the largest six
    assert RULE(7_510, 0, STEADY, used) == AdmissionOutcome("correlation", 0.0, 24, 25_000.9, 7_510)
    refused = RULE(7_511, 0, STEADY, used)
    assert refused.outcome == "reject" and refused.autocorrelation is not None and math.isnan(refused.autocorrelation)


def test_restless_readings_that_repeat_themselves_are_forecast() -> None:
    free = [20_000.0 * (step % 10 == 0) + 10 * step for step in range(40)]
    answer = RULE(500, 0, free, free)
    assert answer.variation is not None and answer.variation > 0.5 and answer.harvested_mib is None
    assert answer.outcome == "reject" and answer.forecast_mib == 490 and answer.line is not None
    assert answer.line.at(free[-1]) == pytest.approx(490)
    assert RULE(490, 0, free, free).outcome == "peak"


def test_readings_without_a_line_promise_nothing() -> None:
    # The first ten differ from the rest, which are what the line would have to go through.
    free = [0.0] * 11 + [30_000.0] * 10
    answer = Admission(autocorrelation=-1.0)(1, 0, free, free)
    assert (answer.outcome, answer.forecast_mib) == ("reject", None)


def test_the_window_reaches_back_to_the_last_placement() -> None:
    assert RULE.window(100.9, 95) == (80, 100)
    assert RULE.window(100.9, 80) == (80, 100)
    assert RULE.window(300.2, 80) == (80, 300)


def test_divisions_as_hardware_does_them() -> None:
    assert quotient(1, 0) == math.inf and quotient(-1, 0) == -math.inf and math.isnan(quotient(0, 0))
    assert math.isnan(quotient(math.nan, 0)) and quotient(1, 4) == 0.25
    assert math.isnan(relative_deviation([0.0] * 3))


def test_sums_run_from_left_to_right() -> None:
    assert total([1e16, 1.0, 1.0, -1e16]) == 0.0  # a sum that compensates would find 2


@given(READINGS)
def test_the_formulas_are_the_textbook_s(values: list[float]) -> None:
    array = np.array(values)
    if array.mean() > 0:
        # The variance is a difference of two large numbers here, so its root is only good to about 1e-7 of the mean.
        assert relative_deviation(values) == pytest.approx(array.std() / array.mean(), abs=1e-6)
    centred = array - array.mean()
    if array.std() > 1:
        expected = (centred[:-10] * centred[10:]).sum() / (centred**2).sum()
        assert autocorrelation(values, 10) == pytest.approx(expected, abs=1e-9)
    if array[:-10].std() > 1:
        slope, offset = np.polyfit(array[:-10], array[10:], 1)
        line = lagged_line(values, 10)
        # Sums of squares near 1e10 lose that many digits.
        assert (line.slope, line.offset) == pytest.approx((slope, offset), rel=1e-4, abs=1e-1)


@given(READINGS, READINGS, st.integers(0, 40_000), st.integers(-100_000, 32_510))
def test_a_smaller_request_is_never_refused_where_a_larger_one_is_not(
    free: list[float], used: list[float], request_mib: int, available_mib: int
) -> None:
    if RULE(request_mib, available_mib, free, used):
        assert RULE(request_mib // 2, available_mib, free, used)


@pytest.mark.parametrize(
    "options", [{"capacity_mib": 0}, {"percentile": 1.0}, {"lag": 0}, {"samples": 0}, {"window_s": -1}, {"step_s": 0}]
)
def test_bad_constants_are_named(options: dict[str, float]) -> None:
    with pytest.raises(PolicyError, match=f"admission.{next(iter(options))}"):
        Admission(**options)  # type: ignore[arg-type]
