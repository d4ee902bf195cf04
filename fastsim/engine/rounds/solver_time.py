"""The CPU seconds that policies report for their solvers."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from fastsim.errors import PolicyError, kind_of


def solver_seconds(value: Any, where: str) -> float:
    """The seconds as a float; PolicyError for anything but a finite number of 0 or more."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < math.inf:  # false for NaN
        raise PolicyError(f"{where}: solver_s", kind_of(value), "CPU seconds, a number of 0 or more")
    return float(value)
