"""The compiled fitness is that of the formulas."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim_ext.adaptive.fitness import evaluated
from tests.reference.rounds import genetic_operators as by_hand


@given(st.integers(1, 20), st.integers(1, 8), st.sampled_from([-1.0, 0.0, 0.5, 1.0]), st.integers(0, 2**32 - 1))
@settings(max_examples=100)
def test_fitness(jobs: int, nodes: int, power: float, seed: int) -> None:
    random = np.random.RandomState(seed)
    states = random.randint(0, 5, (4, jobs, nodes)).astype(np.int8)
    states[0] = 0
    base = states[1].copy()
    speedup = random.random_sample((jobs, 2, 4 * nodes + 1))
    speedup[:, :, 0] = 0
    inputs = (speedup, random.random_sample(jobs), np.full(jobs, 1 / (4 * nodes)), 4, power)
    mean, utility = np.empty(4), np.empty(4)
    evaluated(states, base, *inputs, mean, utility)
    expected = [by_hand.fitness(state, base, *inputs) for state in states]
    assert list(zip(mean.tolist(), utility.tolist(), strict=True)) == expected
    assert utility[0] == 0


def test_no_states_are_no_work() -> None:
    nothing = np.zeros((0, 1, 1), np.int8)
    evaluated(nothing, np.zeros((1, 1), np.int8), np.zeros((1, 2, 2)), np.ones(1), np.ones(1), 4, 1.0,
              np.empty(0), np.empty(0))  # fmt: skip


@pytest.mark.parametrize("jobs", [7, 8, 127, 128, 129, 136, 255, 256, 257, 264, 300])
def test_long_sums_run_as_numpys_do(jobs: int) -> None:
    state, base = np.ones((1, jobs, 1), np.int8), np.zeros((jobs, 1), np.int8)
    for seed in range(8):
        speedup = np.random.RandomState(seed).random_sample((jobs, 2, 2))
        inputs = (speedup, np.ones(jobs), np.ones(jobs), 1, -1.0)
        mean, utility = np.empty(1), np.empty(1)
        evaluated(state, base, *inputs, mean, utility)
        assert (mean[0], utility[0]) == by_hand.fitness(state[0], base, *inputs)
