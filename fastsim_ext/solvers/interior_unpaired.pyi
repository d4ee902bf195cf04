"""Programs of shares without shared GPUs: every class by itself, then the GPU models.

The equations of ``fastsim/policies/programs/interior_unpaired.py``, without numpy. Rows: time of every class, rate of
those with a least rate, GPUs of every model.
"""

import numpy as np
import numpy.typing as npt

def space(classes: int, models: int, held: int) -> int:
    """Numbers that ``optimum`` needs to work in."""

def optimum(
    size__c: npt.NDArray[np.float64],
    use__c: npt.NDArray[np.float64],
    held: npt.NDArray[np.int64],
    rate__hg: npt.NDArray[np.float64],
    level_weight__h: npt.NDArray[np.float64],
    gain: float,
    cost: npt.NDArray[np.float64],
    room: npt.NDArray[np.float64],
    count: npt.NDArray[np.float64],
    work: npt.NDArray[np.float64],
    x: npt.NDArray[np.float64],
) -> float | None:
    """The level where the method ends, and in ``x`` the columns; None if it does not get there."""
