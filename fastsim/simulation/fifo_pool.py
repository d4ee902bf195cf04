"""The degenerate cluster: one pool of interchangeable GPUs, first come first served.

If all GPUs are equal and no job overtakes another, places of jobs do not matter and nothing has to be
scored, so millions of jobs a second can be placed. Starts are those of the online engine with
``queue="fifo"`` on one node that has all the GPUs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from fastsim.engine.tables import NAMES
from fastsim.errors import InputError
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.parquet import arrow_table
from fastsim.simulation.run_warnings import warn
from fastsim.simulation.uses.columns import ColumnFacts, UnusedColumns
from fastsim.workload import Workload
from fastsim.workload.row_checks import UNIQUE
from fastsim_ext.online.fifo_pool import fifo_starts

MOST_GPUS = 2**24
"""GPUs of the largest pool."""
WHOLE = 1000
"""Milli-GPU of a whole device."""


@whole_process
def simulate_pool(jobs: Any, gpus: int) -> pl.DataFrame:
    """Start, end and wait of each job on a pool of ``gpus`` GPUs: seconds, in the jobs' order.

    ``jobs`` is a workload or any Arrow table with ``submit_s`` (rising), ``duration_s`` (null = for ever) and
    ``num_gpu`` (whole GPUs; 0 = starts as soon as all jobs before it have). CPU and memory are ignored. Ids of jobs,
    ``pod_id``, ``native_id`` and ``native_job_id``, stand before the times. A null time means never. Times keep the
    clock of the table; ``Workload.from_polars`` begins at 0 s, unless it is given ``origin="keep"``.
    """
    if not isinstance(gpus, int) or not 0 < gpus <= MOST_GPUS:
        raise InputError("gpus", repr(gpus), f"a whole number from 1 to {MOST_GPUS:,}")
    table = jobs.table() if isinstance(jobs, Workload) else arrow_table(jobs, "jobs")
    submit, duration, wanted = (_column(table, name) for name in ("submit_s", "duration_s", "num_gpu"))
    _refuse("submit_s", submit, ~np.isfinite(submit), "a finite time")
    _refuse("submit_s", submit, np.diff(submit, prepend=submit[:1]) < 0, "a time not before the one above it")
    _refuse("duration_s", duration, (duration < 0) | np.isinf(duration), "seconds of 0 or more, or null")
    _refuse("num_gpu", wanted, (wanted < 0) | (wanted > gpus), f"0 to {gpus:,}, as many as the pool has")
    if "gpu_milli" in table.column_names:
        milli = _column(table, "gpu_milli")
        _refuse("gpu_milli", milli, (wanted > 0) & (milli != WHOLE), "1000: a pool has whole GPUs only")
    own = _own_ids(table)
    unused = UnusedColumns("pool", ColumnFacts(tuple(table.column_names)))
    unused.add(table)
    warn(unused.messages("jobs"), depth=2)
    start = np.empty(len(submit))
    fifo_starts(submit, duration, wanted.astype(np.int32), gpus, start)
    frame = pl.DataFrame({"start_s": start, "end_s": start + duration, "wait_s": start - submit})
    return pl.DataFrame([*own, *frame.with_columns(pl.all().fill_nan(None))])


def _own_ids(table: pa.Table) -> list[pl.Series]:
    """The columns by which jobs are known; InputError for a job without an id, or with that of an earlier one."""
    names = [name for name in ("pod_id", *NAMES) if name in table.column_names]
    own = [pl.Series(name, pl.from_arrow(table[name])) for name in names]
    for ids in (one for one in own if one.name == "pod_id"):
        if ids.null_count():
            row = int(ids.is_null().arg_max() or 0)
            raise InputError(f"jobs: pod_id, row {row + 1}", "null", "an id")
        if ids.dtype.is_integer() and (ids.diff().drop_nulls() > 0).all():
            continue
        if repeats := ids.is_first_distinct().not_().arg_true().to_list():
            row = repeats[0]
            found = f"{ids[row]}, as in row {(ids.index_of(ids[row]) or 0) + 1}"
            raise InputError(f"jobs: pod_id, row {row + 1}", found, UNIQUE)
    return own


def _column(table: pa.Table, name: str) -> Any:
    """A column as numpy: times as float64, counts as int64; only a duration may be null (NaN) or absent."""
    if name not in table.column_names:
        if name == "duration_s":
            return np.full(table.num_rows, np.nan)
        raise InputError("jobs", f"no column {name}", "submit_s and num_gpu, and duration_s if jobs end")
    column = table[name]
    kind = pa.float64() if name.endswith("_s") else pa.int64()
    if not pa.types.is_integer(column.type) and not (pa.types.is_floating(column.type) and name.endswith("_s")):
        raise InputError(f"jobs: {name}", f"a column of {column.type}", f"numbers that fit {kind}")
    if column.null_count and name != "duration_s":
        row = column.is_null().index(True).as_py()
        raise InputError(f"jobs: {name}, row {row + 1}", "null", "a number")
    return np.ascontiguousarray(column.cast(kind).to_numpy())


def _refuse(name: str, values: Any, wrong: Any, expected: str) -> None:
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(f"jobs: {name}, row {row + 1}", f"{values[row]:g}", expected)
