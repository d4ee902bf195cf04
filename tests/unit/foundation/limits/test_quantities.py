"""Tests of the largest times."""

from __future__ import annotations

import math

import pytest

from fastsim.foundation.limits.quantities import MOST_SECONDS, is_span


def test_beyond_the_largest_time_neighbouring_seconds_are_one_number() -> None:
    assert MOST_SECONDS - 1 < MOST_SECONDS == MOST_SECONDS + 1


@pytest.mark.parametrize(("value", "least", "good"), [
    (0, 0.0, True), (0, 1e-3, False), (5.5, 0.0, True), (2**53, 0.0, True), (2**54, 0.0, False), (-1, 0.0, False),
    (math.nan, 0.0, False), (math.inf, 0.0, False), (True, 0.0, False), ("5", 0.0, False),
])  # fmt: skip
def test_lengths_of_time(value: object, least: float, good: bool) -> None:
    assert is_span(value, least) is good
