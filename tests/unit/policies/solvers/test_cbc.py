"""The front to CBC: whole optima, columns that only rows bound, Ctrl-C given back, and who is missing is named."""

from __future__ import annotations

import os
import signal
import sys
import time
from itertools import product

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.errors import FastsimError, SolverError
from fastsim.policies.solvers.cbc import CbcSolver, FreeProgram
from tests.needs import needs

needs_cbc = needs("cylp")


def program(cost: list[float], rows: list[tuple[list[float], float, float]]) -> FreeProgram:
    """A program whose rows are given as coefficients, lower and upper bound."""
    dense = np.array([row for row, _, _ in rows], np.float64)
    row, column = np.nonzero(dense)
    low, high = (np.array([bounds[side] for bounds in rows]) for side in (1, 2))
    return FreeProgram(
        np.array(cost), row.astype(np.int32), column.astype(np.int32), dense[row, column], low, high
    )  # fmt: skip


@needs_cbc
def test_the_best_whole_choice_is_not_the_rounded_fractional_one() -> None:
    bounds = [([float(i == j) for j in range(3)], 0.0, 1.0) for i in range(3)]
    solver = CbcSolver()
    found = solver.minimum(program([-10.0, -7.0, -7.0], [*bounds, ([5.0, 4.0, 4.0], -np.inf, 8.0)]))
    assert found.tolist() == [0, 1, 1] and solver.spent_s > 0


@needs_cbc
def test_columns_are_free_but_for_rows() -> None:
    assert CbcSolver().minimum(program([1.0, -1.0], [([1.0, 0.0], -7.5, np.inf), ([0.0, 1.0], 2.0, 4.0)])).tolist() == [
        -7,
        4,
    ]


@needs_cbc
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 20), st.integers(1, 9)), min_size=1, max_size=6), st.integers(0, 30))
def test_as_good_as_trying_everything(things: list[tuple[int, int]], room: int) -> None:
    worth, weight = [float(-a) for a, _ in things], [float(b) for _, b in things]
    bounds = [([float(i == j) for j in range(len(things))], 0.0, 1.0) for i in range(len(things))]
    found = CbcSolver().minimum(program(worth, [*bounds, (weight, -np.inf, float(room))]))
    every = [np.array(x) for x in product((0, 1), repeat=len(things)) if np.dot(x, weight) <= room]
    assert np.dot(found, weight) <= room and np.dot(found, worth) == min(np.dot(x, worth) for x in every)


@needs_cbc
def test_what_cannot_be_is_an_error() -> None:
    with pytest.raises(SolverError, match="sample: CBC found status"):
        CbcSolver().minimum(program([1.0], [([1.0], 2.0, np.inf), ([1.0], -np.inf, 1.0)]), "sample")


@needs_cbc
def test_interrupts_are_given_back() -> None:
    CbcSolver().minimum(program([-1.0, -1.0], [([1.0, 2.0], 0.0, 3.0), ([1.0, 0.0], 0.0, 1.0), ([0.0, 1.0], 0.0, 1.0)]))
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)


def test_without_the_extra_it_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cylp.cy", None)
    monkeypatch.setitem(sys.modules, "cylp", None)
    with pytest.raises(FastsimError, match=r"needs the cbc extra: pip install .*\[cbc\]"):
        CbcSolver()
