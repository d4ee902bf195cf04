"""Job lists of Sia and Pollux: CSV with one job a line.

name, time (arrival, seconds), application, num_replicas (GPUs a user would request), batch_size (samples), and maybe
category: what a scheduler may change of a job, kept as `task_role`.

==========  ==================================================
adaptive    GPUs and batch size (also if there is no category)
scale-gpus  GPUs; the batch size is the user's
rigid       nothing
==========  ==================================================
"""

from __future__ import annotations

import csv
import gzip
import io
import os
from typing import Any

import numpy as np
import pyarrow as pa

from fastsim.errors import InputError
from fastsim.foundation.csv_table import csv_line, read_csv
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.packed_file import file_checksum
from fastsim.foundation.parquet import replacing
from fastsim.workload import schema as s
from fastsim.workload.pod_rows import Held, PodRows

CATEGORIES = ("adaptive", "scale-gpus", "rigid")
"""Degrees of freedom of a scheduler over a job, from most to least."""
COLUMNS = {
    "name": pa.string(),
    "time": pa.float64(),
    "application": pa.string(),
    "num_replicas": pa.int16(),
    "batch_size": pa.int32(),
    "category": pa.string(),
}
"""Columns of the file; only the last one may be absent."""
_NEEDED = tuple(name for name in COLUMNS if name != "category")


@whole_process
def import_jobs(path: str | os.PathLike[str]) -> PodRows:
    """The jobs of one list (plain or .gz) in the order of the file."""
    table = read_csv(path, COLUMNS, _NEEDED)
    _check(path, table)
    times = table["time"].to_numpy()
    columns: dict[str, Any] = {
        s.SUBMIT_S: times,
        s.NUM_GPU: table["num_replicas"],
        s.WORKLOAD: table["application"],
        s.BATCH_SIZE: table["batch_size"],
        s.NATIVE_ID: table["name"],
    }
    if "category" in table.column_names:
        columns[s.TASK_ROLE] = table["category"]
    metadata = {
        "fastsim.source": "Sia job list",
        "fastsim.source_sha256": file_checksum(path),
        "fastsim.converter": "fastsim import sia",
    }
    return job_list(columns, str(path), metadata)


def job_list(columns: dict[str, Any], name: str, metadata: dict[str, str]) -> PodRows:
    """Jobs of whole GPUs, without CPUs and memory; ``columns`` holds everything else."""
    rows = len(columns[s.SUBMIT_S])
    nothing = np.zeros(rows, np.int64)
    columns = {s.POD_ID: np.arange(rows), s.CPU_MILLI: nothing, s.MEMORY_MIB: nothing, **columns}
    columns[s.GPU_MILLI] = np.full(rows, 1000, np.int16)
    schema = s.pod_schema(columns)
    table = pa.table([_array(columns[field.name]).cast(field.type) for field in schema], schema=schema)
    return PodRows(Held(table), table.column_names, name=name, rows=rows, metadata=metadata)


def write_trace(workload: PodRows, path: str | os.PathLike[str]) -> int:
    """Writes the list (gzipped if the name ends in .gz), complete or not at all, and returns the jobs."""
    table = workload.table()
    for name in (s.WORKLOAD, s.BATCH_SIZE):
        if name not in table.column_names or table[name].null_count:
            raise InputError(f"{workload.name}: {name}", "no value", "an application and a batch size for every job")
    roles = table[s.TASK_ROLE].to_pylist() if s.TASK_ROLE in table.column_names else []
    apps = table[s.WORKLOAD].to_pylist()
    named = [None] * len(apps) if s.NATIVE_ID not in table.column_names else table[s.NATIVE_ID].to_pylist()
    names = [name or f"{app}-{row}" for row, (name, app) in enumerate(zip(named, apps, strict=True))]
    rest = [table[name].to_pylist() for name in (s.SUBMIT_S, s.WORKLOAD, s.NUM_GPU, s.BATCH_SIZE)]
    with replacing(path) as partial, open(partial, "wb") as file:
        packed: Any = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if str(path).endswith(".gz") else file
        with io.TextIOWrapper(packed, encoding="utf-8", newline="") as text:
            writer = csv.writer(text, lineterminator="\n")
            writer.writerow(_NEEDED if not roles else COLUMNS)
            writer.writerows(zip(names, *rest, *([roles] if roles else []), strict=True))
    return len(names)


def _array(values: Any) -> pa.ChunkedArray:
    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([pa.array(values)])


def _check(path: str | os.PathLike[str], table: pa.Table) -> None:
    """InputError for the first job that makes no sense."""
    before = -np.inf
    for row, job in enumerate(table.to_pylist()):
        for name in _NEEDED:
            if job[name] is None or (name in ("num_replicas", "batch_size") and job[name] < 1):
                raise InputError(f"{path}:{csv_line(path, row)}: {name}", job[name], "a value, numbers of 1 or more")
        if not before <= job["time"] < np.inf:
            raise InputError(f"{path}:{csv_line(path, row)}: time", job["time"], "seconds, never less than above")
        if job.get("category") not in (None, *CATEGORIES):
            found = repr(job["category"])
            raise InputError(f"{path}:{csv_line(path, row)}: category", found, f"one of {', '.join(CATEGORIES)}")
        before = job["time"]
