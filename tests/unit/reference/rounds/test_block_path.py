"""The way to an optimum through cones: their arithmetic, and optima that are known."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference.rounds.block_equations import BlockProgram
from tests.reference.rounds.block_path import Cones, optimum

INSIDE = np.array([2.0, 0.5, 3.0, 1.0, -2.0, 4.0, 0.5, 3.0])
"""Two plain entries and two cones."""
OTHER = np.array([1.0, 3.0, 2.0, 0.5, 0.5, 9.0, -4.0, 2.0])


def test_the_scaling_makes_slacks_and_multipliers_one_vector() -> None:
    cones = Cones(2, 2)
    middle = cones.scale(INSIDE, OTHER)
    assert cones.times(middle) == pytest.approx(INSIDE)
    assert cones.times(OTHER) == pytest.approx(middle)
    assert middle @ middle == pytest.approx(INSIDE @ OTHER)


def test_a_quotient_multiplied_is_what_was_divided() -> None:
    cones = Cones(2, 2)
    assert cones.product(INSIDE, cones.quotient(INSIDE, OTHER)) == pytest.approx(OTHER)
    assert cones.product(INSIDE, cones.one) == pytest.approx(INSIDE)


@pytest.mark.parametrize(
    "change", [-OTHER, np.array([0, 0, 0, 1.0, 0, 0, 0, 0]), np.array([-4.0, 0, 0, 0, 0, 0, 0, 0])]
)
def test_a_step_ends_at_the_border(change: np.ndarray) -> None:
    cones = Cones(2, 2)
    end = INSIDE + change / cones.fall(INSIDE, change)
    plain, cone = cones.split(end)
    room = np.append(plain, cone[:, 0] - np.hypot(cone[:, 1], cone[:, 2]))
    assert room.min() == pytest.approx(0.0, abs=1e-12)


def test_nothing_falls_along_the_identity() -> None:
    cones = Cones(2, 2)
    assert cones.fall(INSIDE, cones.one) <= 0


@pytest.mark.parametrize(
    ("values", "lowest"), [([-3.0, 1, 1, 0, 0], 1.0), ([1.0, 1, 1, 3, 0], 1.0), ([1.0, 1, 2, 0, 0], 1.01)]
)
def test_values_are_moved_inside(values: list[float], lowest: float) -> None:
    cones = Cones(2, 1)
    plain, cone = cones.split(cones.inside(np.array(values)))
    assert min(plain.min(), cone[0, 0] - np.hypot(*cone[0, 1:])) == pytest.approx(lowest)


def test_a_linear_program_with_one_optimum() -> None:
    # Two jobs of rates 1 and 3 on one GPU: equal rates at shares of 3/4 and 1/4.
    program = BlockProgram(
        np.ones(2), np.ones(1), np.array([0, 0, 1, 1]), np.array([[1.0], [-1.0], [1.0], [-3.0]]),
        np.array([0.0, 1.0, 0.0, 1.0]), np.array([1.0, 0.0, 1.0, 0.0]), np.zeros((2, 1)), -1.0, np.zeros((0, 1)),
    )  # fmt: skip
    found = optimum(program)
    assert found is not None and found.ravel() == pytest.approx([0.75, 0.25], abs=1e-7)


def test_no_end_is_no_answer() -> None:
    program = BlockProgram(
        np.ones(1), np.array([np.nan]), np.array([0]), np.ones((1, 1)), np.zeros(1), np.ones(1), np.ones((1, 1)), 0.0,
        np.zeros((0, 1)),
    )  # fmt: skip
    assert optimum(program) is None
