"""What training really comes to: recorded epochs, and step times where a job stands."""

import numpy as np
import numpy.typing as npt

from fastsim.performance.applications.step_times import Placement, StepTimes
from fastsim.performance.applications.training_curve import TrainingCurve

Floats = npt.NDArray[np.float64]

class Course:
    """A recorded training curve as tables."""

    curve: TrainingCurve
    epochs: int
    init_batch: float
    max_batch: float
    def __init__(
        self, curve: TrainingCurve, progress__e: Floats, batch__b: Floats, sqr__eb: Floats, var__eb: Floats
    ) -> None: ...

class Site:
    """A placement of one application on one group of nodes; a GPU takes ``low`` to ``high`` samples at once."""

    times: StepTimes
    ring: Placement
    group: int
    nodes: int
    gpus: int
    replicas: int
    stages: int
    low: int
    high: int
    seen: int
    def __init__(
        self, group: int, ring: Placement, times: StepTimes, high: int, seen: int, step_s: Floats, sync_s: Floats
    ) -> None: ...
