"""Missing entries of a matrix, guessed from the others by factorising it.

This is probabilistic matrix factorisation (Mnih and Salakhutdinov, NIPS 2007), fitted by alternating least squares.
"""

from __future__ import annotations

import numpy as np

from fastsim.engine.shares.plan import Floats

RANK = 10
RIDGE = 1e-2
MOST_ROUNDS = 100
SETTLED = 1e-3
"""Norm of the change of a round, divided by the number of entries, below which no further round is made."""


def completed(known: Floats, measured: Floats, draws: np.random.RandomState) -> Floats:
    """A product of two matrices of rank 10 that is near ``known`` where ``measured`` is 1; elsewhere nothing counts.

    Both start as standard normal numbers of ``draws``; each is fitted in turn to the other with a ridge of 0.01.
    """
    rows, columns = known.shape
    row_factor: Floats = draws.randn(rows, RANK)
    column_factor: Floats = draws.randn(columns, RANK)
    before: Floats = row_factor @ column_factor.T
    for _ in range(MOST_ROUNDS):
        row_factor = _fitted(column_factor, known, measured)
        column_factor = _fitted(row_factor, known.T, measured.T)
        after: Floats = row_factor @ column_factor.T
        if np.linalg.norm(after - before) / rows / columns < SETTLED:
            break
        before = after
    return after


def _fitted(factor: Floats, known: Floats, measured: Floats) -> Floats:
    """For each row of ``known`` the weights of ``factor`` that come nearest to its measured entries."""
    squares = (factor[:, :, None] * factor[:, None, :]).reshape(len(factor), -1)
    normal = (measured @ squares).reshape(-1, RANK, RANK) + RIDGE * np.eye(RANK)
    weights = np.linalg.solve(normal, ((measured * known) @ factor)[:, :, None])
    return np.asarray(weights[:, :, 0], np.float64)
