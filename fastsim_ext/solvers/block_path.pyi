"""The published solver's way to the optimum of a program of blocks: where it ends inside the face of all optima.

The steps are those of ``tests/reference/rounds/block_path.py``, without numpy; that module explains the numbers.
"""

import numpy as np
import numpy.typing as npt

def optimum(
    use__j: npt.NDArray[np.float64],
    gpus__g: npt.NDArray[np.float64],
    job__r: npt.NDArray[np.int64],
    row__rv: npt.NDArray[np.float64],
    lift__r: npt.NDArray[np.float64],
    room__r: npt.NDArray[np.float64],
    cost__jv: npt.NDArray[np.float64],
    price: float,
    rate__jg: npt.NDArray[np.float64],
    found__jv: npt.NDArray[np.float64],
) -> bool:
    """Whether the method ends, and if so in ``found__jv`` the columns of each job where it does.

    ``job__r`` ascends; ``rate__jg`` has no rows without cones.
    """
