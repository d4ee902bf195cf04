"""The front to HiGHS for programs in whole numbers: columns that count, rows that bound them, the least cost.

HiGHS is imported when the first solver is made, so that naming a policy costs nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fastsim.errors import SolverError
from fastsim.policies.solvers.silent_highs import silent_highs, solve

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]

OPTIONS = {"output_flag": False, "threads": 1, "parallel": "off", "mip_rel_gap": 0.0, "mip_abs_gap": 1e-6}
"""One thread: equal bytes everywhere. No relative gap: the best choice, not one almost as good."""
FIRST_REACH = 0.01
"""How far above the bound the first search looks, where objectives have no step."""
BELOW_STEP = 0.99
"""Part of a step within which two objectives are the same."""
COLUMNWISE, MINIMISE = 1, 1
"""HiGHS's numbers for the matrix's layout and the sense of the objective."""


@dataclass(frozen=True, eq=False)
class WholeProgram:
    """Minimise ``cost @ x`` with ``row_low <= A @ x <= row_high``, x whole and from 0 to ``high``.

    Every ``high`` is also what some row of ones bounds the column to.

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

    First whole numbers are not asked for. Then every unit of a column costs at least its reduced cost more than that
    bound, so a choice within ``reach`` of the bound only takes columns whose reduced cost is below ``reach``, and fills
    rows whose price is above it. The program of these few is solved; if its optimum is not within ``reach``, the reach
    is doubled. That is exact, and most programs end with the first reach.
    """

    def __init__(self) -> None:
        self.spent_s = 0.0
        self._highs = silent_highs(OPTIONS)

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
        every = np.ones(len(program.cost), np.bool_)
        status, bound = self._run(program, every, program.row_low, whole=False)
        dual = self._highs.getSolution()
        extra, price = np.array(dual.col_dual, np.float64), -np.array(dual.row_dual, np.float64)
        counted = _of_units(program) & (program.row_high == np.rint(program.row_high))
        self._highs.setOptionValue("mip_abs_gap", BELOW_STEP * step if step else OPTIONS["mip_abs_gap"])
        reach, last = step or FIRST_REACH, status != "Optimal"
        while not last:
            taken, full = extra <= reach, counted & (price > reach)
            last = bool(taken.all() and not full.any())
            low = np.where(full, program.row_high, program.row_low)
            status, objective = self._run(program, taken, low, whole=True)
            if status == "Optimal" and (last or objective <= bound + reach):
                found = np.zeros(len(every), np.int64)
                if taken.any():
                    found[taken] = np.rint(np.array(self._highs.getSolution().col_value))
                return found
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
