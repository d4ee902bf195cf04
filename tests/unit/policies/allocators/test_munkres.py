"""Munkres' method: a smallest sum as SciPy finds it, and its own choice among equals."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from fastsim.policies.allocators.allox_queues import MatchedPlaces
from fastsim.policies.allocators.munkres import munkres_matching
from tests.views import setting, shares, view


@pytest.mark.parametrize("seed", range(60))
def test_the_sum_is_the_smallest(seed: int) -> None:
    draw = np.random.default_rng(seed)
    shape = draw.integers(1, 8, 2)
    cost = draw.integers(0, 9, shape) if seed % 2 else draw.random(shape)
    rows, columns = munkres_matching(cost.astype(float))
    assert len(set(columns.tolist())) == len(rows) == min(shape) and (np.diff(rows) > 0).all()
    assert cost[rows, columns].sum() == pytest.approx(cost[linear_sum_assignment(cost)].sum())


@pytest.mark.parametrize(
    ("cost", "columns"),
    [
        ([[1, 1, 1], [1, 1, 1], [1, 1, 1]], [0, 1, 2]),  # the first zero of each row that is left
        ([[1, 1, 2], [1, 3, 3]], [1, 0]),  # a star gives way to the one that has no other place
        ([[2, 1, 1], [1, 2, 1], [1, 1, 3]], [1, 2, 0]),  # the first two in order, the third pushes both on
    ],
)
def test_ties_by_hand(cost: list[list[float]], columns: list[int]) -> None:
    found = munkres_matching(np.array(cost, float))
    assert found[1].tolist() == columns


@pytest.mark.parametrize(("munkres", "started"), [(False, {1, 2}), (True, {0, 1})])
def test_ties_decide_who_starts(munkres: bool, started: set[int]) -> None:
    # Two GPUs, three jobs: the shortest runs before one of the others, before which one makes no difference to the sum.
    seen = view(setting([2], [[1]]), [0, 0, 0], steps=[20, 10, 30])
    assert set(shares(MatchedPlaces(1.0, True, munkres).allocate(seen))) == started
