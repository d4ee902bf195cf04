"""Completion of matrices that have a small rank."""

from __future__ import annotations

import numpy as np
import pytest

from fastsim.policies.allocators.matrix_completion import completed


def hidden(rank: int) -> tuple[np.ndarray, np.ndarray]:
    """A matrix of that rank, and one without its last row's second half as a mask."""
    random = np.random.default_rng(3)
    full = random.uniform(0.2, 1.0, (12, rank)) @ random.uniform(0.2, 1.0, (rank, 30))
    measured = np.ones_like(full)
    measured[-1, 15:] = 0.0
    return full, measured


@pytest.mark.parametrize("rank", [1, 2])
def test_missing_entries_of_a_simple_matrix_are_found(rank: int) -> None:
    full, measured = hidden(rank)
    found = completed(full * measured, measured, np.random.RandomState(0))
    # It stops while it still gets better, the ridge pulls towards 0, and there are more factors than needed.
    assert np.abs(found - full)[-1, 15:].mean() < 0.2 * full[-1, 15:].mean()
    assert np.corrcoef(found[-1, 15:], full[-1, 15:])[0, 1] > 0.9


def test_what_is_not_measured_does_not_count() -> None:
    full, measured = hidden(2)
    one = completed(full * measured, measured, np.random.RandomState(1))
    two = completed(np.where(measured > 0, full, 1e9), measured, np.random.RandomState(1))
    assert (one == two).all()


def test_the_same_draws_give_the_same_numbers_and_go_on() -> None:
    full, measured = hidden(2)
    draws, again = np.random.RandomState(5), np.random.RandomState(5)
    assert (completed(full, measured, draws) == completed(full, measured, again)).all()
    again.randn((12 + 30) * 0)
    assert draws.randn() == again.randn() == np.random.RandomState(5).randn(10 * (12 + 30) + 1)[-1]
