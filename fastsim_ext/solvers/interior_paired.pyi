"""Programs of shares in which pairs may share GPUs: the equations of ``fastsim/policies/programs/interior_paired.py``.

Rows: time of every class, rate of those with a least rate, GPUs of every model. A column stands for one job
or pair, so two jobs of one class put twice their time into the rows of that class.
"""

import numpy as np
import numpy.typing as npt

def space(groups: int, classes: int, models: int, held: int) -> int:
    """Numbers that ``optimum`` needs to work in."""

def optimum(
    member__mr: npt.NDArray[np.int64],
    hold__mr: npt.NDArray[np.float64],
    rate__mrg: npt.NDArray[np.float64],
    number__r: npt.NDArray[np.float64],
    use__r: npt.NDArray[np.float64],
    place__c: npt.NDArray[np.int64],
    level_weight__h: npt.NDArray[np.float64],
    gain: float,
    cost: npt.NDArray[np.float64],
    room: npt.NDArray[np.float64],
    weigh: npt.NDArray[np.float64],
    lift: npt.NDArray[np.float64],
    count: npt.NDArray[np.float64],
    work: npt.NDArray[np.float64],
    x: npt.NDArray[np.float64],
) -> float | None:
    """The level where the method ends, and in ``x`` the columns; None if it does not get there."""
