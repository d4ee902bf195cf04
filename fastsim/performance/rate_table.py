"""The table of rates: one row for each measured point, and the arrays that an `Oracle` is made of."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.errors import InputError
from fastsim.foundation.columns.physical_types import cell_text, column_of
from fastsim.foundation.csv_table import read_csv
from fastsim.foundation.parquet import write_parquet

_NAME = pa.dictionary(pa.int32(), pa.string())

RATE_SCHEMA = pa.schema(
    [
        pa.field("workload", _NAME, nullable=False),
        pa.field("gpu_model", _NAME, nullable=False),
        pa.field("num_gpu", pa.int32(), nullable=False),
        pa.field("num_nodes", pa.int32()),
        pa.field("consolidated", pa.bool_()),
        pa.field("colocated_workload", _NAME),
        pa.field("steps_per_s", pa.float64(), nullable=False),
        pa.field("colocated_steps_per_s", pa.float64()),
    ]
)
"""Columns of a table of rates; rates are steps/s of the whole gang.

`colocated_workload` shares every GPU of the job, on as many GPUs; null = alone. `consolidated` is false for GPUs
spread over more nodes than they need.
"""
SORTED_BY = ("workload", "gpu_model", "num_gpu")
"""Sort key of a table of rates; GPUs in one place come first, and the job alone before any company."""
_STAMP = {"fastsim.schema": "rates", "fastsim.schema_version": "1.0"}

_NEEDED = ("workload", "gpu_model", "num_gpu", "steps_per_s")


class RateArrays(NamedTuple):
    """Content of an `Oracle`: kinds, GPU models, rates alone and rates in company."""

    kinds: tuple[tuple[str, int], ...]
    gpu_models: tuple[str, ...]
    alone__kg: Any
    shared__kkg: Any


def rate_table(columns: dict[str, Any]) -> pa.Table:
    """Rows in canonical order from columns by name; absent columns are null."""
    rows = len(columns["workload"])
    empty = [None] * rows
    plain = [_plain(field.type) for field in RATE_SCHEMA]
    table = pa.table({f.name: pa.array(columns.get(f.name, empty), t) for f, t in zip(RATE_SCHEMA, plain, strict=True)})
    spread = pc.invert(pc.fill_null(table["consolidated"], True))
    alone = pc.fill_null(table["colocated_workload"], "")
    keyed = table.append_column("spread", spread.cast(pa.int8())).append_column("company", alone)
    keys = [(name, "ascending") for name in (*SORTED_BY, "spread", "company")]
    return table.take(pc.sort_indices(keyed, keys)).cast(RATE_SCHEMA)


def csv_rates(path: str | os.PathLike[str]) -> pa.Table:
    """The table in a CSV file (plain or .gz)."""
    return read_csv(path, {field.name: _plain(field.type) for field in RATE_SCHEMA}, _NEEDED)


def _plain(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_dictionary(kind) else kind


def rate_arrays(table: pa.Table, where: str) -> RateArrays:
    """Kinds and models in the order of their names, and their rates; rows that are not consolidated are left out."""
    table = _canonical(table, where)
    if "consolidated" in table.column_names:
        table = table.filter(pc.fill_null(table["consolidated"], True))
    workloads, models = table["workload"].to_pylist(), table["gpu_model"].to_pylist()
    counts = table["num_gpu"].to_pylist()
    kinds, names = sorted(set(zip(workloads, counts, strict=True))), sorted(set(models))
    place = {kind: index for index, kind in enumerate(kinds)}
    k = np.array([place[kind] for kind in zip(workloads, counts, strict=True)], np.int64)
    g = np.array([names.index(model) for model in models], np.int64)
    rate = table["steps_per_s"].to_numpy()
    others = table["colocated_workload"].to_pylist() if "colocated_workload" in table.column_names else [None] * len(k)
    single = np.array([other is None for other in others], bool)
    alone = np.full((len(kinds), len(names)), np.nan)
    _write(alone, (k[single], g[single]), rate[single], where)
    shared = np.full((len(kinds), len(kinds), len(names)), np.nan)
    if not single.all():
        partner = _partners(others, counts, place, where)
        one, two, on = k[~single], partner[~single], g[~single]
        theirs = table["colocated_steps_per_s"].to_numpy()
        both = (np.r_[one, two], np.r_[two, one], np.r_[on, on])
        _write(shared, both, np.r_[rate[~single], theirs[~single]], where)
    return RateArrays(tuple(kinds), tuple(names), alone, shared)


def rate_rows(rates: RateArrays, where: str) -> pa.Table:
    """These rates as a table; what was not measured has no row. ``where`` names them in an error."""
    kinds, gpu_models, alone__kg, shared__kkg = rates
    k, g = np.nonzero(~np.isnan(alone__kg))
    first, second, shared_g = np.nonzero(~np.isnan(shared__kkg))
    named: list[Any] = [kinds[i] for i in (*k, *first)]
    partners = [kinds[i] for i in second]
    for (workload, count), (other, others_count) in zip(named[len(k) :], partners, strict=True):
        if count != others_count:
            found = f"{workload!r} on {count} sharing with {other!r} on {others_count} GPUs"
            raise InputError(f"{where}.shared__kkg", found, "as many GPUs for both")
    rows = len(named)
    return rate_table(
        {
            "workload": [workload for workload, _ in named],
            "gpu_model": [gpu_models[i] for i in (*g, *shared_g)],
            "num_gpu": [count for _, count in named],
            "consolidated": [True] * rows,
            "colocated_workload": [None] * len(k) + [workload for workload, _ in partners],
            "steps_per_s": np.concatenate([alone__kg[k, g], shared__kkg[first, second, shared_g]]),
            "colocated_steps_per_s": [None] * len(k) + shared__kkg[second, first, shared_g].tolist(),
        }
    )


def write_rates(table: pa.Table, path: str | os.PathLike[str]) -> int:
    """Writes canonical Parquet, complete or not at all, and returns the number of rows."""
    return write_parquet(path, table.to_batches(), table.schema, _STAMP, SORTED_BY)


def _canonical(table: pa.Table, where: str) -> pa.Table:
    """The known columns in their types; the first wrong cell is an InputError."""
    missing = [name for name in _NEEDED if name not in table.column_names]
    if missing:
        raise InputError(f"{where}: {missing[0]}", f"columns {', '.join(table.column_names)}", "this required column")
    known = [field for field in RATE_SCHEMA if field.name in table.column_names]
    columns = {}
    for field in known:
        columns[field.name] = column_of(table, field.name, _plain(field.type), lambda row: f"{where}:{row + 1}")
    ordered = pa.table(columns)
    if "colocated_workload" in columns and "colocated_steps_per_s" not in columns:
        raise InputError(f"{where}: colocated_steps_per_s", "no such column", "the rates of the companions")
    for name in _NEEDED:
        _first_bad(ordered[name].is_null(), ordered[name], f"{where}: {name}", "a value")
    _first_bad(pc.less(ordered["num_gpu"], 1), ordered["num_gpu"], f"{where}: num_gpu", "1 or more")
    _no_rate(ordered["steps_per_s"], None, f"{where}: steps_per_s")
    if "colocated_workload" in columns:
        _no_rate(ordered["colocated_steps_per_s"], ordered["colocated_workload"], f"{where}: colocated_steps_per_s")
    return ordered


def _no_rate(rates: pa.ChunkedArray, companions: pa.ChunkedArray | None, where: str) -> None:
    """InputError for the first row without a rate; only rows with a companion need one if companions are given."""
    bad = pc.invert(pc.fill_null(pc.and_(pc.is_finite(rates), pc.greater_equal(rates, 0.0)), False))
    if companions is not None:
        bad = pc.and_(bad, companions.is_valid())
    _first_bad(bad, rates, where, "steps/s of 0 or more")


def _first_bad(bad: pa.ChunkedArray, values: pa.ChunkedArray, where: str, expected: str) -> None:
    row = pc.index(bad, True).as_py()
    if row >= 0:
        at, _, column = where.rpartition(": ")
        raise InputError(f"{at}:{row + 1}: {column}", cell_text(values, row), expected)


def _partners(
    others: list[str | None], counts: list[int], place: dict[tuple[str, int], int], where: str
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Kind of each row's companion, -1 without one."""
    positions = np.full(len(others), -1, np.int64)
    for row, (other, count) in enumerate(zip(others, counts, strict=True)):
        if other is not None:
            if (other, count) not in place:
                name = f"{where}:{row + 1}: colocated_workload"
                raise InputError(name, repr(other), f"a workload with rates of its own on {count} GPUs")
            positions[row] = place[other, count]
    return positions


def _write(target: Any, index: tuple[Any, ...], values: Any, where: str) -> None:
    """Fill the cells; two rows with different rates for one cell are an InputError."""
    target[index] = values
    if not np.array_equal(target[index], values):
        row = int(np.flatnonzero(target[index] != values)[0])
        found = f"{values[row]:g} and {target[index][row]:g} steps/s for one job, GPU model and companion"
        raise InputError(where, found, "one rate")
