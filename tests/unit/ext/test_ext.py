"""CPython's stream of random numbers, compiled."""

from __future__ import annotations

import random

import pytest

from fastsim_ext.random import drawn


@pytest.mark.parametrize("seed", [0, 5, 2**70])
def test_words_are_those_of_random(seed: int) -> None:
    theirs = random.Random(seed)
    expected = [theirs.getrandbits(32) for _ in range(1500)]
    assert drawn(random.Random(seed).getstate()[1], 1500, 0) == expected


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 26, 1000])
def test_numbers_below_a_limit_are_those_of_random(limit: int) -> None:
    theirs = random.Random(3)
    expected = [theirs.randrange(limit) for _ in range(900)]
    assert drawn(random.Random(3).getstate()[1], 900, limit) == expected
