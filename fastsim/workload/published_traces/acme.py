"""Importer of the Acme traces (Shanghai AI Lab, 2023): the jobs of Seren or of Kalos.

Times carry their zone. Run times are the end less the start, because the column `duration` counts the wait in Kalos and
not in Seren. Only Kalos records memory, GB of each node's pod. Jobs that run at the end of the recording take the time
up to its last moment and are `censored`; others that never started or never ended are left out. Built on the
documented rows, not tried on the full files.
"""

from __future__ import annotations

import os

from fastsim.cluster.table_sources import source_of
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.workload import schema as s
from fastsim.workload.mapped_pods import LAST, NODE_PODS, table_of, with_last_moment
from fastsim.workload.pod_rows import PodRows

JOBS = {
    s.SUBMIT_S: "submit_time[iso]", s.DURATION_S: f"COALESCE(end_time[iso], {LAST}[iso]) - start_time[iso]",
    s.CENSORED: "end_time IS NULL", s.NUM_GPU: "gpu_num",
    s.CPU_MILLI: "1000 * cpu_num", s.TENANT: "user", s.ORIG_START_S: "start_time[iso]",
    s.ORIG_END_S: "end_time[iso]", s.ORIG_STATUS: "state", s.NATIVE_ID: "job_id",
}  # fmt: skip
"""Columns of a job; its `type`, such as Pretrain, stays as a native one."""
MEMORY = "mem_per_pod_GB"
RAN = "start_time IS NOT NULL AND (end_time IS NOT NULL OR state = 'RUNNING')"


@whole_process
def import_jobs(
    path: str | os.PathLike[str], *, gangs: bool = False, where: str | None = None, origin: str = "min"
) -> PodRows:
    """The jobs, one row each; ``gangs``: one pod for each node that a job ran on, which start together."""
    source = with_last_moment(source_of(path), ("submit_time", "start_time", "end_time"))
    columns = JOBS | NODE_PODS if gangs else JOBS
    if MEMORY in source.frame.columns:
        each = f"1024 * COALESCE({MEMORY}, 0)"
        columns = columns | {s.MEMORY_MIB: each if gangs else f"{each} * node_num"}
    return table_of(source, columns, "Acme (Shanghai AI Lab)", where=(RAN, where), origin=origin, expand=gangs)
