"""A training job, and its inputs: training curves, step times by placement, fitted performance.

``TrainingJob`` counts the GPU time it has used. ``LearnedPerformance`` is a tree of measured step times: jobs with the
same history share one node of the tree, and so one fit. Reference: `tests.reference.rounds.adaptive_job`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Measurement = tuple[int, int, int, float, float]

class TrainingJob:
    """A job; times in seconds, GPU seconds, batch sizes in samples. ``speed`` is 1 / the application's slowdown,
    ``undisturbed`` the part of it that other jobs on its nodes leave.
    """

    id: int
    placement: PlacedStepTimes | None
    history__g: Any
    batch: int
    gpus_requested: int
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
    delayed_s: float
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
        """Squared norm and variance of the gradients of its last batch; None before it has trained."""
    def __init__(
        self,
        id: int,
        curve: TrainingCurveTable,
        learned: LearnedPerformance,
        history__g: npt.NDArray[np.int32],
        submit_s: float,
        batch: int,
        gpus_requested: int,
        tuned: bool,
        merged: bool,
        restart_s: float,
        speed: float,
    ) -> None: ...

class _TrainingCurve(Protocol):
    """A training curve, whose ``gradients`` raises the error about a batch size outside of the recorded ones."""

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

class LearnedPerformance:
    """The tree; ``fit`` makes seven parameters from measurements (nodes, replicas, samples, turn and step seconds)."""

    n: int
    def __init__(self, fit: Callable[[list[Measurement]], Sequence[float]]) -> None: ...
    def fitted_once(self, measured: Sequence[Measurement]) -> int:
        """The history of many measurements at once, all of them before any job trained; 0 without any."""

    def fitted_each(self, measured: Sequence[Measurement]) -> int:
        """The history of many measurements, each fitted as if a job had come to it by training; 0 without any."""

    def measurements(self, history: int) -> list[Measurement]:
        """All measurements of a history, the first one first."""
    def parameters(self, history: int) -> tuple[tuple[float, ...], int]:
        """The fitted parameters of a history, and the most replicas in it."""
