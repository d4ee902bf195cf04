"""What a run in rounds leaves behind, before it becomes tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastsim.engine.rounds.options import RoundOptions, Setting
from fastsim_ext.rounds.cluster_metrics import ClusterMetrics

if TYPE_CHECKING:
    import polars as pl


@dataclass
class RoundOutcome:
    """A run that has finished: records of jobs (``GANG``) by id and of tasks (``MOMENT``), and the loop's figures.

    ``held`` lists the GPUs of tasks that did not have them in the round before, ``rows`` the timeline (``ROW``);
    ``gauge`` is what measured it, if anything did.
    """

    setting: Setting
    options: RoundOptions
    jobs: npt.NDArray[Any]
    tasks: npt.NDArray[Any]
    held: npt.NDArray[np.int32]
    rows: npt.NDArray[Any]
    rounds: int
    calls: int
    makespan_s: float
    max_active: int
    job_rounds: int
    extensions: int
    opportunities: int
    busy_s: npt.NDArray[np.float64]
    """By GPU, seconds at work."""
    gpus__g: tuple[int, ...]
    solver_s: float = 0.0
    gauge: ClusterMetrics | None = None
    spoilt_gpu_s: float | None = None
    """GPU seconds that restarts took; None of a run without rounds."""
    even: ClassVar[bool] = False
    """Whether every round takes as long as the options say."""

    def timeline_columns(self) -> Mapping[str, pl.Series]:
        """Columns that the timeline of this kind of rounds has beside those of all."""
        return {}

    def kind_figures(self) -> Mapping[str, Any]:
        """Columns that the summary of this kind of rounds has beside those of all."""
        return {}

    @property
    def began_s(self) -> float:
        """When the first job came; the end if none did."""
        return float(self.jobs["submit_s"].min()) if len(self.jobs) else self.makespan_s

    @property
    def priced(self) -> bool:
        """Whether GPUs cost anything."""
        return self.options.prices is not None

    @property
    def span_s(self) -> float:
        """Seconds from the first arrival to the end."""
        return self.makespan_s - self.began_s
