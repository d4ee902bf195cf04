"""Pods from tables under other names, as those of published traces: a mapping of columns, and what pods need beyond it.

Pods are sorted by arrival and keep their `pod_id`, which stands in one row; without that column they are numbered in
this order. Names as `pod_id` become `native_id`, and their pods are numbered by arrival. Names of jobs are numbered in
order of appearance and stay in `native_job_id`; `007` is a name, because numbers are not written so. Requests that no
entry names are 0; `num_gpu` below 1 is a share of one GPU, and `gpu_milli` follows from it. Times are moved so that the
first arrival is 0 s; where it was is in the metadata. Mappings are those of `cluster.column_mapping`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.cluster.column_mapping import MISSING, Columns, Mapped, mapped
from fastsim.cluster.table_sources import Source, source_of
from fastsim.errors import InputError, ScenarioError
from fastsim.foundation.columns.physical_types import cell_text, column_of
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.packed_file import file_checksum, is_archived
from fastsim.hardware.gpu_products import models_called
from fastsim.workload import schema as s
from fastsim.workload.pod_rows import Held, PodRows
from fastsim.workload.row_checks import UNIQUE, Fault, Repeats, conformed, request_fault, required_columns

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
LAST = "last_moment"
"""Column of the latest moment of a table, at which rows without an end were seen last."""
NODE_PODS = {
    s.NUM_GPU: "CEIL(gpu_num / node_num)", s.CPU_MILLI: "1000 * cpu_num / node_num", s.JOB_ID: "job_id",
    s.GANG_SIZE: "node_num",
}  # fmt: skip
"""Columns of a job as pods, one for each of its nodes, where a table has `gpu_num`, `cpu_num`, `node_num`, `job_id`."""


@whole_process
def import_table(
    data: Any, columns: Columns | None = None, *, origin: str = "min", where: str | None = None, delimiter: str = ",",
    name: str | None = None,
) -> PodRows:  # fmt: skip
    """The pods of a CSV file or a frame under other names; options as in `Workload.from_csv`."""
    return pods_of(source_of(data, name, delimiter), columns, origin=origin, where=where or ())


def pods_of(
    source: Source, columns: Columns | None = None, *, origin: str = "min", where: str | Sequence[str] = (),
    identity: bool = True, expand: bool = False, metadata: Mapping[str, str] | None = None,
) -> PodRows:  # fmt: skip
    """The pods of a table. ``origin``: `min` = the first arrival is 0 s, `keep` = the trace's clock.

    ``where`` are conditions over source columns: rows for which one does not hold are left out. ``identity``: columns
    with canonical names stand for themselves. ``expand``: a row is `gang_size` pods.
    """
    if origin not in ORIGINS:
        raise ScenarioError("origin", repr(origin), f"one of: {', '.join(ORIGINS)}")
    conditions = [where] if isinstance(where, str) else list(where)
    ids = _given_ids(source, columns, identity)
    mapping = mapped(source, ids.columns, _kinds(), conditions, identity)
    table = _complete(mapping, spelled=identity)
    _check(mapping, table)
    ids.check(mapping)
    if expand:
        table = _expanded(mapping, table)
    table, base_s = _sorted(table, origin, ids.numbers)
    notes = {"fastsim.source": source.name, "fastsim.params": json.dumps(mapping.texts, sort_keys=True)}
    notes |= {"fastsim.origin_s": repr(base_s), **(metadata or {})}
    if conditions:
        left_out = source.frame.height - mapping.source.frame.height
        notes |= {"fastsim.where": " AND ".join(conditions), "fastsim.left_out": str(left_out)}
    if EPOCH_S <= base_s < 1e11:
        notes["fastsim.origin_utc"] = datetime.fromtimestamp(base_s, UTC).isoformat()
    return PodRows(Held(table), table.column_names, name=source.name, rows=table.num_rows, metadata=notes)


def _kinds() -> dict[str, pa.DataType]:
    """Types of the mapped columns: shares of a GPU are fractions, and jobs may have names."""
    kinds = {field.name: field.type for field in s.POD_SCHEMA}
    return {**kinds, s.NUM_GPU: pa.float64(), s.JOB_ID: pa.string()}


def _complete(mapping: Mapped, spelled: bool) -> pa.Table:
    """The mapped columns with those that follow from them; ``spelled``: GPU models may be spelled in any usual way."""
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
    columns |= {s.GPU_MODELS: _models(mapping)} if spelled and s.GPU_MODELS in names else {}
    columns |= _job_numbers(mapping)
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


def _models(mapping: Mapped) -> pa.Array:
    """Requests for GPU models, with the catalogue's models that their names may mean, too."""
    kind = s.POD_SCHEMA.field(s.GPU_MODELS).type
    requested = column_of(mapping.table, s.GPU_MODELS, kind, mapping.source.place)
    names = pc.unique(pc.list_flatten(requested)).to_pylist()
    meant = {name: list(dict.fromkeys((name, *models_called(name)))) for name in names if name}
    if all(len(models) == 1 for models in meant.values()):
        return requested
    rows = [row and [model for name in row for model in meant.get(name, [name])] for row in requested.to_pylist()]
    return pa.array([row and list(dict.fromkeys(row)) for row in rows], requested.type)


def _refuse_requests_of_no_gpu(mapping: Mapped, table: pa.Table) -> None:
    """InputError for the first row that says something about GPUs where no column says how many."""
    for name in (name for name in OF_GPUS if name in table.column_names):
        column = table[name].combine_chunks()
        asking = pc.greater(column, 0) if name == s.GPU_MILLI else column.is_valid()
        row = int(pc.index(pc.fill_null(asking, False), True).as_py())
        if row >= 0:
            expected = f"a column {s.NUM_GPU}, the number of GPUs that {name} is about"
            found = f"{cell_text(column, row)} without {s.NUM_GPU}"
            raise InputError(mapping.where(row, name), found, expected, f"{s.NUM_GPU}=1 is one GPU for every pod")


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


def _sorted(table: pa.Table, origin: str, numbered: bool) -> tuple[pa.Table, float]:
    """By arrival, stably, with times from the origin; and where that was. Without numbers pods get their place."""
    submit = table[s.SUBMIT_S].to_numpy()
    order = np.argsort(submit, kind="stable")
    if (order[1:] < order[:-1]).any():
        table = table.take(pa.array(order))
    if not numbered:
        table = table.set_column(table.column_names.index(s.POD_ID), s.POD_ID, pa.array(np.arange(len(table))))
    base_s = float(submit.min()) if origin == "min" and len(submit) else 0.0
    for name in (name for name in MOMENTS if base_s and name in table.column_names):
        # A date has no more digits than microseconds, and the difference of two none either.
        moved = pc.round(pc.subtract(table[name], base_s), 6)
        table = table.set_column(table.column_names.index(name), name, moved)
    return table, base_s


# ---------------------------------------------------------------------- ids of pods and jobs


class _GivenIds(NamedTuple):
    """How a table has the ids of its pods: ``columns`` is the mapping to use, ``key`` the column of ids, if any."""

    columns: Columns
    key: str | None

    @property
    def numbers(self) -> bool:
        """Whether the ids are numbers, which stay."""
        return self.key == s.POD_ID

    def check(self, mapping: Mapped) -> None:
        """InputError for the first row without an id or with that of an earlier row, in the terms of the source."""
        if self.key is None:
            return
        ids = mapping.table[self.key].combine_chunks()
        label = mapping.texts[self.key]
        label = s.POD_ID if label == s.POD_ID else f"{s.POD_ID} = {label}"
        if ids.null_count:
            place = mapping.source.place(int(pc.index(ids.is_null(), True).as_py()))
            raise InputError(f"{place}: {label}", "nothing", "an id in every row")
        codes = ids.to_numpy() if self.numbers else ids.dictionary_encode().indices.to_numpy()
        repeats = Repeats.of(codes.astype(np.int64)) if _may_repeat(codes) else None
        if repeats is not None and len(repeats.row):
            row, earlier = int(repeats.row[0]), int(repeats.earlier[0])
            found = f"{cell_text(ids, row)}, as in {mapping.source.place(earlier)}"
            raise InputError(f"{mapping.source.place(row)}: {label}", found, UNIQUE)


def _given_ids(source: Source, columns: Columns | None, identity: bool) -> _GivenIds:
    """The ids of a table, of which the mapping or a column `pod_id` tells; names are mapped to `native_id`."""
    mapping = dict(columns or {})
    text = mapping.get(s.POD_ID, s.POD_ID if identity and s.POD_ID in source.frame.columns else None)
    if not text:
        return _GivenIds(mapping, None)
    if text not in source.frame.columns or not _has_names(source.frame[text]):
        return _GivenIds(mapping, s.POD_ID)
    own = mapping.get(s.NATIVE_ID, s.NATIVE_ID if identity and s.NATIVE_ID in source.frame.columns else None)
    if own and own != text:
        label = s.POD_ID if text == s.POD_ID else f"{s.POD_ID} = {text}"
        do = f"map the names, {s.NATIVE_ID}={text}, or leave them out: {s.POD_ID}="
        raise InputError(f"{source.name}: {label}", f"names, beside {s.NATIVE_ID}", "whole numbers", do)
    return _GivenIds({**mapping, s.POD_ID: None, s.NATIVE_ID: text}, s.NATIVE_ID)


def _job_numbers(mapping: Mapped) -> dict[str, pa.Array]:
    """The number of each row's job, and the names if jobs have names; empty without jobs."""
    if s.JOB_ID not in mapping.table.column_names:
        return {}
    names = mapping.table[s.JOB_ID].combine_chunks()
    numbers = _whole(names)
    if numbers is not None:
        return {s.JOB_ID: numbers}
    if s.NATIVE_JOB_ID in mapping.table.column_names:
        where, do = f"{mapping.source.name}: {s.NATIVE_JOB_ID}", f"rename it, or number the jobs in {s.JOB_ID}"
        raise InputError(where, f"a column beside names in {s.JOB_ID}", "one column of names", do)
    return {s.JOB_ID: names.dictionary_encode().indices.cast(pa.int64()), s.NATIVE_JOB_ID: names}


def _whole(texts: pa.Array) -> pa.Array | None:
    """Texts as whole numbers, None unless all are written as such."""
    try:
        numbers = texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    return numbers if numbers.cast(texts.type).equals(texts) else None


def _has_names(column: pl.Series) -> bool:
    """Whether some cell is neither empty nor a number."""
    if column.dtype != pl.String:
        return False
    cells = column.str.strip_chars()
    return bool((cells.cast(pl.Float64, strict=False).is_null() & ~cells.is_in(MISSING)).any())


def _may_repeat(codes: Any) -> bool:
    """Whether ids do not rise, so that all must be compared."""
    return bool((codes[1:] <= codes[:-1]).any())


# ---------------------------------------------------------------------- published tables


def table_of(
    source: Source | str | os.PathLike[str], columns: Columns, title: str, *, where: Sequence[str | None] = (),
    origin: str = "min", expand: bool = False,
) -> PodRows:  # fmt: skip
    """The pods of a published table; rows are kept for which all conditions of ``where`` hold."""
    read = source if isinstance(source, Source) else source_of(source)
    notes = {"fastsim.source": title}
    if os.path.isfile(read.name) or is_archived(read.name):
        notes["fastsim.source_sha256"] = file_checksum(read.name)
    return pods_of(
        read, columns, origin=origin, where=[one for one in where if one], identity=False, expand=expand, metadata=notes
    )


def with_last_moment(source: Source, names: Sequence[str]) -> Source:
    """The table and, in every row of a further column, the latest of these columns' dates or numbers."""
    found = [_latest(source.frame[name]) for name in names if name in source.frame.columns]
    known = sorted((one for one in found if one is not None), key=lambda one: (type(one).__name__, one))
    return source._replace(frame=source.frame.with_columns(pl.lit(known[-1] if known else None).alias(LAST)))


def _latest(cells: pl.Series) -> Any:
    if cells.dtype != pl.String:
        return cells.max()
    dates = cells.filter(cells.str.contains(r"^\d{4}-").fill_null(False))
    numbers = cells.cast(pl.Float64, strict=False)
    return dates.max() if len(dates) else numbers.filter(numbers.is_finite()).max()


def chosen(option: str, value: object, choices: Sequence[str]) -> str:
    """A value among choices; anything else is a ScenarioError."""
    if value not in choices:
        raise ScenarioError(f"import.{option}", repr(value), f"one of: {', '.join(choices)}")
    return str(value)
