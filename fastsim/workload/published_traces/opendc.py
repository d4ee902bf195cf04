"""Workload traces of OpenDC, version 2, read and written: `tasks.parquet`, and `fragments.parquet` beside it.

Times are documented as milliseconds and memory as KB; a file does not name its units, and one that OpenDC ships
has seconds, so both are options. Tasks run for their `duration`; their load over time, which fragments have, is not
simulated.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fastsim.cluster.table_sources import source_of
from fastsim.errors import InputError
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.parquet import replacing
from fastsim.workload import schema as s
from fastsim.workload.mapped_pods import chosen, table_of
from fastsim.workload.pod_rows import PodRows

TIME_UNITS = ("ms", "s")
MEMORY_UNITS = {"KB": "/ 1024", "MB": "* 1"}
"""Units of `mem_capacity`, and what makes MiB of them."""
CPU_MHZ, GPU_MHZ = 2000.0, 1000.0
"""Speed of a CPU and of a GPU in files that are written, unless it is given."""
TASKS, FRAGMENTS = "tasks.parquet", "fragments.parquet"


@whole_process
def import_jobs(
    path: str | os.PathLike[str], *, time_unit: str = "ms", memory_unit: str = "KB", where: str | None = None,
    origin: str = "min",
) -> PodRows:  # fmt: skip
    """The tasks of a trace, a folder or its `tasks.parquet`; ``time_unit``: ms or s, ``memory_unit``: KB or MB."""
    unit = chosen("time_unit", time_unit, TIME_UNITS)
    factor = MEMORY_UNITS[chosen("memory_unit", memory_unit, tuple(MEMORY_UNITS))]
    folder = Path(path)
    source = source_of(folder / TASKS if folder.is_dir() else folder)
    columns = {
        s.SUBMIT_S: f"submission_time[{unit}]", s.DURATION_S: f"duration[{unit}]", s.CPU_MILLI: "1000 * cpu_count",
        s.MEMORY_MIB: f"mem_capacity {factor}", s.NATIVE_ID: "id",
    }  # fmt: skip
    if "gpu_count" in source.frame.columns:
        columns[s.NUM_GPU] = "COALESCE(gpu_count, 0)"
    if "deadline" in source.frame.columns:
        columns[s.DEADLINE_S] = f"CASE WHEN deadline >= submission_time THEN deadline[{unit}] END"
    return table_of(source, columns, "OpenDC workload trace 2", where=(where,), origin=origin)


def write_trace(
    workload: PodRows, folder: str | os.PathLike[str], *, cpu_mhz: float = CPU_MHZ, gpu_mhz: float = GPU_MHZ
) -> int:
    """Writes tasks and one fragment for each, which keeps its CPUs and GPUs busy; the number of tasks.

    Arrivals and durations are whole milliseconds; CPUs, GPUs and KB are rounded up, so a share of a GPU becomes one.
    """
    table = workload.table()
    if s.DURATION_S not in table.column_names or table[s.DURATION_S].null_count:
        raise InputError(f"{workload.name}: {s.DURATION_S}", "no duration", "a duration for every pod")
    tasks, fragments = _tables(table, cpu_mhz, gpu_mhz)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    for name, one in ((FRAGMENTS, fragments), (TASKS, tasks)):  # tasks last: with them the trace is complete
        with replacing(target / name) as partial:
            pq.write_table(one, partial, compression="zstd")
    return len(tasks)


def _tables(table: pa.Table, cpu_mhz: float, gpu_mhz: float) -> tuple[pa.Table, pa.Table]:
    ids = pa.array(np.arange(len(table)), pa.int32())
    submit, duration = (np.round(1000 * table[name].to_numpy()).astype(np.int64) for name in (s.SUBMIT_S, s.DURATION_S))
    cpus = -(-table[s.CPU_MILLI].to_numpy() // 1000)
    gpus = table[s.NUM_GPU].to_numpy().astype(np.int64)
    tasks = {
        "id": ids, "submission_time": submit, "duration": duration, "cpu_count": pa.array(cpus, pa.int32()),
        "cpu_capacity": cpus * cpu_mhz, "mem_capacity": 1024 * table[s.MEMORY_MIB].to_numpy(),
        "gpu_count": pa.array(gpus, pa.int32()), "gpu_capacity": gpus * gpu_mhz,
    }  # fmt: skip
    fragments = {"id": ids, "duration": duration, "cpu_usage": cpus * cpu_mhz, "gpu_usage": gpus * gpu_mhz}
    return pa.table(tasks), pa.table(fragments)
