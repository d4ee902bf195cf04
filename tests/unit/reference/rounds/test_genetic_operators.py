"""The formulas of Pollux's search, on states one can see through."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference.rounds import genetic_operators as by_hand

NOTHING = np.zeros((1, 2, 3), np.int8)


def stream(seed: int = 1) -> np.random.RandomState:
    """A seeded stream."""
    return np.random.RandomState(seed)


def test_rows_above_the_cut_change_sides() -> None:
    first, second = np.full((50, 4, 2), 1, np.int8), np.full((50, 4, 2), 2, np.int8)
    one, other = by_hand.crossed(stream(), first, second)
    assert (one + other == 3).all()
    cuts = (one == 2).all(axis=2).sum(axis=1)
    assert set(cuts) == {0, 1, 2, 3}
    assert all((row[:cut] == 2).all() and (row[cut:] == 1).all() for row, cut in zip(one, cuts, strict=True))


def test_only_free_gpus_are_given_away() -> None:
    full = np.array([[[4, 0], [0, 0]]] * 200, np.int8)
    found = by_hand.mutated(stream(), full, full[0], 4)
    grown = found[:, 1, 0][found[:, 0, 0] == 4]
    assert (grown == 0).all() and found[:, :, 1].any()


def test_repaired_states_are_possible() -> None:
    wild = stream().randint(0, 5, (50, 4, 6)).astype(np.int8)
    most, least = np.array([1, 4, 8, 24], np.int32), np.array([0, 0, 2, 0], np.int32)
    found = by_hand.repaired(stream(), wild, most, least, 4)
    assert (found >= 0).all() and (found <= wild).all()
    assert (found.sum(axis=1) <= 4).all() and (found.sum(axis=2) <= most).all()
    assert ((found.sum(axis=2) == 0) | (found.sum(axis=2) >= least)).all()
    spread = (found > 0) & ((found > 0).sum(axis=2, keepdims=True) > 1)
    assert (spread.sum(axis=1) <= 1).all()


def test_fitness_of_two_jobs() -> None:
    state, base = np.array([[2, 0], [0, 1]], np.int8), np.array([[2, 0], [0, 0]], np.int8)
    speedup = np.array([[[0, 1, 1.5]] * 2, [[0, 1, 1.5]] * 2])
    inputs = (speedup, np.array([0.5, 0.5]), np.full(2, 0.25), 2)
    mean, utility = by_hand.fitness(state, base, *inputs, 1.0)
    assert mean == pytest.approx((0.75 + 0.25) / 2 + 0.001)
    assert utility == 2.5 / 4
    assert by_hand.fitness(state, base, *inputs, 0.0)[0] == pytest.approx(np.sqrt(0.75 * 0.25))
    mean, utility = by_hand.fitness(base * 0, base, *inputs, 1.0)
    assert mean == pytest.approx(0.001)
    assert utility == 0.0
