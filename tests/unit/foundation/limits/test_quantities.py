"""Tests of the largest times, and of lengths of time as texts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fastsim.foundation.limits.quantities import MOST_SECONDS, is_span, is_whole, seconds_of


def test_beyond_the_largest_time_neighbouring_seconds_are_one_number() -> None:
    assert MOST_SECONDS - 1 < MOST_SECONDS == MOST_SECONDS + 1


@pytest.mark.parametrize(("value", "least", "good"), [
    (0, 0.0, True), (0, 1e-3, False), (5.5, 0.0, True), (2**53, 0.0, True), (2**54, 0.0, False), (-1, 0.0, False),
    (math.nan, 0.0, False), (math.inf, 0.0, False), (True, 0.0, False), ("5", 0.0, False),
])  # fmt: skip
def test_lengths_of_time(value: object, least: float, good: bool) -> None:
    assert is_span(value, least) is good


@pytest.mark.parametrize(("value", "good"), [
    (0, True), (-3, True), (2**70, True), (np.int64(3), True), (np.uint8(3), True), (True, False), (np.True_, False),
    (3.0, False), (np.float64(3), False), ("3", False), (None, False),
])  # fmt: skip
def test_whole_numbers(value: object, good: bool) -> None:
    assert is_whole(value) is good


SPANS = {
    "90": 90.0, " 1.5 ": 1.5, "1e3": 1000.0, "90s": 90.0, "250ms": 0.25, "30min": 1800.0, "1.5h": 5400.0,
    "1 d": 86_400.0, "1d12h": 129_600.0, "1h 30min": 5400.0, "2e1 min": 1200.0, "0s": 0.0,
}  # fmt: skip
NO_SPANS = ("", " ", "h", "1m", "1 month", "1hour", "-1h", "1h2", "1h-", "nan", "inf", "1,5h", "1:30", "1hh", "٣h")


def test_lengths_of_time_with_units() -> None:
    assert {text: seconds_of(text) for text in SPANS} == SPANS
    assert [text for text in NO_SPANS if seconds_of(text) is not None] == []
