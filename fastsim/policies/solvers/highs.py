"""The interface to HiGHS: optima of linear and integer programs that are given as arrays.

HiGHS is imported when the first solver is made, so that naming a policy costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastsim.errors import PolicyError, SolverError
from fastsim.policies.solvers.silent_highs import silent_highs, solve

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int32]
SOLUTIONS = ("centered", "vertex")
"""Which optimum is taken where there are many: one inside the optimal face, or a corner of it."""
ALWAYS = {"output_flag": False, "threads": 1, "parallel": "off", "presolve": "off"}
"""Options of every solver. One thread: equal bytes everywhere. No presolve: it costs more than it saves here."""
OPTIONS: dict[str, dict[str, Any]] = {
    # Interior point without crossover ends in the relative interior of the optimal face.
    "centered": {"solver": "ipx", "run_crossover": "off"},
    # Levels are built on levels (water filling), so corners are a hundred times more exact than by default.
    "vertex": {"solver": "simplex", "primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
}
WHOLE: dict[str, Any] = {"presolve": "on", "mip_rel_gap": 0.0, "mip_abs_gap": 1e-9}
"""Options of the solver of whole numbers: it ends when nothing better is left, and there presolve pays."""
COLUMNWISE, MINIMISE, MAXIMISE = 1, 1, -1
"""HiGHS's numbers for the matrix's layout and the sense of the objective."""
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
INTEGER_OPTIONS = {"output_flag": False, "threads": 1, "parallel": "off", "mip_rel_gap": 0.0, "mip_abs_gap": 1e-6}
"""One thread: equal bytes everywhere. No relative gap: the best choice, not one almost as good."""
FIRST_REACH = 0.01
"""Distance from the bound that the first search covers, where objectives have no step."""
BELOW_STEP = 0.99
"""Part of a step within which two objectives are the same."""


class Rows(NamedTuple):
    """``low <= A @ x <= high``, where ``A`` stands column after column.

    Column ``c`` has ``value[start[c]:start[c + 1]]`` in the rows ``row`` of the same slice. An infinite bound is no
    bound.
    """

    low: Floats
    high: Floats
    start: Indices
    row: Indices
    value: Floats


@dataclass(frozen=True, eq=False)
class Program:
    """Maximise ``cost @ x`` under ``rows()`` and ``low <= x <= high``.

    ``centre`` is a shorter way to a centred optimum than HiGHS's, if there is one; it returns None where it reaches
    none, and where it reaches one the rows are never written out.
    """

    cost: Floats
    low: Floats
    high: Floats
    rows: Callable[[], Rows]
    centre: Callable[[], Floats | None] | None = None


@dataclass(frozen=True, eq=False)
class Solution:
    """An optimum: the columns, the increase of the objective for one more unit of each row's bound, the objective.

    ``row_dual`` is empty if the program's own way to the centre was taken.
    """

    x: Floats
    row_dual: Floats
    objective: float


class Solver:
    """HiGHS, kept between programs. ``spent_s`` is the CPU time of all solves so far, in seconds.

    ``missed`` is the number of programs whose own way to the centre reached no optimum, so that HiGHS solved them.

    After :meth:`reset` the answers depend on nothing that was solved before. Until then a program of the same shape
    starts from the corner in which the last one ended.
    """

    def __init__(self, solution: str = "centered") -> None:
        if solution not in SOLUTIONS:
            raise PolicyError("solution", repr(solution), f"one of {', '.join(SOLUTIONS)}")
        self.solution = solution
        self.spent_s = 0.0
        self.missed = 0
        self._highs = {name: silent_highs({**ALWAYS, **options}) for name, options in OPTIONS.items()}
        self._basis: tuple[tuple[int, int], Any] | None = None

    def reset(self) -> None:
        """Start the next program from nothing."""
        self._basis = None

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Count the CPU time of a program that is solved elsewhere."""
        start_s = time.thread_time()
        try:
            yield
        finally:
            self.spent_s += time.thread_time() - start_s

    def maximum(self, program: Program, solution: str = "", what: str = "the linear program") -> Solution:
        """An optimum of ``program``, of the solver's own kind or of the kind ``solution``; else a SolverError."""
        optimum = self.attempt(program, solution, what)
        if optimum is None:
            raise SolverError(f"{what}: found no feasible point, expected an optimum")
        return optimum

    def attempt(self, program: Program, solution: str = "", what: str = "the linear program") -> Solution | None:
        """Like :meth:`maximum`, but None if the program has no feasible point."""
        start_s = time.thread_time()
        try:
            centered = (solution or self.solution) == "centered"
            if centered and program.centre is not None:
                centre = program.centre()
                if centre is not None:
                    return Solution(centre, np.zeros(0), float(program.cost @ centre))
                self.missed += 1
            return self._written_out(program, centered, what)
        finally:
            self.spent_s += time.thread_time() - start_s

    def whole(self, program: Program, what: str = "the program") -> Solution:
        """A best point all of whose columns are whole numbers, whatever was solved before; else a SolverError."""
        start_s = time.thread_time()
        try:
            if "whole" not in self._highs:
                self._highs["whole"] = silent_highs({**ALWAYS, **WHOLE})
            highs = self._run("whole", program, program.rows())
            if _status(highs) != "Optimal":
                raise SolverError(f"{what}: HiGHS found status {_status(highs)!r}, expected an optimum")
            x = np.rint(_solution(highs).x)
            return Solution(x, np.zeros(0), float(program.cost @ x))
        finally:
            self.spent_s += time.thread_time() - start_s

    def _written_out(self, program: Program, centered: bool, what: str) -> Solution | None:
        rows = program.rows()
        if centered:
            highs = self._run("centered", program, rows)
            if _status(highs) == "Optimal":
                return _solution(highs)
        # A point inside that was not reached is no answer, and only a corner proves that there is none.
        highs = self._run("vertex", program, rows)
        status = _status(highs)
        if status == "Optimal":
            self._basis = (_shape(program, rows), highs.getBasis())
            return _solution(highs)
        if status == "Infeasible":
            return None
        raise SolverError(f"{what}: HiGHS found status {status!r}, expected an optimum")

    def _run(self, solution: str, program: Program, rows: Rows) -> Any:
        highs, p = self._highs[solution], program
        integrality = np.full(len(p.cost), int(solution == "whole"), np.int32)
        highs.passModel(
            len(p.cost), len(rows.low), len(rows.value), COLUMNWISE, MAXIMISE, 0.0, p.cost, p.low, p.high,
            rows.low, rows.high, rows.start, rows.row, rows.value, integrality,
        )  # fmt: skip
        if solution == "vertex" and self._basis is not None and self._basis[0] == _shape(p, rows):
            highs.setBasis(self._basis[1])
        solve(highs)
        return highs


def _shape(program: Program, rows: Rows) -> tuple[int, int]:
    return len(program.cost), len(rows.low)


def _status(highs: Any) -> str:
    return str(highs.modelStatusToString(highs.getModelStatus()))


def _solution(highs: Any) -> Solution:
    solution = highs.getSolution()
    x, dual = np.array(solution.col_value), np.array(solution.row_dual)
    return Solution(x, dual, float(highs.getInfo().objective_function_value))


@dataclass(frozen=True, eq=False)
class WholeProgram:
    """Minimise ``cost @ x`` with ``row_low <= A @ x <= row_high``, x whole and from 0 to ``high``.

    Some row of ones also bounds each column to its ``high``.

    ``A`` stands column after column: column ``c`` has ``value[start[c]:start[c + 1]]`` in the rows ``index`` of the
    same slice.
    """

    cost: Floats
    high: Floats
    row_low: Floats
    row_high: Floats
    start: Indices
    index: Indices
    value: Floats


class WholeSolver:
    """HiGHS, kept between programs; ``spent_s`` is the CPU time of all solves so far, in seconds.

    The relaxation, solved first, gives a bound. Every unit of a column costs at least its reduced cost more than that
    bound, so a choice within ``reach`` of the bound only takes columns whose reduced cost is below ``reach``, and fills
    rows whose price is above it. The program of these few is solved; if its optimum is not within ``reach``, the reach
    is doubled. That is exact, and most programs end with the first reach.
    """

    def __init__(self) -> None:
        self.spent_s = 0.0
        self._highs = silent_highs(INTEGER_OPTIONS)

    def minimum(self, program: WholeProgram, step: float = 0.0, what: str = "the program in whole numbers") -> Ints:
        """The columns at the least cost; a SolverError if there are none. Objectives are multiples of ``step``, if any.

        The search ends when nothing better by a whole step is possible.
        """
        if not len(program.cost):
            if (program.row_low > 0).any() or (program.row_high < 0).any():
                raise SolverError(f"{what}: found no feasible point, expected an optimum")
            return np.zeros(0, np.int64)
        start_s = time.thread_time()
        try:
            return self._minimum(program, step, what)
        finally:
            self.spent_s += time.thread_time() - start_s

    def _minimum(self, program: WholeProgram, step: float, what: str) -> Ints:
        all_columns = np.ones(len(program.cost), np.bool_)
        status, bound = self._run(program, all_columns, program.row_low, whole=False)
        dual = self._highs.getSolution()
        extra, price = np.array(dual.col_dual, np.float64), -np.array(dual.row_dual, np.float64)
        counted = _of_units(program) & (program.row_high == np.rint(program.row_high))
        self._highs.setOptionValue("mip_abs_gap", BELOW_STEP * step if step else INTEGER_OPTIONS["mip_abs_gap"])
        reach, last = step or FIRST_REACH, status != "Optimal"
        while not last:
            taken, full = extra <= reach, counted & (price > reach)
            last = bool(taken.all() and not full.any())
            low = np.where(full, program.row_high, program.row_low)
            status, objective = self._run(program, taken, low, whole=True)
            if status == "Optimal" and (last or objective <= bound + reach):
                columns = np.zeros(len(all_columns), np.int64)
                if taken.any():
                    columns[taken] = np.rint(np.array(self._highs.getSolution().col_value))
                return columns
            last = last or status not in ("Optimal", "Infeasible")
            reach *= 2
        raise SolverError(f"{what}: HiGHS found status {status!r}, expected an optimum")

    def _run(self, p: WholeProgram, taken: Flags, row_low: Floats, whole: bool) -> tuple[str, float]:
        """Solve for some of the columns: status and objective."""
        count = int(taken.sum())
        if not count:
            return "Infeasible" if (row_low > 0).any() or (p.row_high < 0).any() else "Optimal", 0.0
        sizes = np.diff(p.start)
        entries = np.repeat(taken, sizes)
        start = np.concatenate([[0], np.cumsum(sizes[taken])]).astype(np.int32)
        self._highs.passModel(
            count, len(row_low), int(start[-1]), COLUMNWISE, MINIMISE, 0.0, p.cost[taken], np.zeros(count),
            p.high[taken] if whole else np.full(count, np.inf), row_low, p.row_high, start, p.index[entries],
            p.value[entries], np.full(count, int(whole), np.int32),
        )  # fmt: skip
        solve(self._highs)
        status = str(self._highs.modelStatusToString(self._highs.getModelStatus()))
        return status, float(self._highs.getInfo().objective_function_value)


def _of_units(program: WholeProgram) -> Flags:
    """Rows in which every column counts one for one."""
    units = np.ones(len(program.row_low), np.bool_)
    units[program.index[program.value != 1.0]] = False
    return units
