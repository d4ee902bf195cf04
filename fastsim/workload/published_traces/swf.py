"""Importer of the Standard Workload Format of the Parallel Workloads Archive (plain or .gz).

A line is a job of 18 numbers, -1 where one is unknown; lines that begin with ``;`` are comments. Processors and memory
are those of the whole job. Jobs without a run time or without processors are left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import polars as pl

from fastsim.cluster.table_sources import Source
from fastsim.errors import InputError, short
from fastsim.foundation import interrupts
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.packed_file import opened_text
from fastsim.foundation.parquet import one_line
from fastsim.workload import schema as s
from fastsim.workload.mapped_pods import chosen, table_of
from fastsim.workload.pod_rows import PodRows

FIELDS = (
    "job", "submit", "wait", "run", "processors", "cpu_time", "memory_kib", "asked_processors", "asked_time",
    "asked_memory_kib", "status", "user", "group", "executable", "queue", "partition", "preceding_job", "think_time",
)  # fmt: skip
"""Names of the numbers of a line; seconds, processors, and KiB of each processor."""
_PROCESSORS = "CASE WHEN processors > 0 THEN processors ELSE asked_processors END"
_MEMORY = "CASE WHEN memory_kib >= 0 THEN memory_kib WHEN asked_memory_kib >= 0 THEN asked_memory_kib ELSE 0 END"
JOBS = {
    s.SUBMIT_S: "submit", s.DURATION_S: "run", s.EST_DURATION_S: "CASE WHEN asked_time >= 0 THEN asked_time END",
    s.MEMORY_MIB: f"({_MEMORY}) * ({_PROCESSORS}) / 1024", s.QOS: "CASE WHEN queue >= 0 THEN queue END",
    s.TENANT: "user", s.ORIG_START_S: "CASE WHEN wait >= 0 THEN submit + wait END", s.NATIVE_ID: "job",
}  # fmt: skip
"""Columns of a job, but for its processors."""
PROCESSORS = {"cpu": {s.CPU_MILLI: f"1000 * ({_PROCESSORS})"}, "gpu": {s.NUM_GPU: _PROCESSORS}}
"""Column of a job's processors, by the option."""
RAN = f"run >= 0 AND ({_PROCESSORS}) > 0"
START = re.compile(r";\s*UnixStartTime:\s*(\d+)")
PART_LINES = 100_000
"""Lines that are taken apart together."""


@whole_process
def import_jobs(
    path: str | os.PathLike[str], *, processors: str = "cpu", where: str | None = None, origin: str = "min"
) -> PodRows:
    """The jobs, one row each; ``processors`` are `cpu` (virtual CPUs) or `gpu` (whole GPUs)."""
    columns = JOBS | PROCESSORS[chosen("processors", processors, tuple(PROCESSORS))]
    source, start_s = _read(path)
    workload = table_of(source, columns, "Standard Workload Format", where=(RAN, where), origin=origin)
    if start_s is not None:
        first_s = start_s + float(workload.metadata["fastsim.origin_s"])
        workload.metadata["fastsim.origin_utc"] = datetime.fromtimestamp(first_s, UTC).isoformat()
    return workload


def _read(path: str | os.PathLike[str]) -> tuple[Source, int | None]:
    """The jobs as numbers, and the second since 1970 at which the clock of the trace began, if a comment has it."""
    parts, lines, start_s = [pl.DataFrame(schema=dict.fromkeys(FIELDS, pl.Float64))], [], None
    try:
        with opened_text(path) as text:
            rows: list[list[str]] = []
            for number, line in enumerate(text, start=1):
                fields = line.split()
                if line.startswith(";"):
                    match = START.match(line)
                    start_s = int(match[1]) if match else start_s
                elif fields:
                    if len(fields) != len(FIELDS):
                        raise InputError(f"{path}:{number}", f"{len(fields)} fields", f"{len(FIELDS)} fields of a job")
                    rows.append(fields)
                    lines.append(number)
                    if len(rows) == PART_LINES:
                        parts.append(_numbers(path, rows, lines))
                        rows = []
            parts.append(_numbers(path, rows, lines))
    except FileNotFoundError as error:
        raise InputError(str(path), "no such file", "a trace in the Standard Workload Format") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(str(path), one_line(error), "a complete text, plain or gzipped") from error
    if not lines:
        raise InputError(str(path), "no job", f"lines of {len(FIELDS)} numbers")
    return Source(pl.concat(parts), str(path), lambda row: f"{path}:{lines[row]}"), start_s


def _numbers(path: str | os.PathLike[str], rows: list[list[str]], lines: list[int]) -> pl.DataFrame:
    """Rows as numbers; the last of ``lines`` are theirs."""
    interrupts.check()
    texts = pl.DataFrame(rows, schema=dict.fromkeys(FIELDS, pl.String), orient="row")
    numbers = texts.cast(pl.Float64, strict=False)
    for name, row in _holes(numbers):
        where = f"{path}:{lines[len(lines) - len(rows) + row]}: {name}"
        raise InputError(where, short(texts[name][row]), "a number, -1 if it is unknown")
    return numbers


def _holes(frame: pl.DataFrame) -> Iterator[tuple[str, int]]:
    for name in frame.columns:
        if frame[name].null_count():
            yield name, int(frame[name].is_null().arg_max() or 0)
