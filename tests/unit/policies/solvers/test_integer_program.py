"""Programs in whole numbers."""

from __future__ import annotations

from itertools import product

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.errors import SolverError
from fastsim.policies.solvers.integer_program import WholeProgram, WholeSolver

SOLVER = WholeSolver()


def knapsack(cost: list[float], weight: list[float], room: float, least: float = 0.0) -> WholeProgram:
    """Things of a weight, each at most once."""
    columns = len(cost)
    starts = np.arange(0, 2 * columns + 1, 2, dtype=np.int32)
    index = np.array([row for column in range(columns) for row in (0, column + 1)], np.int32)
    value = np.array([entry for each in weight for entry in (each, 1.0)])
    low, high = np.zeros(columns + 1), np.ones(columns + 1)
    low[0], high[0] = least, room
    return WholeProgram(np.array(cost), np.ones(columns), low, high, starts, index, value)


def test_the_best_whole_choice_is_not_the_rounded_fractional_one() -> None:
    solver = WholeSolver()
    assert solver.minimum(knapsack([-5.0, -4.0, -3.0], [4.0, 3.0, 2.0], 5.0)).tolist() == [0, 1, 1]
    assert solver.minimum(knapsack([1.0, 1.0], [1.0, 1.0], 5.0)).tolist() == [0, 0]
    assert solver.spent_s > 0


@given(st.lists(st.tuples(st.integers(-30, 5), st.integers(1, 9)), min_size=1, max_size=9), st.integers(0, 20))
@settings(max_examples=60)
def test_as_good_as_trying_everything(things: list[tuple[int, int]], room: int) -> None:
    cost, weight = [c / 10 for c, _ in things], [float(w) for _, w in things]
    subsets = list(product((0, 1), repeat=len(things)))
    best = min(np.dot(cost, x) for x in subsets if np.dot(weight, x) <= room)
    for step in (0.1, 0.0):
        found = SOLVER.minimum(knapsack(cost, weight, float(room)), step)
        assert np.dot(weight, found) <= room
        assert np.dot(cost, found) == pytest.approx(best, abs=1e-6)


def test_no_columns_are_no_work() -> None:
    assert WholeSolver().minimum(knapsack([], [], 5.0)).tolist() == []


@pytest.mark.parametrize("program", [knapsack([1.0], [1.0], 9.0, 2.0), knapsack([], [], 9.0, 2.0)])
def test_what_cannot_be_is_an_error(program: WholeProgram) -> None:
    with pytest.raises(SolverError, match=r"sample: .*expected an optimum"):
        WholeSolver().minimum(program, what="sample")
