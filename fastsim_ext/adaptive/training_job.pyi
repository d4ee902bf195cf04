"""One job that trains: where it is, what it knows, what it has used. By hand:
`tests.reference.rounds.adaptive_job`."""

from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim_ext.adaptive.ground_truth import PlacedStepTimes, TrainingCurveTable
from fastsim_ext.adaptive.learned_performance import LearnedPerformance

class TrainingJob:
    """A job; times in seconds, GPU seconds, batch sizes in samples. ``speed`` is 1 / the application's slowdown."""

    id: int
    site: PlacedStepTimes | None
    lesson__g: Any
    batch: int
    gpus_asked: int
    tuned: bool
    merged: bool
    noisy: bool
    submit_s: float
    restart_s: float
    speed: float
    atomic: int
    accum: int
    epoch: int
    restarts: int
    rounds: int
    present: int
    crowd: int
    samples: int
    stays: int
    preemptions: int
    gpu_s: float
    paused_s: float
    left_s: float
    progress: float
    clock_s: float
    first_s: float
    finish_s: float
    restart_left_s: float
    service_s: float
    wasted_s: float
    used_s: float
    held_s: float
    @property
    def gradients(self) -> tuple[float, float] | None:
        """Squared norm and variance of the gradients it saw last; None before it has trained."""
    def __init__(
        self,
        id: int,
        course: TrainingCurveTable,
        lessons: LearnedPerformance,
        lesson__g: npt.NDArray[np.int32],
        submit_s: float,
        batch: int,
        gpus_asked: int,
        tuned: bool,
        merged: bool,
        restart_s: float,
        speed: float,
    ) -> None: ...
