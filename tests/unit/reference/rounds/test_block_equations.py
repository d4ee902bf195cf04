"""Newton's equations by blocks: against the matrix of all rows and columns."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.policies.solvers.interior_point import DAMPING
from tests.reference.rounds.block_equations import BlockEquations, BlockProgram


def program(cones: bool) -> BlockProgram:
    """Three jobs on two models with a row of time each, and one more row of the last job that the level lifts."""
    random = np.random.default_rng(5)
    width = 3 if cones else 2
    row = np.zeros((4, width))
    row[:3, :2], row[3] = 1.0, random.uniform(1, 9, width)
    return BlockProgram(
        np.array([1.0, 2.0, 1.0]), np.array([2.0, 3.0]), np.array([0, 1, 2, 2]), row, np.array([0, 0, 0, -2.0]),
        np.array([1, 1, 1, 5.0]), random.uniform(0, 1, (3, width)), 1.0,
        random.uniform(1, 9, (3, 2)) if cones else np.zeros((0, 2)),
    )  # fmt: skip


def matrix(system: BlockEquations) -> np.ndarray:
    """All rows by columns, and the level."""
    return np.array([system.used(unit) for unit in np.eye(len(system.cost))]).T


@pytest.mark.parametrize("cones", [False, True])
def test_prices_are_what_is_used_transposed(cones: bool) -> None:
    system = BlockEquations(program(cones))
    prices = np.array([system.prices(unit) for unit in np.eye(len(system.room))])
    assert np.allclose(prices, matrix(system), rtol=0, atol=1e-14)


@pytest.mark.parametrize("cones", [False, True])
def test_blocks_solve_the_equations_of_all_rows(cones: bool) -> None:
    system, random = BlockEquations(program(cones)), np.random.default_rng(7)
    weight, value = random.uniform(0.1, 3, system.linear), random.uniform(0.1, 3, (system.cones, 3))
    axes = np.linalg.qr(random.standard_normal((system.cones, 3, 3)))[0]
    system.weigh(weight, axes, value)
    every = np.diag(np.append(weight, np.zeros(3 * system.cones)))
    for cone in range(system.cones):
        at = slice(system.linear + 3 * cone, system.linear + 3 * cone + 3)
        every[at, at] = axes[cone].T @ np.diag(value[cone]) @ axes[cone]
    left, size = matrix(system), len(system.cost)
    whole = np.block([[DAMPING * np.eye(size), left.T], [left, -every - DAMPING * np.eye(len(every))]])
    rise, fall = random.standard_normal(size), random.standard_normal(len(every))
    found = np.concatenate(system.solve(rise, fall))
    assert found == pytest.approx(np.linalg.solve(whole, np.append(rise, fall)), rel=1e-9, abs=1e-9)


def test_balanced_entries_are_near_one() -> None:
    system = BlockEquations(program(True))
    entries = abs(matrix(system))
    assert 0.3 < entries[entries > 0].max() < 2.0
