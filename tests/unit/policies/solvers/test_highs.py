"""The front to HiGHS: optima by hand, both kinds of solution, what cannot be solved, and equal bytes."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import product

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from fastsim.errors import PolicyError, SolverError
from fastsim.policies.solvers import highs
from fastsim.policies.solvers.highs import Program, Rows, Solver, WholeProgram, WholeSolver

SOLVER = WholeSolver()


def simplex(low: float = -np.inf, high: float = 1.0, cost: tuple[float, float] = (1.0, 1.0)) -> Program:
    """Maximise ``cost @ (x, y)`` with ``low <= x + y <= high`` and x, y of 0 or more."""
    return Program(
        np.array(cost), np.zeros(2), np.full(2, np.inf),
        lambda: Rows(
            np.array([low]), np.array([high]), np.array([0, 1, 2], np.int32), np.zeros(2, np.int32), np.ones(2)
        ),
    )  # fmt: skip


def test_a_vertex_is_a_corner_and_a_centre_is_inside() -> None:
    solver = Solver("vertex")
    corner, inside = solver.maximum(simplex()), solver.maximum(simplex(), "centered")
    assert sorted(corner.x.tolist()) == [0, 1]
    assert inside.x == pytest.approx([0.5, 0.5], abs=1e-6)  # by symmetry
    assert corner.objective == 1 and inside.objective == pytest.approx(1, rel=1e-7)


def test_a_program_may_know_its_own_way_to_the_centre() -> None:
    solver = Solver()
    known = replace(simplex(), centre=lambda: np.array([0.75, 0.25]))
    assert solver.maximum(known).x.tolist() == [0.75, 0.25]
    assert (solver.maximum(known).objective, solver.missed) == (1, 0)
    assert sorted(solver.maximum(known, "vertex").x.tolist()) == [0, 1]
    lost = replace(simplex(), centre=lambda: None)
    assert solver.maximum(lost).x == pytest.approx([0.5, 0.5], abs=1e-6)
    assert solver.missed == 1


@pytest.mark.parametrize("solution", ["centered", "vertex"])
def test_the_dual_of_a_row_is_what_one_more_unit_is_worth(solution: str) -> None:
    found = Solver(solution).maximum(simplex(high=2.0, cost=(3.0, 1.0)))
    assert found.x == pytest.approx([2, 0], abs=1e-6)
    assert found.row_dual == pytest.approx([3], rel=1e-6)


@pytest.mark.parametrize("solution", ["centered", "vertex"])
def test_what_has_no_answer_is_one_clear_error(solution: str) -> None:
    solver = Solver(solution)
    assert solver.attempt(simplex(low=2.0, high=1.0 - 1e-3)) is None
    with pytest.raises(SolverError, match="fair shares: found no feasible point, expected an optimum"):
        solver.maximum(simplex(low=2.0, high=1.0 - 1e-3), what="fair shares")
    with pytest.raises(SolverError, match="found status 'Unbounded'"):
        solver.maximum(simplex(high=np.inf))


def test_an_unknown_kind_of_solution_is_refused() -> None:
    with pytest.raises(PolicyError, match="one of centered, vertex"):
        Solver("middle")


@pytest.mark.parametrize("solution", ["centered", "vertex"])
def test_a_solver_that_has_forgotten_answers_like_a_fresh_one(solution: str) -> None:
    random = np.random.default_rng(1)
    programs = [simplex(high=float(h), cost=(float(a), float(b))) for h, a, b in random.uniform(1, 2, (20, 3))]
    used = Solver(solution)
    for program in programs:
        used.reset()
        assert used.maximum(program).x.tobytes() == Solver(solution).maximum(program).x.tobytes()


def test_an_option_that_highs_does_not_know_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(highs.OPTIONS, "centered", {"solver": "by hand"})
    with pytest.raises(SolverError, match=r"HiGHS 1\..* does not know solver=by hand, expected 1\.12 or newer"):
        Solver()


def test_time_is_counted() -> None:
    solver = Solver()
    assert solver.spent_s == 0
    solver.maximum(simplex())
    once = solver.spent_s
    solver.maximum(simplex())
    assert 0 < once < solver.spent_s


def test_nothing_is_loaded_before_the_first_solver() -> None:
    code = "import sys, fastsim.policies.solvers.highs; assert 'highspy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


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
