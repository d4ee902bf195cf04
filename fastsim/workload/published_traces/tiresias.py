"""Importer of Tiresias's job lists, and of Chronus's, which add deadlines.

The former are CSV with `job_id,num_gpu,submit_time,iterations,model_name,duration,interval`. The latter have `user`,
`best_effort` and `expect_time_list`, too: seconds from arrival to the deadline, several with `-` between where a late
end is worth less, of which the first counts. Jobs of best effort have none. Jobs without GPUs are left out, as there.
"""

from __future__ import annotations

import os

import polars as pl

from fastsim.cluster.table_sources import source_of
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.workload import schema as s
from fastsim.workload.mapped_pods import table_of
from fastsim.workload.pod_rows import PodRows

JOBS = {
    s.SUBMIT_S: "submit_time", s.DURATION_S: "duration", s.NUM_GPU: "num_gpu", s.NATIVE_ID: "job_id",
}  # fmt: skip
"""Columns of a job; model, iterations and interval stay as native ones."""
EXPECTED = "expect_time_list"
DEADLINES = {s.DEADLINE_S: f"CASE WHEN best_effort = 0 THEN submit_time + {EXPECTED} END", s.TENANT: "user"}
"""Further columns of Chronus's jobs."""


@whole_process
def import_jobs(path: str | os.PathLike[str], *, where: str | None = None, origin: str = "min") -> PodRows:
    """The jobs, which run for their recorded time on whole GPUs; CPUs and memory are not recorded."""
    source = source_of(path)
    if EXPECTED not in source.frame.columns:
        return table_of(source, JOBS, "Tiresias job list", where=(where,), origin=origin)
    first = pl.col(EXPECTED).cast(pl.String).str.replace(r"-.*$", "")
    source = source._replace(frame=source.frame.with_columns(first))
    return table_of(source, JOBS | DEADLINES, "Chronus job list", where=("num_gpu > 0", where), origin=origin)
