"""Fitness of allocations of a cluster to jobs: mean speedup and utility."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
States = npt.NDArray[np.int8]

def evaluated(
    state__pjn: States,
    base__jn: States,
    speedup__jsk: Floats,
    keeping__j: Floats,
    share__j: Floats,
    node_gpus: int,
    power: float,
    mean__p: Floats,
    utility__p: Floats,
) -> None:
    """Mean speedup and utility of each state; ``share`` is the part of the cluster that one replica takes."""
