"""Shares of values: edges as a reader of the shares expects them, text, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fastsim.errors import ScenarioError
from fastsim.workload.generators.weighted_choice import Mix


def test_edges_are_the_decimal_sums() -> None:
    mix = Mix.of({1: 0.7, 2: 0.1, 4: 0.15, 8: 0.05}, "m")
    assert mix.edges == (0.7, 0.8, 0.95)  # as floats 0.7 + 0.1 is less than 0.8
    assert mix.at(np.array([0.0, 0.69, 0.7, 0.85, 0.95, 0.999])).tolist() == [1, 1, 2, 4, 8, 8]
    assert mix.shares() == {"1": 0.7, "2": 0.8, "4": 0.95, "8": 1.0}


def test_text_says_the_same() -> None:
    assert Mix.of("5:0.2,1:0.8", "m") == Mix.of({5.0: 0.2, 1.0: 0.8}, "m")
    assert Mix.of("3:1", "m").at(np.array([0.0, 0.9])).tolist() == [3, 3]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("1", "m: found '1', expected value:share"),
        ("1:0.5,1:0.5", "every value once"),
        ("1:0.5,2:0.4", "positive shares that add up to 1"),
        ({1: 1.5, 2: -0.5}, "positive shares"),
        ({}, "positive shares"),
        (3, "found 3, expected values and their shares"),
    ],
)
def test_what_is_no_mix_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        Mix.of(given, "m")
