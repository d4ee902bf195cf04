"""Importer of Tiresias's job lists: CSV, `job_id,num_gpu,submit_time,iterations,model_name,duration,interval`."""

from __future__ import annotations

import os

from fastsim.workload import schema as s
from fastsim.workload.published_traces import table_of
from fastsim.workload.workload import Workload

JOBS = {
    s.SUBMIT_S: "submit_time", s.DURATION_S: "duration", s.NUM_GPU: "num_gpu", s.NATIVE_ID: "job_id",
}  # fmt: skip
"""Columns of a job; model, iterations and interval stay as native ones."""


def import_jobs(path: str | os.PathLike[str], *, where: str | None = None, origin: str = "min") -> Workload:
    """The jobs, which run for their recorded time on whole GPUs; CPUs and memory are not recorded."""
    return table_of(path, JOBS, "Tiresias job list", where=(where,), origin=origin)
