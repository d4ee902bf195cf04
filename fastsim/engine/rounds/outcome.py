"""The outcome of a run in rounds before it becomes tables: types of records, and the figures of the loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastsim.engine.rounds.options import RoundOptions, Setting
from fastsim_ext.rounds.cluster_metrics import ClusterMetrics
from fastsim_ext.rounds.snapshot import record_types

if TYPE_CHECKING:
    import polars as pl


RECORDS = record_types()
GANG = RECORDS["Job"]
"""A job's record in the compiled tables."""
MOMENT = RECORDS["TaskRecord"]
"""One candidate in one round."""
ROUND = RECORDS["RoundRecord"]
"""One round: active and running jobs, GPUs held; milli-CPU and MiB held, of use, and needed by running jobs."""


@dataclass
class RoundOutcome:
    """A run that has finished: records of jobs (``GANG``) by id and of tasks (``MOMENT``), and the loop's figures.

    ``held`` lists the GPUs of tasks that did not have them in the round before, ``rows`` the timeline (``ROW``);
    ``metrics`` are those of the cluster, None in a run without a timeline.
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
    """Busy seconds of each GPU."""
    gpus__g: tuple[int, ...]
    solver_s: float = 0.0
    metrics: ClusterMetrics | None = None
    wasted_gpu_s: float | None = None
    """GPU seconds that restarts took; None of a run without rounds."""
    even: ClassVar[bool] = False
    """Whether every round lasts ``round_s``."""

    def timeline_columns(self) -> Mapping[str, pl.Series]:
        """Further columns of the timeline, by name; none for rounds of shares."""
        return {}

    def kind_figures(self) -> Mapping[str, Any]:
        """Further columns of the summary, by name; none for rounds of shares."""
        return {}

    def figures(self) -> dict[str, Any]:
        """Figures of the run itself beside its times: seconds in solvers, and how many rounds it had."""
        return {"solver_s": self.solver_s, "rounds": self.rounds}

    @property
    def began_s(self) -> float:
        """Arrival of the first job, seconds; the end of the run without jobs."""
        return float(self.jobs["submit_s"].min()) if len(self.jobs) else self.makespan_s

    @property
    def priced(self) -> bool:
        """Whether GPUs cost anything."""
        return self.options.prices is not None

    @property
    def span_s(self) -> float:
        """Seconds from the first arrival to the end."""
        return self.makespan_s - self.began_s
