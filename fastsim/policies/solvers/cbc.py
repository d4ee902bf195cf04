"""The interface to CBC, for integer programs with many optima, of which recorded runs took the one that CBC finds.

CBC comes with the extra ``cbc`` and is imported when the first solver is made. While it works, some milliseconds at a
time, it handles SIGINT itself and may ignore it.
"""

from __future__ import annotations

import ctypes
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.errors import FastsimError, SolverError

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Indices = npt.NDArray[np.int32]

INFINITE = 1.79769313486e308
"""No bound, as CBC's binding spells it."""
GAP_PERCENT = 0.01
"""Gap to the best bound at which CBC may stop, as in the published simulator of Sia."""


@dataclass(frozen=True, eq=False)
class FreeProgram:
    """Minimise ``cost @ x`` with ``row_low <= A @ x <= row_high``, x whole: bounds of columns are rows, too.

    ``A`` has ``value[e]`` in row ``row[e]`` and column ``column[e]``. The order of rows and columns, and rows that bind
    nothing, belong to the program: they decide which of equal optima is found.
    """

    cost: Floats
    row: Indices
    column: Indices
    value: Floats
    row_low: Floats
    row_high: Floats


class CbcSolver:
    """CBC in one thread; ``spent_s`` is the CPU time of all solves so far, in seconds."""

    def __init__(self) -> None:
        try:
            from cylp.cy import CyClpSimplex, CyCoinPackedMatrix
        except ImportError:
            raise FastsimError('CBC needs the cbc extra: pip install "fastsim-gpu[cbc]"') from None
        self._simplex: Any = CyClpSimplex
        self._matrix: Any = CyCoinPackedMatrix
        self.spent_s = 0.0

    def minimum(self, program: FreeProgram, what: str = "the program in whole numbers") -> Ints:
        """The columns at the least cost; a SolverError if there are none."""
        start_s = time.thread_time()
        try:
            return self._minimum(program, what)
        finally:
            self.spent_s += time.thread_time() - start_s

    def _minimum(self, program: FreeProgram, what: str) -> Ints:
        simplex = self._simplex_of(program)
        model = simplex.getCbcModel()
        model.logLevel, model.numberThreads, model.allowablePercentageGap = 0, 1, GAP_PERCENT
        with _sigint_handler_restored():
            model.solve()
        status = str(model.status)
        if status not in ("solution", "stopped on gap"):
            if status.startswith("stopped on"):  # no other limit is set
                raise KeyboardInterrupt
            raise SolverError(f"{what}: CBC found status {status!r}, expected an optimum")
        columns: Ints = np.rint(model.primalVariableSolution).astype(np.int64)
        return columns

    def _simplex_of(self, p: FreeProgram) -> Any:
        """The program in CBC's form."""
        simplex, free, by_column = self._simplex(), np.full(len(p.cost), INFINITE), True
        low, high = np.maximum(p.row_low, -INFINITE), np.minimum(p.row_high, INFINITE)
        matrix = self._matrix(by_column, p.row, p.column, p.value)
        simplex.loadProblem(matrix, -free, free, p.cost, low, high)
        simplex.copyInIntegerInformation(np.ones(len(p.cost), np.uint8))
        simplex.logLevel = 0
        return simplex


@contextmanager
def _sigint_handler_restored() -> Iterator[None]:
    """Restore the handler of SIGINT, which CBC replaces; Python's own function for that is for its main thread only."""
    handler_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_int)(("PyOS_getsig", ctypes.pythonapi))
    handled_by = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(("PyOS_setsig", ctypes.pythonapi))
    handler = handler_of(signal.SIGINT)
    try:
        yield
    finally:
        handled_by(signal.SIGINT, handler)
