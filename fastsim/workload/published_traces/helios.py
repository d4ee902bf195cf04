"""Importer of the Helios traces (SenseTime, 2020): `cluster_log.csv` of one cluster.

Times are local without a zone. A job's GPUs and CPUs are those of all its nodes; memory is not recorded. Jobs that
never started are left out. Built on the documented rows, not tried on the full files.
"""

from __future__ import annotations

import os

from fastsim.foundation.limits.forked_process import whole_process
from fastsim.workload import schema as s
from fastsim.workload.mapped_pods import NODE_PODS, table_of
from fastsim.workload.pod_rows import PodRows

JOBS = {
    s.SUBMIT_S: "submit_time[iso]", s.DURATION_S: "duration", s.NUM_GPU: "gpu_num", s.CPU_MILLI: "1000 * cpu_num",
    s.TENANT: "vc", s.ORIG_START_S: "start_time[iso]", s.ORIG_END_S: "end_time[iso]", s.ORIG_STATUS: "state",
    s.NATIVE_ID: "job_id",
}  # fmt: skip
"""Columns of a job; `user` and `queue` stay as native ones."""
STARTED = "start_time IS NOT NULL"


@whole_process
def import_jobs(
    path: str | os.PathLike[str], *, gangs: bool = False, where: str | None = None, origin: str = "min"
) -> PodRows:
    """The jobs, one row each; ``gangs``: one pod for each node that a job ran on, which start together."""
    columns = JOBS | NODE_PODS if gangs else JOBS
    return table_of(path, columns, "Helios (SenseTime)", where=(STARTED, where), origin=origin, expand=gangs)
