"""Importer of the openb trace (cluster-trace-gpu-v2023): pod lists with 11 or 5 columns.

Nothing is repaired silently: model lists keep order and repeats, memory 0 stays 0, an empty field is null, and a
pod that outlived the recording is marked `censored`. Lists that are not sorted by creation time are sorted, stably.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.cluster.importers import list_row, read_list
from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.columns.physical_types import cell_text
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.packed_file import file_checksum
from fastsim.foundation.limits.work_budget import Work
from fastsim.workload import schema as s
from fastsim.workload.pod_rows import Held, PodRows
from fastsim.workload.row_checks import Fault, request_fault

END_S = 12_902_960
"""End of the recording, seconds: a pod deleted at this instant was still alive."""

MOST_TIME_S = 2**53
"""Largest time, seconds: every whole number up to here is a float."""

POD_COLUMNS = {
    "name": pa.string(), "cpu_milli": pa.int64(), "memory_mib": pa.int64(), "num_gpu": pa.int16(),
    "gpu_milli": pa.int64(), "gpu_spec": pa.string(), "qos": pa.string(), "pod_phase": pa.string(),
    "creation_time": pa.int64(), "deletion_time": pa.int64(), "scheduled_time": pa.int64(),
}  # fmt: skip
"""Columns of a pod list; the first five are always there, times are integer seconds."""
_REQUESTS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
_TIMES = ("creation_time", "deletion_time", "scheduled_time")
_RENAMED = {"name": s.NATIVE_ID, "gpu_spec": s.GPU_MODELS, "pod_phase": s.ORIG_STATUS, "deletion_time": s.DURATION_S}
_DROPS = ("never_scheduled", "cpu_only", "zero_duration")
_CHOICES = {
    "origin": ("min", "keep"),
    "duration": ("service", "lifetime", "none"),
    "on_missing_duration": ("lifetime", "null", "drop"),
}


@whole_process
def import_pods(
    path: str | os.PathLike[str],
    *,
    drop: Sequence[str] = (),
    origin: str = "min",
    duration: str = "service",
    on_missing_duration: str = "lifetime",
    time_scale: float = 1.0,
) -> PodRows:
    """The pods of one list (CSV, CSV.gz or Parquet), sorted by creation time; `native_id` keeps the source's name.

    drop: any of never_scheduled, cpu_only, zero_duration. origin: `min` = the first arrival is 0 s, `keep` = the
    trace's clock. duration: `service` = deletion - scheduling, `lifetime` = deletion - creation, `none` = for ever.
    on_missing_duration, for pods that were cancelled before they were scheduled: `lifetime` = deletion - creation,
    `null` = runs for ever, `drop`. time_scale multiplies all times and durations.
    A list without times keeps its own order: arrivals at 0, 1, 2, ... s and no durations.
    """
    options = {"origin": origin, "duration": duration, "on_missing_duration": on_missing_duration}
    _check_options(options, drop, time_scale)
    source = read_list(path, POD_COLUMNS, _REQUESTS, Work.HELD_PODS)
    _refuse_inexact_times(path, source)
    table = _canonical(source, duration, on_missing_duration)
    _check(path, table, source)
    table = _kept(table, source, drop, duration, on_missing_duration)
    table = _timed(table, origin, time_scale)
    metadata = {
        "fastsim.source": "openb (Alibaba cluster-trace-gpu-v2023)",
        "fastsim.source_sha256": file_checksum(path),
        "fastsim.converter": "fastsim import openb",
        "fastsim.params": json.dumps({**options, "drop": sorted(drop), "time_scale": time_scale}, sort_keys=True),
    }
    return PodRows(Held(table), table.column_names, name=str(path), rows=table.num_rows, metadata=metadata)


def _check_options(options: dict[str, str], drop: Sequence[str], time_scale: float) -> None:
    for name, choices in _CHOICES.items():
        if options[name] not in choices:
            raise ScenarioError(f"import.{name}", repr(options[name]), f"one of: {', '.join(choices)}")
    for name in [drop] if isinstance(drop, str) else drop:
        if name not in _DROPS or isinstance(drop, str):
            raise ScenarioError("import.drop", repr(name), f"a list of: {', '.join(_DROPS)}")
    if not (np.isfinite(time_scale) and time_scale > 0):
        raise ScenarioError("import.time_scale", time_scale, "a positive number")


def _canonical(source: pa.Table, duration: str, missing: str) -> pa.Table:
    """Requests, model lists, times and status as canonical columns, in the file's order; `pod_id` = file row."""
    rows = source.num_rows
    columns: dict[str, Any] = {s.POD_ID: pa.array(np.arange(rows)), s.SUBMIT_S: pa.array(np.arange(float(rows)))}
    columns |= {name: source[name] for name in _REQUESTS[1:]}
    names = source.column_names
    if set(_TIMES) <= set(names):
        created, deleted, started = (source[name].cast(pa.float64()) for name in _TIMES)
        columns[s.SUBMIT_S] = created
        if duration != "none":
            service_start = pc.coalesce(started, created) if missing == "lifetime" else started
            columns[s.DURATION_S] = pc.subtract(deleted, service_start if duration == "service" else created)
        columns |= {s.ORIG_START_S: started, s.ORIG_END_S: deleted, s.CENSORED: pc.equal(deleted, END_S)}
    if "gpu_spec" in names:
        columns[s.GPU_MODELS] = _model_lists(source["gpu_spec"])
    for name, column in (("qos", s.QOS), ("pod_phase", s.ORIG_STATUS), ("name", s.NATIVE_ID)):
        if name in names:
            columns[column] = source[name]
    return pa.table({name: columns[name] for name in s.POD_SCHEMA.names if name in columns}).combine_chunks()


def _model_lists(specs: pa.ChunkedArray) -> pa.Array:
    """`A|B` as a list, order and repeats kept, empty pieces dropped; nothing left = null. One conversion per spec."""
    codes = specs.combine_chunks().dictionary_encode(null_encoding="encode")
    lists = [[piece for piece in (text or "").split("|") if piece] or None for text in codes.dictionary.to_pylist()]
    return pa.array(lists, pa.list_(pa.string())).take(codes.indices)


def _check(path: str | os.PathLike[str], table: pa.Table, source: pa.Table) -> None:
    """Report the first bad row in file order, in the terms of the source."""
    batch = table.to_batches()[0] if table.num_rows else None
    fault = None if batch is None else _null_fault(batch) or request_fault(batch)
    if fault is None:
        return
    column = {v: k for k, v in _RENAMED.items()}.get(fault.column, fault.column)
    column = "creation_time" if column == s.SUBMIT_S else column
    found = fault.found
    if column in source.column_names:
        found = cell_text(source[column], fault.row) if source[column][fault.row].is_valid else None
    if fault.column == s.DURATION_S:
        found, expected = f"{found} (duration {fault.found:g} s)", "no earlier than creation and scheduling"
    else:
        expected = fault.expected
    raise InputError(f"{list_row(path, fault.row)}: {column}", "nothing" if found is None else found, expected)


def _refuse_inexact_times(path: str | os.PathLike[str], source: pa.Table) -> None:
    """InputError for the first time that no float is."""
    for name in (name for name in _TIMES if name in source.column_names):
        column = source[name]
        beyond = pc.or_(pc.greater(column, MOST_TIME_S), pc.less(column, -MOST_TIME_S)).fill_null(False)
        if pc.any(beyond).as_py():
            row = pc.index(beyond, True).as_py()
            where = f"{list_row(path, row)}: {name}"
            raise InputError(where, cell_text(column, row), f"-{MOST_TIME_S} to {MOST_TIME_S} seconds")


def _null_fault(batch: pa.RecordBatch) -> Fault | None:
    faults = []
    for name in (*s.REQUIRED, s.NATIVE_ID):
        column = batch.column(name)
        if column.null_count:
            row = int(pc.index(column.is_null(), True).as_py())
            faults.append(Fault(row, name, "nothing", f"a value ({column.type})"))
    return min(faults, key=lambda fault: fault.row, default=None)


# ---------------------------------------------------------------------- choosing and timing


def _kept(table: pa.Table, source: pa.Table, drop: Sequence[str], duration: str, missing: str) -> pa.Table:
    keep = np.ones(len(table), bool)
    if "cpu_only" in drop:
        keep &= table[s.NUM_GPU].to_numpy() > 0
    if "never_scheduled" in drop and "scheduled_time" in source.column_names:
        keep &= source["scheduled_time"].is_valid().to_numpy()
    if s.DURATION_S in table.column_names:
        lasting = table[s.DURATION_S]
        if "zero_duration" in drop:
            keep &= pc.not_equal(lasting, 0.0).fill_null(True).to_numpy()
        if missing == "drop":
            keep &= lasting.is_valid().to_numpy()
    elif missing == "drop" and duration != "none":
        keep[:] = False
    return table.filter(pa.array(keep)).combine_chunks()


def _timed(table: pa.Table, origin: str, time_scale: float) -> pa.Table:
    """Sorted by arrival with ids to match, moved to the chosen origin, scaled."""
    order = np.argsort(table[s.SUBMIT_S].to_numpy(), kind="stable")
    table = table.take(pa.array(order))
    start = float(table[s.SUBMIT_S][0].as_py()) if origin == "min" and len(table) else 0.0
    changed: dict[str, Any] = {s.POD_ID: pa.array(np.arange(len(table)))}
    for name in (s.SUBMIT_S, s.ORIG_START_S, s.ORIG_END_S):
        if name in table.column_names:
            changed[name] = pc.multiply(pc.subtract(table[name], start), time_scale)
    if s.DURATION_S in table.column_names:
        changed[s.DURATION_S] = pc.multiply(table[s.DURATION_S], time_scale)
    return pa.table({name: changed.get(name, table[name]) for name in table.column_names})
