"""What training really comes to: recorded epochs, and step times where a job stands."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

class _TrainingCurve(Protocol):
    """Says what is wrong with a batch size outside of the recorded ones."""

    def gradients(self, batch: float, epoch: int, /) -> object: ...

class _StepTimes(Protocol):
    """Seconds of a step and of its network, where a search or a triangulation finds them."""

    low: int
    stages: int
    def seconds(self, placement: tuple[int, ...], atomic: int, /) -> tuple[float, float]: ...

class TrainingCurveTable:
    """A recorded training curve as tables."""

    curve: _TrainingCurve
    epochs: int
    init_batch: float
    max_batch: float
    def __init__(
        self, curve: _TrainingCurve, progress__e: Floats, batch__b: Floats, sqr__eb: Floats, var__eb: Floats
    ) -> None: ...

class PlacedStepTimes:
    """A placement of one application on one group of nodes; a GPU takes ``low`` to ``high`` samples at once."""

    times: _StepTimes
    ring: tuple[int, ...]
    group: int
    nodes: int
    gpus: int
    replicas: int
    stages: int
    low: int
    high: int
    seen: int
    def __init__(
        self, group: int, ring: tuple[int, ...], times: _StepTimes, high: int, seen: int, step_s: Floats, sync_s: Floats
    ) -> None: ...
