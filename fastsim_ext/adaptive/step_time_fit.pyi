"""How far predicted step times are from measured ones, and which way they come closer."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

class Observations:
    """Measured step times of one job on one kind of GPU, seconds: a turn alone, and the step with its update."""

    def __init__(self, nodes: Ints, replicas: Ints, atomic: Ints, turn_s: Floats, step_s: Floats) -> None: ...
    def loss(self, perf: Floats, slope: Floats) -> float:
        """The loss of seven parameters; their slopes go to ``slope``."""

    def fitted(self, low: Floats, high: Floats, flat: float, stop: float, perf: Floats) -> float:
        """The loss where a search from ``perf`` ends, which is there then.

        It ends when the loss falls by less than ``stop`` of it or of 1, or no slope is steeper than ``flat``.
        """
