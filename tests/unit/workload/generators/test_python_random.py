"""CPython's random numbers in arrays: the same numbers, in pieces, after a pause, and refused counts."""

from __future__ import annotations

import random

import numpy as np
import pytest

from fastsim.errors import InputError
from fastsim.workload.generators.python_random import SKIP, Twister, chain, floats_at


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
