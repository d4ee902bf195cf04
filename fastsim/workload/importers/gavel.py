"""Traces of Gavel and its relatives: text with one job a line, fields separated by tabs, no header.

=======  =====================================================================================================
7 fields   type, command, steps option, needs data, steps, arrival, GPUs (the published Philly-like traces)
10 fields  type, command, folder, steps option, needs data, steps, GPUs, weight, SLO, arrival
12 fields  the first seven of those, then mode, weight, SLO, duration, arrival (Shockwave)
=======  =====================================================================================================

Command, folder, steps option and needs data serve only to start the job on a real cluster; they are left out.
"""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from fastsim.errors import InputError
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.packed_file import file_checksum, opened_text
from fastsim.foundation.parquet import one_line, replacing
from fastsim.performance.gavel_rates import JOB_TYPES, JobType
from fastsim.workload import schema as s
from fastsim.workload.pod_rows import Held, PodRows

_LEFT_OUT = "-"
_LAYOUTS: dict[int, tuple[str, ...]] = {
    7: (s.WORKLOAD, _LEFT_OUT, _LEFT_OUT, _LEFT_OUT, s.TOTAL_WORK, s.SUBMIT_S, s.NUM_GPU),
    10: (s.WORKLOAD, *4 * (_LEFT_OUT,), s.TOTAL_WORK, s.NUM_GPU, s.WEIGHT, s.SLO, s.SUBMIT_S),
    12: (
        s.WORKLOAD, *4 * (_LEFT_OUT,), s.TOTAL_WORK, s.NUM_GPU, s.TASK_ROLE, s.WEIGHT, s.SLO, s.DURATION_S, s.SUBMIT_S,
    ),
}  # fmt: skip
"""Column of each field, by number of fields; a mode is kept as `task_role`."""
_EXPECTED = {
    s.WORKLOAD: "a job type",
    s.TASK_ROLE: "a mode",
    s.TOTAL_WORK: "a whole number of steps, 0 or more",
    s.NUM_GPU: "a whole number of GPUs, 1 to 32767",
    s.WEIGHT: "a number above 0",
    s.SLO: "a number; below 0 = none",
    s.DURATION_S: "seconds, 0 or more",
    s.SUBMIT_S: "seconds, never less than in the line above",
}


@whole_process
def import_jobs(path: str | os.PathLike[str]) -> PodRows:
    """The jobs of one trace (plain or .gz) in the order of the file; `total_work` counts steps.

    The number of fields of the first line determines the format. Arrivals must not fall; an SLO below 0 is none.
    """
    lines = list(_lines(path))
    if not lines:
        raise InputError(str(path), "no jobs", "one job a line")
    fields = lines[0].count("\t") + 1
    if fields not in _LAYOUTS:
        counts = ", ".join(map(str, _LAYOUTS))
        raise InputError(f"{path}:1", f"{fields} fields", f"{counts} fields separated by tabs")
    columns = _columns(path, lines, _LAYOUTS[fields])
    rows = len(lines)
    columns |= {s.POD_ID: np.arange(rows), s.CPU_MILLI: np.zeros(rows, np.int64)}
    columns |= {s.MEMORY_MIB: columns[s.CPU_MILLI], s.GPU_MILLI: np.full(rows, 1000, np.int16)}
    schema = s.pod_schema(columns)
    table = pa.table([pa.array(columns[field.name]).cast(field.type) for field in schema], schema=schema)
    metadata = {
        "fastsim.source": f"Gavel trace with {fields} fields",
        "fastsim.source_sha256": file_checksum(path),
        "fastsim.converter": "fastsim import gavel",
        "fastsim.work_unit": "steps",
    }
    return PodRows(Held(table), table.column_names, name=str(path), rows=rows, metadata=metadata)


def write_trace(workload: PodRows, path: str | os.PathLike[str], *, whole_seconds: bool = False) -> int:
    """Writes the 10-field format (gzipped if the name ends in .gz), complete or not at all, and returns the jobs.

    The format cuts: steps and weights lose what stands after the decimal point (a weight below 1 is refused), SLO
    factors have six decimals and -1 for none, arrivals have six decimals, or none with `whole_seconds`. Requests other
    than GPUs are not part of it. Job types that Gavel does not have get `-` for the fields that start them.
    """
    known = {kind.name: kind for kind in JOB_TYPES}
    rows = 0
    with replacing(path) as partial, open(partial, "wb") as file:
        packed: Any = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if str(path).endswith(".gz") else file
        with io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text:
            for batch in workload.batches():
                lines = [_line(workload.name, row, known, whole_seconds) for row in _jobs(workload.name, batch, rows)]
                text.writelines(lines)
                rows += len(lines)
    return rows


def _lines(path: str | os.PathLike[str]) -> Iterator[str]:
    try:
        with opened_text(path, newline="\n") as text:
            for line in text:
                yield line.rstrip("\r\n")
    except FileNotFoundError as error:
        raise InputError(str(path), "no such file", "a trace") from error
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(str(path), one_line(error), "a trace, plain or gzipped") from error


def _columns(path: str | os.PathLike[str], lines: list[str], layout: tuple[str, ...]) -> dict[str, Any]:
    """Values by column; the first wrong field is an InputError with its line."""
    values: dict[str, list[Any]] = {name: [] for name in layout if name != _LEFT_OUT}
    readers = [(index, name, _READERS[name]) for index, name in enumerate(layout) if name != _LEFT_OUT]
    before = -np.inf
    for number, line in enumerate(lines, start=1):
        fields = line.split("\t")
        if len(fields) != len(layout):
            raise InputError(f"{path}:{number}", f"{len(fields)} fields", f"{len(layout)}, as in line 1")
        for index, name, reader in readers:
            value = reader(fields[index])
            if value is _WRONG or (name == s.SUBMIT_S and value < before):
                raise InputError(f"{path}:{number}: {name}", repr(fields[index]), _EXPECTED[name])
            values[name].append(value)
        before = values[s.SUBMIT_S][-1]
    return dict(values)


class _Wrong:
    """The value of a field that cannot be read."""


_WRONG = _Wrong()


def _number(text: str, kind: Callable[[str], Any], low: float, high: float) -> Any:
    try:
        value = kind(text)
    except ValueError:
        return _WRONG
    return value if low <= value <= high else _WRONG


_HUGE = 1.7e308
_LEAST = 5e-324
_READERS: dict[str, Callable[[str], Any]] = {
    s.WORKLOAD: lambda text: text or _WRONG,
    s.TASK_ROLE: lambda text: text or _WRONG,
    s.TOTAL_WORK: lambda text: _number(text, int, 0, 2**53),
    s.NUM_GPU: lambda text: _number(text, int, 1, 32_767),
    s.WEIGHT: lambda text: _number(text, float, _LEAST, _HUGE),
    s.SLO: lambda text: _none_below_0(_number(text, float, -_HUGE, _HUGE)),
    s.DURATION_S: lambda text: _number(text, float, 0, _HUGE),
    s.SUBMIT_S: lambda text: _number(text, float, -_HUGE, _HUGE),
}


def _none_below_0(value: Any) -> Any:
    return None if value is not _WRONG and value < 0 else value


def _jobs(name: str, batch: pa.RecordBatch, done: int) -> Iterator[tuple[Any, ...]]:
    """(row, workload, steps, GPUs, weight, SLO, arrival) of each pod."""
    for column in (s.WORKLOAD, s.TOTAL_WORK):
        if column not in batch.schema.names:
            raise InputError(f"{name}: {column}", "no such column", "jobs with a workload and total_work")
    optional = {c: batch.column(c) if c in batch.schema.names else pa.nulls(len(batch)) for c in (s.WEIGHT, s.SLO)}
    columns = (batch.column(s.WORKLOAD), batch.column(s.TOTAL_WORK), batch.column(s.NUM_GPU))
    values = [column.to_pylist() for column in (*columns, *optional.values(), batch.column(s.SUBMIT_S))]
    yield from zip(range(done + 1, done + 1 + len(batch)), *values, strict=True)


def _line(name: str, job: tuple[Any, ...], known: dict[str, JobType], whole_seconds: bool) -> str:
    row, workload, steps, num_gpu, weight, slo, submit_s = job
    if workload is None or "\t" in workload or steps is None:
        raise InputError(f"{name}:{row}", f"workload {workload!r}, total_work {steps}", "both, and no tab")
    if weight is not None and weight < 1:
        raise InputError(f"{name}:{row}: {s.WEIGHT}", weight, "1 or more: the format has whole weights only")
    kind = known.get(workload) or JobType(workload, "-", "-", "-", False)
    started = f"{workload}\t{kind.command}\t{kind.folder}\t{kind.steps_option}\t{kind.needs_data:d}"
    arrival = f"{int(submit_s)}" if whole_seconds else f"{submit_s:f}"
    weight, slo = 1 if weight is None else int(weight), -1.0 if slo is None else slo
    return f"{started}\t{int(steps)}\t{num_gpu}\t{weight}\t{slo:f}\t{arrival}\n"
