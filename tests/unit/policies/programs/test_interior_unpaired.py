"""Newton's equations of a program without pairs: what is solved is what was asked."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.policies.programs.interior_unpaired import UnpairedEquations


@pytest.mark.parametrize(("held", "levelled"), [([0, 1, 2, 3], True), ([1, 3], True), ([1, 3], False), ([], False)])
def test_the_solution_solves(held: list[int], levelled: bool) -> None:
    random = np.random.default_rng(len(held) + levelled)
    rows = np.array(held, np.int64)
    system = UnpairedEquations(
        np.array([1, 3, 2, 5]), np.array([1.0, 2.0, 1.0, 4.0]), np.array([4.0, 7.0, 2.0]), rows,
        random.uniform(0, 2, (len(rows), 3)), random.uniform(0.5, 1, len(rows)) * levelled,
        random.uniform(0, 0.1, len(rows)), random.uniform(0, 1, (4, 3)),
    )  # fmt: skip
    entries = len(system.count)
    weight, damping = 10 ** random.uniform(-4, 4, entries), random.uniform(0, 1e-6, 12)
    rise, fall = random.normal(size=12), random.normal(size=entries)
    rise_level = 0.7 if levelled else 0.0
    x, level, z = system.solver(weight, damping, 1e-6)(rise, rise_level, fall)
    prices, level_price = system.prices(z)
    assert prices + damping * x == pytest.approx(rise, abs=1e-7)
    assert level_price + 1e-6 * level == pytest.approx(rise_level, abs=1e-7)
    assert np.concatenate([-x, system.used(x, level)]) - weight * z == pytest.approx(fall, rel=1e-6, abs=1e-6)


def test_rows_and_multipliers_are_the_two_sides_of_one_matrix() -> None:
    random = np.random.default_rng(1)
    held = np.array([0, 2])
    system = UnpairedEquations(
        np.array([2, 1, 3]), np.array([1.0, 2.0, 1.0]), np.array([4.0, 7.0]), held,
        random.uniform(0, 2, (2, 2)), np.ones(2), np.zeros(2), np.zeros((3, 2)),
    )  # fmt: skip
    x, z = random.normal(size=6), random.normal(size=len(system.count))
    prices, level_price = system.prices(z)
    used = np.concatenate([-x, system.used(x, 0.3)])
    assert (system.count * used) @ z == pytest.approx((system.count[:6] * x) @ prices + 0.3 * level_price)
    # Time of each job, less than nothing of the rates of those held, GPUs of all jobs.
    share = x.reshape(3, 2)
    assert used[6:9] == pytest.approx(share.sum(axis=1))
    assert used[9:11] == pytest.approx(0.3 - (system.rate * share[held]).sum(axis=1))
    assert used[11:] == pytest.approx(np.array([2.0, 2.0, 3.0]) @ share)
