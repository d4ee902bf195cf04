"""Traces of Synergy: text without a header, one job a line, `job_id,model,arrival_s,total_iterations,gpus`."""

from __future__ import annotations

import csv
import gzip
import io
import math
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fastsim.errors import InputError
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.packed_file import file_checksum, opened_text
from fastsim.foundation.parquet import one_line, replacing
from fastsim.workload import schema as s
from fastsim.workload.pod_rows import Held, PodRows


class _Field(NamedTuple):
    name: str
    kind: Callable[[str], Any]
    low: float
    high: float
    expected: str


_FIELDS = (
    _Field("job_id", int, 0, 2**53, "a whole number, 0 or more"),
    _Field("model", str, 0, 0, "a name"),
    _Field("arrival_s", float, -1.7e308, 1.7e308, "seconds"),
    _Field("total_iterations", int, 0, 2**53, "a whole number, 0 or more"),
    _Field("gpus", int, 1, 32_767, "a whole number of GPUs, 1 or more"),
)


@whole_process
def import_jobs(path: str | os.PathLike[str]) -> PodRows:
    """The jobs of one trace (plain or .gz) by arrival; `total_work` counts iterations, `native_id` is the job's id.

    Models are not looked up: a run refuses those that its sensitivity does not have.
    """
    rows = sorted(_rows(path), key=lambda row: (row[2], row[0]))
    if not rows:
        raise InputError(str(path), "no jobs", "one job a line")
    ids, models, arrival_s, iterations, gpus = (list(column) for column in zip(*rows, strict=True))
    count = len(rows)
    columns: dict[str, Any] = {
        s.POD_ID: np.arange(count), s.SUBMIT_S: np.array(arrival_s, np.float64), s.CPU_MILLI: np.zeros(count, np.int64),
        s.MEMORY_MIB: np.zeros(count, np.int64), s.NUM_GPU: np.array(gpus, np.int16),
        s.GPU_MILLI: np.full(count, 1000, np.int16), s.WORKLOAD: models,
        s.TOTAL_WORK: np.array(iterations, np.float64), s.NATIVE_ID: [str(number) for number in ids],
    }  # fmt: skip
    schema = s.pod_schema(columns)
    table = pa.table([pa.array(columns[field.name]).cast(field.type) for field in schema], schema=schema)
    metadata = {
        "fastsim.source": "Synergy trace",
        "fastsim.source_sha256": file_checksum(path),
        "fastsim.converter": "fastsim import synergy",
        "fastsim.work_unit": "iterations",
        "fastsim.rates": "synergy",
    }
    return PodRows(Held(table), table.column_names, name=str(path), rows=count, metadata=metadata)


def write_trace(workload: PodRows, path: str | os.PathLike[str]) -> int:
    """Writes the five fields (gzipped if the name ends in .gz), complete or not at all, and returns the jobs.

    The format cuts: iterations lose what stands after the decimal point. Requests other than GPUs are not part of it.
    """
    rows = 0
    with replacing(path) as partial, open(partial, "wb") as file:
        packed: Any = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if str(path).endswith(".gz") else file
        with io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text:
            for batch in workload.batches():
                lines = [_line(workload.name, rows + i, job) for i, job in enumerate(_jobs(workload.name, batch))]
                text.writelines(lines)
                rows += len(lines)
    return rows


def _rows(path: str | os.PathLike[str]) -> Iterator[tuple[Any, ...]]:
    ids: set[int] = set()
    try:
        with opened_text(path, newline="") as text:
            reader = csv.reader(text)
            for fields in filter(None, reader):
                row = _row(f"{path}:{reader.line_num}", fields)
                if row[0] in ids:
                    raise InputError(f"{path}:{reader.line_num}: job_id", row[0], "every id once")
                ids.add(row[0])
                yield row
    except FileNotFoundError as error:
        raise InputError(str(path), "no such file", "a trace") from error
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(str(path), one_line(error), "a trace, plain or gzipped") from error


def _row(where: str, fields: list[str]) -> tuple[Any, ...]:
    if len(fields) != len(_FIELDS):
        names = ",".join(field.name for field in _FIELDS)
        raise InputError(where, f"{len(fields)} fields", f"{len(_FIELDS)} fields: {names}")
    values = []
    for text, field in zip(map(str.strip, fields), _FIELDS, strict=True):
        try:
            value = field.kind(text)
        except ValueError:
            value = None
        good = bool(value) if field.kind is str else value is not None and field.low <= value <= field.high
        if not good:
            raise InputError(f"{where}: {field.name}", repr(text), field.expected)
        values.append(value)
    return tuple(values)


def _jobs(name: str, batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    """(workload, arrival, iterations, GPUs) of each job."""
    for column in (s.WORKLOAD, s.TOTAL_WORK):
        if column not in batch.schema.names:
            raise InputError(f"{name}: {column}", "no such column", "jobs with a workload and total_work")
    columns = (s.WORKLOAD, s.SUBMIT_S, s.TOTAL_WORK, s.NUM_GPU)
    yield from zip(*(batch.column(column).to_pylist() for column in columns), strict=True)


def _line(name: str, job_id: int, job: tuple[Any, ...]) -> str:
    workload, submit_s, iterations, num_gpu = job
    if workload is None or iterations is None or any(mark in workload for mark in ',"\n\r'):
        found = f"workload {workload!r}, total_work {iterations}"
        raise InputError(f"{name}:{job_id + 1}", found, "both, and neither a comma nor a quote")
    arrival = str(int(submit_s)) if math.floor(submit_s) == submit_s else repr(submit_s)
    return f"{job_id},{workload},{arrival},{int(iterations)},{num_gpu}\n"
