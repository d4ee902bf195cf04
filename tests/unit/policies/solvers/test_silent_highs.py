"""The solver that other modules ask."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest

from fastsim.errors import SolverError
from fastsim.foundation import interrupts
from fastsim.policies.solvers import silent_highs as solver
from fastsim.policies.solvers.silent_highs import silent_highs, solve


def test_the_solver_says_nothing() -> None:
    code = "from fastsim.policies.solvers.silent_highs import silent_highs; silent_highs({'threads': 1}).run()"
    process = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (process.stdout, process.stderr) == (b"", b"")


def test_an_option_that_it_does_not_know_is_refused() -> None:
    with pytest.raises(SolverError, match=r"does not know nonsense=1, expected 1\.12 or newer"):
        silent_highs({"nonsense": 1})


@pytest.mark.parametrize("whole", [True, False])
def test_a_signal_ends_it_between_two_steps(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "LARGE", 1)
    rng, rows, columns = np.random.default_rng(1), 30, 60
    highs, asked = silent_highs({"threads": 1, "presolve": "off"}), 0

    def pressed(event: object) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            signal.raise_signal(signal.SIGINT)

    (highs.cbMipInterrupt if whole else highs.cbSimplexInterrupt).subscribe(pressed)
    highs.passModel(
        columns, rows, rows * columns, 1, -1, 0.0, rng.random(columns), np.zeros(columns), np.ones(columns),
        np.full(rows, -np.inf), np.full(rows, 7.5), np.arange(0, rows * columns + 1, rows, dtype=np.int32),
        np.tile(np.arange(rows, dtype=np.int32), columns), rng.random(rows * columns),
        np.full(columns, int(whole), np.int32),
    )  # fmt: skip
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), interrupts.deferred():
            solve(highs)
    finally:
        signal.signal(signal.SIGINT, before)
    assert asked and str(highs.modelStatusToString(highs.getModelStatus())) == "Interrupted by user"
