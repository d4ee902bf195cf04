"""What a column saves, from the frequency and the cost of requests."""

from __future__ import annotations

import pytest

from fastsim_ext.select.class_frequency import FrequencyTable


def test_a_column_saves_the_cost_of_steady_requests() -> None:
    frequency = FrequencyTable()
    for change in range(0, 100_000, 50):  # every 50 changes, at 1,000 ns: 20 ns a change
        frequency.charge(change, 4096, 1000)
    assert frequency.rate(100_000, 4096) == pytest.approx(20, rel=0.02)


def test_the_first_requests_are_not_taken_for_rare() -> None:
    frequency = FrequencyTable()
    for change in (100, 200, 300):  # the window is far from full, yet the rate is one request in 100 changes
        frequency.charge(change, 32768, 1000)
    assert frequency.rate(300, 32768) == pytest.approx(10, rel=0.1)


def test_requests_with_a_column_count_at_the_known_cost() -> None:
    frequency = FrequencyTable()
    frequency.charge(10, 4096, 800)
    before = frequency.rate(10, 4096)
    frequency.charge(10, 4096, 0)
    assert frequency.rate(10, 4096) == pytest.approx(2 * before)


def test_the_rate_halves_in_a_window_without_requests() -> None:
    frequency = FrequencyTable()
    frequency.charge(10**6, 4096, 1000)
    assert frequency.rate(10**6 + 4096, 4096) == pytest.approx(frequency.rate(10**6, 4096) / 2)


def test_three_requests_give_a_reliable_rate() -> None:
    frequency, seen = FrequencyTable(), []
    for _ in range(4):
        frequency.charge(1, 4096, 1000)
        seen.append(frequency.reliable)
    assert seen == [False, False, True, True]
