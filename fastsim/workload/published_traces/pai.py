"""Importer of Alibaba's PAI trace (cluster-trace-gpu-v2020): its task table, or the jobs of its simulator.

The tables have no header. A task is `inst_num` equal instances, a gang; it arrives when its job did, if the job table
stands beside it, and otherwise when it started. Percent become parts: `plan_gpu` 50 is half a GPU, `plan_cpu` 600 six
cores; more than one GPU is rounded up to whole ones. Tasks that run at the end of the recording take the time up to its
last moment and are `censored`; others without a start or an end are left out. The GPU model is the one that was
assigned, not requested, so it stays as a native column unless ``models`` asks for it. The importer of tasks was written
from the documented rows and not tried on the full tables, that of machines was.
"""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from fastsim.cluster.published_nodes import headed_by
from fastsim.cluster.table_sources import Source, source_of
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.workload import schema as s
from fastsim.workload.mapped_pods import LAST, table_of, with_last_moment
from fastsim.workload.pod_rows import PodRows

TASK_HEADER = (
    "job_name", "task_name", "inst_num", "status", "start_time", "end_time", "plan_cpu", "plan_mem", "plan_gpu",
    "gpu_type",
)  # fmt: skip
JOB_HEADER = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
TASKS = {
    s.SUBMIT_S: "submit", s.DURATION_S: f"COALESCE(end_time, {LAST}) - start_time", s.CENSORED: "end_time IS NULL",
    s.CPU_MILLI: "10 * COALESCE(plan_cpu, 0)",
    s.MEMORY_MIB: "1024 * COALESCE(plan_mem, 0)", s.ORIG_START_S: "start_time", s.ORIG_END_S: "end_time",
    s.NUM_GPU: "CASE WHEN COALESCE(plan_gpu, 0) < 100 THEN COALESCE(plan_gpu, 0) / 100 ELSE CEIL(plan_gpu / 100) END",
    s.JOB_ID: "gang", s.GANG_SIZE: "inst_num", s.TASK_ROLE: "task_name", s.ORIG_STATUS: "status",
    s.NATIVE_ID: "job_name",
}  # fmt: skip
"""Columns of a task."""
RAN = "start_time IS NOT NULL AND (end_time IS NOT NULL OR status = 'Running') AND inst_num >= 1"
SIMULATOR_JOBS = {
    s.SUBMIT_S: "submit_time", s.DURATION_S: "duration", s.CPU_MILLI: "1000 * num_cpu",
    s.NUM_GPU: "CASE WHEN num_gpu < 1 THEN num_gpu ELSE CEIL(num_gpu) END", s.JOB_ID: "job_id",
    s.GANG_SIZE: "num_inst", s.TENANT: "user", s.NATIVE_ID: "job_id",
}  # fmt: skip
"""Columns of the simulator's jobs; its estimates of durations stay as native ones, except that by `group`."""
MODELS = "CASE WHEN {gpus} > 0 THEN gpu_type END"
"""The assigned GPU model of rows with GPUs."""
ESTIMATES = {s.GROUP: "group", s.EST_DURATION_S: "group_dur"}


@whole_process
def import_jobs(
    path: str | os.PathLike[str], *, models: bool = False, where: str | None = None, origin: str = "min"
) -> PodRows:
    """The instances of a task table, or of the jobs that the trace's simulator reads, whose file has a header.

    ``models``: they run on the GPU model that they were assigned.
    """
    if headed_by(path, "job_id"):
        source = source_of(path)
        known = {name: text for name, text in ESTIMATES.items() if text in source.frame.columns}
        known |= {s.GPU_MODELS: MODELS.format(gpus="num_gpu")} if models else {}
        return table_of(
            source, SIMULATOR_JOBS | known, "PAI simulator jobs", where=(where,), origin=origin, expand=True
        )
    source = _with_arrivals(source_of(path, header=None if headed_by(path, "job_name") else TASK_HEADER), Path(path))
    title = "PAI (Alibaba cluster-trace-gpu-v2020)"
    columns = TASKS | {s.GPU_MODELS: MODELS.format(gpus="plan_gpu")} if models else TASKS
    return table_of(source, columns, title, where=(RAN, where), origin=origin, expand=True)


def _with_arrivals(source: Source, path: Path) -> Source:
    """The tasks with the start of their jobs as `submit`, and a number for each gang."""
    tasks, jobs = source.frame.with_row_index("gang"), path.with_name(path.name.replace("task_table", "job_table"))
    if jobs != path and jobs.is_file() and "job_name" in tasks.columns:
        started = source_of(jobs, header=None if headed_by(jobs, "job_name") else JOB_HEADER).frame
        started = started.select("job_name", submit="start_time").unique("job_name", keep="first")
        tasks = tasks.join(started, on="job_name", how="left", maintain_order="left")
        tasks = tasks.with_columns(pl.coalesce("submit", "start_time"))
    elif "start_time" in tasks.columns:
        tasks = tasks.with_columns(submit="start_time")
    return with_last_moment(source._replace(frame=tasks), ("start_time", "end_time"))
