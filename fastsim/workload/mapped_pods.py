"""Workloads from tables under other names: the mapping of `cluster.column_mapping`, and what pods need beyond it.

Pods are sorted by arrival, and numbered anew unless their numbers rise with it. Requests that no entry names are 0;
`num_gpu` below 1 is a share of one GPU, and `gpu_milli` follows from it. Times are moved so that the first arrival is
0 s; where it was is in the metadata.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.cluster.column_mapping import Columns, Mapped, Source, mapped
from fastsim.errors import InputError, ScenarioError
from fastsim.workload import schema as s
from fastsim.workload.row_checks import Fault, conformed, request_fault, required_columns
from fastsim.workload.workload import Held, Workload

REQUESTS = (s.NUM_GPU, s.CPU_MILLI, s.MEMORY_MIB)
"""A mapping has one of these or more."""
OF_GPUS = (s.GPU_MILLI, s.GPU_MEMORY_MIB, s.GPU_MODELS, s.BOUND_GPUS)
"""Columns that say something about the GPUs which `num_gpu` counts."""
MOMENTS = (s.SUBMIT_S, s.DEADLINE_S, s.ORIG_START_S, s.ORIG_END_S)
"""Times on the clock of the trace, which move with its origin."""
ORIGINS = ("min", "keep")
"""First arrival: 0 s, or as the trace has it."""
MOST_PODS = 100_000_000
"""Most pods of a table whose rows are gangs; more is a wrong number."""
EPOCH_S = 1e8
"""First arrivals from here on are seconds since 1970; their date is kept, too."""


def pods_of(
    source: Source, columns: Columns | None = None, *, origin: str = "min", where: str | Sequence[str] = (),
    identity: bool = True, expand: bool = False, metadata: Mapping[str, str] | None = None,
) -> Workload:  # fmt: skip
    """The pods of a table. ``origin``: `min` = the first arrival is 0 s, `keep` = the trace's clock.

    ``where`` are conditions over source columns: rows for which one does not hold are left out. ``identity``: columns
    with canonical names stand for themselves. ``expand``: a row is `gang_size` pods.
    """
    if origin not in ORIGINS:
        raise ScenarioError("origin", repr(origin), f"one of: {', '.join(ORIGINS)}")
    conditions = [where] if isinstance(where, str) else list(where)
    mapping = mapped(source, columns, _kinds(), conditions, identity)
    table = _complete(mapping)
    _check(mapping, table)
    if expand:
        table = _expanded(mapping, table)
    table, base_s = _sorted(table, origin)
    notes = {"fastsim.source": source.name, "fastsim.params": json.dumps(mapping.texts, sort_keys=True)}
    notes |= {"fastsim.origin_s": repr(base_s), **(metadata or {})}
    if conditions:
        left_out = source.frame.height - mapping.source.frame.height
        notes |= {"fastsim.where": " AND ".join(conditions), "fastsim.left_out": str(left_out)}
    if EPOCH_S <= base_s < 1e11:
        notes["fastsim.origin_utc"] = datetime.fromtimestamp(base_s, UTC).isoformat()
    return Workload(Held(table), table.column_names, name=source.name, rows=table.num_rows, metadata=notes)


def _kinds() -> dict[str, pa.DataType]:
    """Types of the mapped columns: shares of a GPU are fractions, and jobs may have names."""
    kinds = {field.name: field.type for field in s.POD_SCHEMA}
    return {**kinds, s.NUM_GPU: pa.float64(), s.JOB_ID: pa.string()}


def _complete(mapping: Mapped) -> pa.Table:
    """The mapped columns with those that follow from them."""
    table, names = mapping.table, mapping.table.column_names
    if s.SUBMIT_S not in names or not set(REQUESTS) & set(names):
        missing = s.SUBMIT_S if s.SUBMIT_S not in names else s.NUM_GPU
        have = ", ".join(mapping.source.frame.columns)
        expected = f"an entry for {missing}, such as {missing}=column"
        raise InputError(f"{mapping.source.name}: {missing}", f"columns {have}", expected)
    columns: dict[str, Any] = {name: table[name] for name in names}
    nothing = pa.array(np.zeros(len(table), np.int64))
    columns = {s.POD_ID: pa.array(np.arange(len(table))), s.CPU_MILLI: nothing, s.MEMORY_MIB: nothing} | columns
    columns |= _devices(mapping, table)
    if s.JOB_ID in names:
        columns[s.JOB_ID] = _numbered(table[s.JOB_ID])
    required_columns(mapping.source.name, list(columns))
    ordered = [name for name in s.POD_SCHEMA.names if name in columns]
    ordered += [name for name in columns if name not in ordered]
    return pa.table({name: columns[name] for name in ordered})


def _devices(mapping: Mapped, table: pa.Table) -> dict[str, Any]:
    """`num_gpu` and `gpu_milli`; a fraction of one GPU is thousandths of it."""
    if s.NUM_GPU not in table.column_names:
        _refuse_requests_of_no_gpu(mapping, table)
        return {s.NUM_GPU: pa.array(np.zeros(len(table), np.int16)), s.GPU_MILLI: pa.array(np.zeros(len(table), int))}
    requested = table[s.NUM_GPU].combine_chunks()
    if requested.null_count:
        row = int(pc.index(requested.is_null(), True).as_py())
        raise InputError(mapping.where(row, s.NUM_GPU), "nothing", "GPUs, 0 or more")
    gpus = requested.to_numpy()
    share = (gpus > 0) & (gpus < 1) & (s.GPU_MILLI not in table.column_names)
    bad = ~share & ((gpus != np.floor(gpus)) | (gpus < 0) | (gpus > np.iinfo(np.int16).max))
    if bad.any():
        row = int(bad.argmax())
        raise InputError(mapping.where(row, s.NUM_GPU), f"{gpus[row]:g}", "whole GPUs, or a part of one")
    columns: dict[str, Any] = {s.NUM_GPU: pa.array(np.where(share, 1, gpus).astype(np.int16))}
    if s.GPU_MILLI not in table.column_names:
        parts = np.maximum(np.floor(1000 * gpus + 0.5), 1)
        columns[s.GPU_MILLI] = pa.array(np.where(share, parts, 1000 * (gpus > 0)).astype(np.int16))
    return columns


def _refuse_requests_of_no_gpu(mapping: Mapped, table: pa.Table) -> None:
    """InputError for the first row that says something about GPUs where no column says how many."""
    for name in (name for name in OF_GPUS if name in table.column_names):
        column = table[name].combine_chunks()
        asking = pc.greater(column, 0) if name == s.GPU_MILLI else column.is_valid()
        row = int(pc.index(pc.fill_null(asking, False), True).as_py())
        if row >= 0:
            expected = f"a column {s.NUM_GPU}, the number of GPUs that {name} is about"
            found = f"{column[row].as_py()} without {s.NUM_GPU}"
            raise InputError(mapping.where(row, name), found, expected, f"{s.NUM_GPU}=1 is one GPU for every pod")


def _numbered(jobs: pa.ChunkedArray) -> pa.Array:
    """Job numbers as they are; names are numbered in order of appearance."""
    texts = jobs.combine_chunks()
    try:
        return texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return texts.dictionary_encode().indices.cast(pa.int64())


def _check(mapping: Mapped, table: pa.Table) -> None:
    """The first row that breaks a rule, in the order and the terms of the source."""
    for batch in table.combine_chunks().to_batches():
        good = conformed(batch)
        fault = good if isinstance(good, Fault) else request_fault(good)
        if fault is not None:
            column = s.NUM_GPU if fault.column == s.GPU_MILLI and s.GPU_MILLI not in mapping.texts else fault.column
            value = "nothing" if fault.found == "null" else fault.found
            do = "leave such rows out: where='... IS NOT NULL'" if value == "nothing" else ""
            raise InputError(mapping.where(fault.row, column), value, fault.expected, do)


def _expanded(mapping: Mapped, table: pa.Table) -> pa.Table:
    """Every row as often as its gang has pods, with one request each."""
    sizes = pc.fill_null(table[s.GANG_SIZE], 1).to_numpy().astype(np.int64)
    if sizes.sum() > MOST_PODS:
        where = mapping.where(int(sizes.argmax()), s.GANG_SIZE)
        raise InputError(where, f"{sizes.max():,}, in all {sizes.sum():,} pods", f"at most {MOST_PODS:,} pods")
    return table.take(pa.array(np.repeat(np.arange(len(table)), sizes)))


def _sorted(table: pa.Table, origin: str) -> tuple[pa.Table, float]:
    """By arrival, stably, with numbers to match and times from the origin; and where that was."""
    submit = table[s.SUBMIT_S].to_numpy()
    order = np.argsort(submit, kind="stable")
    if (order[1:] < order[:-1]).any():
        table = table.take(pa.array(order))
    if (np.diff(table[s.POD_ID].to_numpy()) <= 0).any():  # numbers rise with the arrival, so these are new ones
        table = table.set_column(0, s.POD_ID, pa.array(np.arange(len(table))))
    base_s = float(submit.min()) if origin == "min" and len(submit) else 0.0
    for name in (name for name in MOMENTS if base_s and name in table.column_names):
        # A date has no more digits than microseconds, and the difference of two none either.
        moved = pc.round(pc.subtract(table[name], base_s), 6)
        table = table.set_column(table.column_names.index(name), name, moved)
    return table, base_s
