"""Records of adaptive jobs beyond those that every run in rounds has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastsim.engine.rounds.records import GANG
from fastsim_ext.adaptive.training_job import TrainingJob

TRAINED = np.dtype(
    [("id", "i8"), ("restarts", "i8"), ("gpu_s", "f8"), ("wasted_gpu_s", "f8"), ("contention", "f8"),
     ("batch_mean", "f8"), ("epochs", "i8")], align=True,
)  # fmt: skip
"""Restarts after the first start, GPU seconds held and lost to restarts, active jobs on average, samples, epochs."""


def trained_records(jobs: Sequence[TrainingJob]) -> npt.NDArray[Any]:
    """One record (``TRAINED``) a job."""
    rows = [
        (
            job.id,
            max(job.restarts, 0),
            job.held_s,
            job.wasted_s,
            job.crowd / job.present if job.present else np.nan,
            job.samples / job.rounds if job.rounds else np.nan,
            job.epoch,
        )
        for job in jobs
    ]
    return np.array(rows, TRAINED)


def gang_records(jobs: Sequence[TrainingJob], kind: Sequence[int], total: Sequence[float]) -> npt.NDArray[Any]:
    """One record (``GANG``) a job; ``kind`` and ``total`` are the application and its progress at the end."""
    found = np.zeros(len(jobs), GANG)
    found["id"] = [job.id for job in jobs]
    found["submit_s"] = [job.submit_s for job in jobs]
    found["first_s"] = [job.first_s for job in jobs]
    found["finish_s"] = [job.finish_s for job in jobs]
    found["ended"] = ~np.isnan(found["finish_s"])
    found["gpu_s"] = [job.gpu_s for job in jobs]
    found["paused_s"] = [job.paused_s for job in jobs]
    found["left_s"] = np.nan_to_num([job.left_s for job in jobs])  # 0 of one that has GPUs
    found["restarts"] = [max(job.stays - 1, 0) for job in jobs]
    found["preemptions"] = [job.preemptions for job in jobs]
    found["holds"] = [job.site is not None and math.isnan(job.finish_s) for job in jobs]
    found["run"] = [job.progress for job in jobs]
    found["rounds"] = [job.rounds for job in jobs]
    found["num_gpu"] = [job.gpus_asked for job in jobs]
    found["kind"], found["total"] = kind, total
    found["deadline_s"], found["weight"] = np.inf, 1.0
    for name in ("tenant", "guise", "place", "task"):
        found[name] = -1
    return found
