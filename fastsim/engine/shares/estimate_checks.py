"""Checks of what estimates of pair rates return: kinds of new jobs, and rates of jobs that share GPUs."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.errors import PolicyError, kind_of

Floats = npt.NDArray[np.float64]


def checked_kind(answer: Any, kinds: int, where: str) -> int:
    """The kind that a new job is taken for; PolicyError if it is none of so many kinds."""
    if not isinstance(answer, Integral) or isinstance(answer, bool) or not 0 <= int(answer) < kinds:
        raise PolicyError(f"{where}: arrive()", kind_of(answer), f"a kind of setting.oracle.kinds, 0 to {kinds - 1}")
    return int(answer)


def checked_pair_rates(answer: Any, pairs: int, models: int, where: str) -> tuple[Floats, Floats]:
    """Rates of the first and of the second job of so many pairs, on each GPU model; PolicyError for anything else."""
    expected = f"two tables of steps/s, 0 or more, each of {pairs} pairs x {models} GPU models"
    if not isinstance(answer, tuple | list) or len(answer) != 2:
        raise PolicyError(where, kind_of(answer), expected)
    one, two = (_rates(table, (pairs, models), where, expected) for table in answer)
    return one, two


def _rates(table: Any, shape: tuple[int, int], where: str, expected: str) -> Floats:
    try:
        rates = np.asarray(table)
    except Exception:  # an object of the user's may fail in any way
        raise PolicyError(where, kind_of(table), expected) from None
    if not rates.size and not shape[0]:  # no pairs, in a table of any shape
        return np.zeros(shape)
    if rates.shape != shape or rates.dtype.kind not in "iuf" or np.ma.is_masked(table):
        raise PolicyError(where, kind_of(table), expected)
    if rates.size and not (rates.min() >= 0 and rates.max() < np.inf):  # false for NaN
        wrong = rates[~((rates >= 0) & (rates < np.inf))][0]
        raise PolicyError(where, f"a rate of {wrong:g} steps/s", expected)
    return np.asarray(rates, np.float64)
