"""Programs in whole numbers."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.errors import SolverError
from fastsim.policies.adaptive.whole import WholeProgram, WholeSolver


def knapsack(cost: list[float], weight: list[float], room: float, least: float = 0.0) -> WholeProgram:
    """Things of a weight, each at most once."""
    columns = len(cost)
    starts, zeros = np.arange(columns + 1, dtype=np.int32), np.zeros(columns, np.int32)
    return WholeProgram(
        np.array(cost), np.ones(columns), np.array([least]), np.array([room]), starts, zeros, np.array(weight)
    )


def test_the_best_whole_choice_is_not_the_rounded_fractional_one() -> None:
    solver = WholeSolver()
    assert solver.minimum(knapsack([-5.0, -4.0, -3.0], [4.0, 3.0, 2.0], 5.0)).tolist() == [0, 1, 1]
    assert solver.minimum(knapsack([1.0, 1.0], [1.0, 1.0], 5.0)).tolist() == [0, 0]
    assert solver.spent_s > 0


def test_no_columns_are_no_work() -> None:
    assert WholeSolver().minimum(knapsack([], [], 5.0)).tolist() == []


@pytest.mark.parametrize("program", [knapsack([1.0], [1.0], 9.0, 2.0), knapsack([], [], 9.0, 2.0)])
def test_what_cannot_be_is_an_error(program: WholeProgram) -> None:
    with pytest.raises(SolverError, match=r"sample: .*expected an optimum"):
        WholeSolver().minimum(program, "sample")
