"""Truncated mixtures of lognormals at points where they can be worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fastsim.workload.generators.durations import Mixture, normal_cdf

EVER = 1e300


def test_the_normal_distribution_function_at_known_points() -> None:
    assert normal_cdf(0.0) == 0.5
    assert normal_cdf(1.96) == pytest.approx(0.9750021048517795, rel=1e-14)  # rounding of erfc
    assert 0 < normal_cdf(-30.0) < 1e-190 and normal_cdf(40.0) == 1.0


def test_a_table_becomes_a_mixture() -> None:
    made = Mixture.of({"weight": [0.5, 0.5], "mu": [1, 2], "sigma": [3, 4], "more": 0}, 10.0)
    assert made == Mixture((0.5, 0.5), (1, 2), (3, 4), 10.0)


def test_without_a_limit_the_mean_is_the_lognormals() -> None:
    one = Mixture((1.0,), (2.0,), (0.5,), EVER)
    assert one.mean() == pytest.approx(math.exp(2.125), rel=1e-12)  # rounding
    two = Mixture((0.25, 0.75), (0.0, 2.0), (1.0, 0.5), EVER)
    assert two.mean() == pytest.approx(0.25 * math.exp(0.5) + 0.75 * math.exp(2.125), rel=1e-12)  # rounding


def test_truncation_at_the_median_halves_a_component_and_shifts_the_mix() -> None:
    # ln limit = mu of the first component: half of it is cut off, of the second (10 sd below) nothing.
    mixture = Mixture((0.5, 0.5), (10.0, 0.0), (1.0, 1.0), math.exp(10.0))
    low = np.nextafter(1 / 3, 0)
    drawn = mixture.at(np.array([low - 1e-9, low + 1e-9]), np.array([0.5, 0.5]))
    # The shares are 1/3 and 2/3; the middle of half a lognormal is its lower quartile, z = -0.6745.
    assert drawn == pytest.approx([math.exp(10.0 - 0.6744897501960817), 1.0], rel=1e-8)  # the quantile's own 1.2e-9


def test_draws_rise_with_the_place_and_end_at_the_limit() -> None:
    mixture = Mixture((1.0,), (3.0,), (2.0,), 50.0)
    drawn = mixture.at(np.full(5, 0.5), np.array([1e-12, 0.25, 0.5, 0.75, 1 - 1e-16]))
    assert (np.diff(drawn) > 0).all() and drawn[0] > 0
    assert drawn[-1] == pytest.approx(50.0, rel=1e-8) and drawn[-1] <= 50.0  # the quantile's own 1.2e-9, times 2


def test_the_pick_goes_by_shares_and_its_edge_belongs_to_the_next() -> None:
    mixture = Mixture((0.25, 0.75), (0.0, 5.0), (1e-9, 1e-9), EVER)
    which = np.array([0.0, 0.24, 0.25, 0.99])
    assert np.rint(np.log(mixture.at(which, np.full(4, 0.5)))).tolist() == [0.0, 0.0, 5.0, 5.0]


def test_running_pods_are_met_in_proportion_to_their_length() -> None:
    biased = Mixture((0.5, 0.5), (0.0, math.log(3.0)), (0.0, 0.0), EVER).length_biased()
    assert biased.weight == pytest.approx((0.25, 0.75), rel=1e-15)  # rounding
    moved = Mixture((1.0,), (1.0,), (0.5,), 7.0).length_biased()
    assert (moved.weight, moved.mu, moved.sigma, moved.limit_s) == ((1.0,), (1.25,), (0.5,), 7.0)
