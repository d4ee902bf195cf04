"""The front to HiGHS for programs in whole numbers: columns that count, rows that bound them, the least cost.

HiGHS is imported when the first solver is made, so that naming a policy costs nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.errors import SolverError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]

OPTIONS = {"output_flag": False, "threads": 1, "parallel": "off", "mip_rel_gap": 0.0, "mip_abs_gap": 1e-6}
"""One thread: equal bytes everywhere. No relative gap: the best choice, not one almost as good."""
COLUMNWISE, MINIMISE = 1, 1
"""HiGHS's numbers for the matrix's layout and the sense of the objective."""


@dataclass(frozen=True, eq=False)
class WholeProgram:
    """Minimise ``cost @ x`` with ``row_low <= A @ x <= row_high``, x whole and from 0 to ``high``.

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
    """HiGHS, kept between programs; ``spent_s`` is the CPU time of all solves so far, in seconds."""

    def __init__(self) -> None:
        import highspy

        highspy_class: Any = highspy.Highs
        self.spent_s = 0.0
        self._highs = highspy_class()
        for name, value in OPTIONS.items():
            if self._highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
                found = f"an installation that does not know {name}={value}"
                raise SolverError(f"HiGHS {self._highs.version()}: found {found}, expected 1.12 or newer")

    def minimum(self, program: WholeProgram, what: str = "the program in whole numbers") -> Ints:
        """The columns at the least cost; a SolverError if there are none."""
        p = program
        if not len(p.cost):
            if (p.row_low > 0).any() or (p.row_high < 0).any():
                raise SolverError(f"{what}: found no feasible point, expected an optimum")
            return np.zeros(0, np.int64)
        start_s = time.thread_time()
        self._highs.passModel(
            len(p.cost), len(p.row_low), len(p.value), COLUMNWISE, MINIMISE, 0.0, p.cost, np.zeros(len(p.cost)),
            p.high, p.row_low, p.row_high, p.start, p.index, p.value, np.ones(len(p.cost), np.int32),
        )  # fmt: skip
        self._highs.run()
        self.spent_s += time.thread_time() - start_s
        status = str(self._highs.modelStatusToString(self._highs.getModelStatus()))
        if status != "Optimal":
            raise SolverError(f"{what}: HiGHS found status {status!r}, expected an optimum")
        found: Ints = np.rint(np.array(self._highs.getSolution().col_value, np.float64)).astype(np.int64)
        return found
