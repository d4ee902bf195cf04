"""Arrival clocks: exact sums, whole microseconds, shared instants, and hours of the day by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fastsim.errors import ScenarioError
from fastsim.foundation.draws.random_streams import Stream
from fastsim.workload.generators.arrivals_and_durations import (
    MOST_PER_HOUR,
    Mixture,
    PoissonClock,
    SeasonalClock,
    normal_cdf,
    refuse_rate,
)

FLAT: dict[str, Any] = {"hour_factor": [1.0] * 24, "hour_log_sd": 0.0, "hour_correlation": 0.0}
EVER = 1e300


def apart(count: int) -> Any:
    return np.zeros(count, bool)


def test_gaps_are_whole_billionths_of_the_mean_gap() -> None:
    counted = np.cumsum(np.rint(Stream(5, "arrival.gap").exponential(100) * 1e9).astype(np.int64))
    expected = np.rint(counted / 60.0 * (3600 / 1e9) * 1e6) / 1e6
    assert PoissonClock(5, 60.0).times(apart(100)).tolist() == expected.tolist()


def test_an_arrival_together_with_the_last_has_its_time_even_across_pieces() -> None:
    clock = PoissonClock(1, 10.0)
    first = clock.times(np.array([False, True, False]))
    assert 0 < first[0] == first[1] < first[2]
    assert clock.times(np.array([True, False]))[0] == first[2]
    assert PoissonClock(1, 10.0).times(np.array([True]))[0] == 0.0  # nothing came before


def test_a_flag_uses_up_a_gap_so_that_later_gaps_stay_where_they_are() -> None:
    plain, mixed = PoissonClock(2, 10.0), PoissonClock(2, 10.0)
    one, two = plain.times(apart(4)), mixed.times(np.array([False, True, False, False]))
    # Times are rounded to a microsecond, so differences are exact to two halves of one.
    assert np.diff(two)[1:] == pytest.approx(np.diff(one)[1:], abs=1.01e-6)


def test_shared_instants_stretch_the_other_gaps_so_that_the_rate_stays() -> None:
    stretched = np.cumsum(np.rint(Stream(3, "arrival.gap").exponential(50) * 4e9).astype(np.int64))
    expected = np.rint(stretched / 10.0 * (3600 / 1e9) * 1e6) / 1e6
    assert PoissonClock(3, 10.0, same_instant=0.75).times(apart(50)).tolist() == expected.tolist()


@pytest.mark.parametrize("clock", [PoissonClock(4, 100.0), SeasonalClock(4, 100.0, FLAT)])
def test_nothing_asked_nothing_drawn(clock: PoissonClock) -> None:
    assert clock.times(apart(0)).tolist() == []
    fresh = type(clock)(4, 100.0, FLAT) if isinstance(clock, SeasonalClock) else PoissonClock(4, 100.0)
    assert clock.times(apart(3)).tolist() == fresh.times(apart(3)).tolist()


def test_a_flat_day_without_moods_is_a_poisson_process() -> None:
    flat, plain = SeasonalClock(6, 25.0, FLAT), PoissonClock(6, 25.0)
    # Both are rounded to a microsecond; 2,000 arrivals span 80 hours.
    assert flat.times(apart(2000)) == pytest.approx(plain.times(apart(2000)), abs=1.01e-6)


def test_the_factors_of_the_hours_are_relative_to_their_mean() -> None:
    # Half the day three times as busy as the other: 1.5 and 0.5 of the rate.
    day = FLAT | {"hour_factor": [3.0] * 12 + [1.0] * 12}
    times = SeasonalClock(7, 1000.0, day).times(apart(23_000))
    counted = np.cumsum(np.rint(Stream(7, "arrival.gap").exponential(23_000) * 1e9).astype(np.int64)) / 1e9
    # After h hours of the first half 1,500 h mean gaps have passed, then 500 an hour.
    hours = np.where(counted < 18_000, counted / 1500, 12 + (counted - 18_000) / 500)
    assert times == pytest.approx(3600 * hours, abs=1.01e-6)  # a microsecond of rounding
    assert 11.9 * 3600 < times[17_999] < 12.3 * 3600


def test_a_clip_bounds_the_factor_of_every_hour() -> None:
    day = FLAT | {"hour_factor": [3.0] * 12 + [1.0] * 12}
    clipped = SeasonalClock(8, 50.0, day, clip=(1.0, 1.0)).times(apart(500))
    assert clipped == pytest.approx(PoissonClock(8, 50.0).times(apart(500)), abs=1.01e-6)  # a microsecond of rounding


def test_time_never_runs_backwards_over_more_hours_than_one_block() -> None:
    moody = FLAT | {"hour_log_sd": 1.0, "hour_correlation": 0.9}
    whole, pieces = SeasonalClock(9, 1.0, moody), SeasonalClock(9, 1.0, moody)
    times = whole.times(apart(3000))
    assert (np.diff(times) >= 0).all() and times[-1] > 2 * 1024 * 3600
    assert np.concatenate([pieces.times(apart(1000)) for _ in range(3)]).tolist() == times.tolist()


@pytest.mark.parametrize("rate", [1e-320, 0.0, 1e300, math.nan])
def test_a_rate_that_no_clock_can_follow_is_refused(rate: float) -> None:
    with pytest.raises(ScenarioError, match="expected 1e-06 to 4,000,000 arrivals per hour"):
        refuse_rate(rate, 1)


def test_a_rate_within_the_bounds_may_still_take_too_many_hours() -> None:
    refuse_rate(1e-6, 100)
    with pytest.raises(ScenarioError, match="found 1,000,000,000 hours of arrivals"):
        refuse_rate(1e-6, 1000)


def test_the_largest_rate_counts_inside_64_bits() -> None:
    moody = FLAT | {"hour_log_sd": 0.6, "hour_correlation": 0.5}
    times = SeasonalClock(1, MOST_PER_HOUR, moody).times(apart(1000))
    assert (np.diff(times) >= 0).all() and times[0] >= 0 and times[-1] < 10


def test_the_normal_distribution_function_at_known_points() -> None:
    assert normal_cdf(0.0) == 0.5
    assert normal_cdf(1.96) == pytest.approx(0.9750021048517795, rel=1e-14)  # rounding of erfc
    assert 0 < normal_cdf(-30.0) < 1e-190 and normal_cdf(40.0) == 1.0


def test_a_table_becomes_a_mixture() -> None:
    mixture = Mixture.of({"weight": [0.5, 0.5], "mu": [1, 2], "sigma": [3, 4], "more": 0}, 10.0)
    assert mixture == Mixture((0.5, 0.5), (1, 2), (3, 4), 10.0)


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
