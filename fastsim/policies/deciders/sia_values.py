"""What each choice is worth to each job of Sia's program, as exact and rounded as in the published one.

    value = min(round((normalised goodput * keeping) ** p, 2), 3000)

Goodput of jobs that adapt is of single precision there, that of jobs of fixed size of double. ``keeping`` is 1 for what
the job has and the part of its life that it did not spend restarting for anything else. With a negative p small values
are good. Rounding makes many large choices equal: ties are common, and wanted here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Worth = npt.NDArray[np.floating[Any]]
"""Of single or double precision."""

LARGEST = 3000.0
"""Values are cut here."""
DECIMALS = 2
"""Values are rounded to so many."""
NONE = -1
"""Position of no choice at all."""


def keeping(age_s: Floats, restarts: Ints, restart_s: Floats, service_s: Floats | None = None) -> Floats:
    """Part of a job's life that another restart leaves to its work; 1 for jobs younger than one restart.

    ``restart_s`` is what the scheduler believes a restart takes; ``service_s`` is what jobs are as young as, if not
    their age.
    """
    young = (age_s if service_s is None else service_s) < restart_s
    kept = np.maximum(age_s - restarts * restart_s, 0.0) / (age_s + restart_s)
    return np.where(young, 1.0, kept)


def values(goodput__jq: npt.ArrayLike, keeping__j: npt.ArrayLike, former__j: Ints, power: float) -> Worth:
    """Worth of each choice, as exact as goodput.

    ``former`` is the position of what the job has, NONE if it has nothing or is new.
    """
    worth: Worth = np.asarray(goodput__jq)
    exact = worth.dtype.type
    had = former__j != NONE
    factor = np.where(had, np.array(keeping__j, exact), exact(1.0))[:, None].repeat(worth.shape[1], axis=1)
    factor[had, former__j[had]] = 1.0
    with np.errstate(divide="ignore"):  # a negative power of no goodput is cut
        raised = (worth * factor) ** exact(power)
    return np.minimum(np.round(raised, DECIMALS), exact(LARGEST))


def only_former(goodput__jq: Worth, former__j: Ints, forced__j: Flags) -> Worth:
    """The same goodput with nothing but what they have for jobs that must keep it."""
    kept = np.zeros_like(goodput__jq)
    rows = np.flatnonzero(forced__j)
    kept[rows, former__j[rows]] = goodput__jq[rows, former__j[rows]]
    return np.where(forced__j[:, None], kept, goodput__jq)
