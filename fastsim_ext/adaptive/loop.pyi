"""The loop of adaptive jobs: training, arrivals, and the GPUs of each job."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim_ext.adaptive.training_job import PlacedStepTimes, TrainingJob
from fastsim_ext.rounds.cluster_metrics import ClusterMetrics

class AdaptiveLoop:
    """A run in rounds of ``round_s`` seconds; ``base__n`` is the first GPU of each node, and the number of all.

    ``interference`` is the part of its speed that a job on several nodes loses while another such job shares one.
    """

    active: list[TrainingJob]
    ended_jobs: list[TrainingJob]
    metrics: ClusterMetrics | None
    busy_s: Any
    now_s: float
    rounds: int
    max_active: int
    job_rounds: int
    quiet: int
    tasks: list[list[Any]]
    gpus: list[int]
    @property
    def expected(self) -> int:
        """Jobs that have not arrived yet."""
    def __init__(
        self,
        jobs: Sequence[TrainingJob],
        round_s: float,
        base__n: npt.NDArray[np.int32],
        recorded: bool,
        metrics: ClusterMetrics | None,
        interference: float = 0.0,
    ) -> None: ...
    def work(self) -> None:
        """Advance by one round: jobs train, those that are done leave, others arrive."""
    def settle(self, placements: Sequence[PlacedStepTimes | None], nodes: Sequence[tuple[int, ...]]) -> None:
        """Give each active job its placement (None: no GPUs) and its nodes, by GPU; ValueError if GPUs are missing."""
    def verify(self) -> None:
        """Check that every GPU in use is held by one job."""
