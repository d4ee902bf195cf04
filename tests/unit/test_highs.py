"""The solver that other modules ask."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fastsim.errors import SolverError
from fastsim.policies.highs import silent_highs


def test_the_solver_says_nothing() -> None:
    code = "from fastsim.policies.highs import silent_highs; silent_highs({'threads': 1}).run()"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert (told.stdout, told.stderr) == (b"", b"")


def test_an_option_that_it_does_not_know_is_refused() -> None:
    with pytest.raises(SolverError, match=r"does not know nonsense=1, expected 1\.12 or newer"):
        silent_highs({"nonsense": 1})
