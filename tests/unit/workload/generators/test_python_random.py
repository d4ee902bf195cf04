"""CPython's random numbers in arrays: the same numbers, in pieces, after a pause, and refused counts."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from fastsim.errors import InputError, ScenarioError
from fastsim.workload.generators.python_random import SKIP, Mix, Twister, chain, floats_at


@pytest.mark.parametrize("seed", [0, 1, 12345, 2**40 + 7])
def test_floats_are_those_of_random(seed: int) -> None:
    ours, theirs = Twister(seed), random.Random(seed)
    found = np.concatenate([ours.floats(3), ours.floats(0), ours.floats(700)])
    assert found.tolist() == [theirs.random() for _ in range(703)]


@pytest.mark.parametrize("limit", [1, 2, 4, 26, 32, 33, 1000])
def test_choices_are_those_of_random(limit: int) -> None:
    ours, theirs = Twister(7), random.Random(7)
    found = np.concatenate([ours.below(limit, 5), ours.below(limit, 0), ours.below(limit, 900)])
    assert found.tolist() == [theirs.randrange(limit) for _ in range(905)]
    assert ours.floats(1)[0] == theirs.random()


def test_a_look_ahead_takes_nothing() -> None:
    twister = Twister(3)
    seen = twister.ahead(10).copy()
    assert twister.used == 0 and twister.take(4).tolist() == seen[:4].tolist()
    assert twister.used == 4 and twister.ahead(6).tolist() == seen[4:].tolist()


def test_a_stream_goes_on_where_it_was_left() -> None:
    whole = Twister(5)
    whole.take(SKIP + 3)
    again = Twister(5, whole.used)
    assert again.floats(4).tolist() == whole.floats(4).tolist() and again.used == whole.used
    with pytest.raises(InputError, match="found -1"):
        Twister(5, -1)


def test_a_float_takes_this_word_and_the_next() -> None:
    words = Twister(9).ahead(5)
    assert floats_at(words)[2] == Twister(9, 2).floats(1)[0] and len(floats_at(words)) == 4


def test_a_chain_ends_outside() -> None:
    following = np.array([2, 0, 3, 9], np.int64)
    assert chain(following, 2).tolist() == [0, 2]
    assert chain(following, 10).tolist() == [0, 2, 3]
    assert chain(following, 0).tolist() == []


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
