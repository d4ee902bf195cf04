"""The interior-point method: optima by hand, where it ends among many, programs written out, and what has no end."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.engine.shares.plan import Floats
from fastsim.policies.programs.interior_unpaired import UnpairedEquations
from fastsim.policies.solvers.interior_point import LONGEST, System, balance, inside, optimum

NOBODY, NOTHING = np.zeros(0, np.int64), np.zeros(0)


def sums(worth: list[list[float]], gpus: list[float], size: list[int] | None = None) -> UnpairedEquations:
    """Maximise the worth of the shares; all jobs ask for one GPU."""
    cost = np.array(worth)
    count = len(cost)
    sizes = np.array(size or [1] * count)
    return UnpairedEquations(sizes, np.ones(count), np.array(gpus), NOBODY, cost[:0], NOTHING, NOTHING, cost)


def level(rate: list[list[float]], gpus: list[float], size: list[int] | None = None) -> UnpairedEquations:
    """Maximise the smallest rate."""
    rates = np.array(rate)
    count = len(rates)
    sizes = np.array(size or [1] * count)
    return UnpairedEquations(
        sizes, np.ones(count), np.array(gpus), np.arange(count), rates, np.ones(count), np.zeros(count), 0 * rates
    )


def shares(system: UnpairedEquations) -> Floats:
    found = optimum(system)
    assert found is not None
    return found[0].reshape(system.classes, system.models)


def test_the_only_optimum() -> None:
    # One GPU of each model: each job runs where it gains most over the other.
    assert shares(sums([[3.0, 1.0], [2.0, 1.5]], [1, 1])) == pytest.approx(np.eye(2), abs=1e-7)
    found = optimum(level([[1.0], [2.0]], [1]))
    assert found is not None
    assert found[0] == pytest.approx([2 / 3, 1 / 3], abs=1e-7)
    assert found[1] == pytest.approx(2 / 3, rel=1e-7)


def test_equals_get_equal_shares_where_any_split_is_as_good() -> None:
    assert shares(sums([[1.0, 1.0]] * 3, [1, 1])) == pytest.approx(np.full((3, 2), 1 / 3), abs=1e-7)
    assert shares(level([[1.0, 1.0, 1.0]] * 2, [2, 1, 1])).sum(axis=1) == pytest.approx([1, 1], abs=1e-7)


@pytest.mark.parametrize("build", [sums, level])
def test_alike_classes_end_where_the_program_written_out_ends(build: object) -> None:
    random = np.random.default_rng(4)
    for _ in range(20):
        rate, size = random.uniform(0.2, 3, (4, 3)), random.integers(1, 5, 4)
        gpus = random.integers(1, 6, 3).astype(float).tolist()
        rows = np.repeat(np.arange(4), size)
        together = shares(build(rate.tolist(), gpus, size.tolist()))  # type: ignore[operator]
        apart = shares(build(rate[rows].tolist(), gpus))  # type: ignore[operator]
        # The same steps, summed in another order; along a face of many optima that grows to 1e-5.
        assert together[rows] == pytest.approx(apart, abs=1e-5)


def test_a_feasible_point_without_an_objective_is_inside() -> None:
    system = UnpairedEquations(
        np.array([1, 1]), np.ones(2), np.array([1.0, 1.0]), np.arange(2), np.array([[2.0, 1.0], [1.0, 1.0]]),
        np.zeros(2), np.array([1.0, 0.5]), np.zeros((2, 2)),
    )  # fmt: skip
    found = shares(system)
    assert (found > 1e-3).all()
    assert (found.sum(axis=1) < 1 - 1e-3).all() and (found.sum(axis=0) < 1 - 1e-3).all()
    assert (system.rate * found).sum(axis=1) == pytest.approx(np.maximum((system.rate * found).sum(axis=1), [1, 0.5]))


def test_what_cannot_be_met_has_no_end() -> None:
    out_of_reach = UnpairedEquations(
        np.array([1]), np.ones(1), np.array([1.0]), np.arange(1), np.array([[1.0]]),
        np.zeros(1), np.array([2.0]), np.zeros((1, 1)),
    )  # fmt: skip
    assert optimum(out_of_reach) is None


def test_a_program_may_be_stated_in_any_units() -> None:
    # The start differs, the optimum does not.
    found = [optimum(level([[unit * 1.0], [unit * 2.0]], [1])) for unit in (1e-4, 1.0, 1e4)]
    for one in found:
        assert one is not None and one[0] == pytest.approx([2 / 3, 1 / 3], abs=1e-6)


def test_balanced_entries_are_near_one() -> None:
    system: System = level([[1e-3, 1.0], [5.0, 2e3]], [40, 7])
    by_column, by_level, by_row = system.largest(*balance(system))
    largest = np.concatenate([by_column, by_row, [by_level]])
    assert largest.max() < 2 and largest.min() > 0.3
    before = np.concatenate([*system.largest(np.ones(4), 1.0, np.ones(10))[::2]])
    assert before.max() == 2e3


def test_values_are_moved_inside() -> None:
    assert inside(np.array([-2.0, 1.0])).tolist() == [1, 4]
    assert inside(np.array([0.5, 1.0])) == pytest.approx([0.51, 1.01])
    assert 0.99 < LONGEST < 1
