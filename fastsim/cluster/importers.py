"""Nodes from foreign formats: node lists of openb, tables under other names, nodes of a Kubernetes snapshot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from fastsim.cluster.node_table import NODE_SCHEMA, Nodes
from fastsim.errors import InputError
from fastsim.foundation.columns.physical_types import column_of
from fastsim.foundation.csv_table import csv_line, read_csv
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.work_budget import Work
from fastsim.foundation.parquet import parquet_table
from fastsim.hardware.gpu_products import with_products
from fastsim.hardware.model_catalog import Catalog

if TYPE_CHECKING:
    from fastsim.cluster.column_mapping import Columns
    from fastsim.cluster.table_sources import Source
    from fastsim.kubernetes.snapshot import Snapshot

MAX_PODS = 1001
"""Pod limit of every openb node."""
NODE_COLUMNS = {
    "sn": pa.string(), "cpu_milli": pa.int64(), "memory_mib": pa.int64(), "gpu": pa.int64(), "model": pa.string(),
}  # fmt: skip
"""Columns of a node list."""


@whole_process
def import_nodes(path: str | os.PathLike[str], *, catalog: Catalog | None = None) -> Nodes:
    """The nodes of a node list (CSV, CSV.gz or Parquet), in the file's order, with openb's limit of 1,001 pods."""
    source = read_list(path, NODE_COLUMNS, tuple(NODE_COLUMNS), Work.NODES)
    names = {"sn": "name", "gpu": "num_gpu", "model": "gpu_model"}
    table = source.rename_columns([names.get(name, name) for name in source.column_names])
    table = table.append_column("max_pods", pa.array(np.full(len(table), MAX_PODS, np.int32)))
    return Nodes(table, catalog or Catalog.default(), str(path), partial(list_row, path))


def nodes_of(
    source: Source, columns: Columns | None = None, *, where: str | None = None, catalog: Catalog | None = None,
    identity: bool = True,
) -> Nodes:  # fmt: skip
    """The nodes of a table under other names, in its order; see `column_mapping`."""
    from fastsim.cluster.column_mapping import mapped

    found = mapped(source, columns, {field.name: field.type for field in NODE_SCHEMA}, where or (), identity)
    return Nodes(found.table, catalog or Catalog.default(), source.name, found.source.place)


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Whether a list is a Parquet file, by its name."""
    return str(path).endswith((".parquet", ".pq"))


def list_row(path: str | os.PathLike[str], row: int) -> str:
    """Name of data row `row` (from 0) in messages: a line of a CSV file, a row of a Parquet file (both from 1)."""
    return f"{path}:{row + 1 if is_parquet(path) else csv_line(path, row)}"


def read_list(
    path: str | os.PathLike[str], types: dict[str, pa.DataType], required: Sequence[str], work: Work
) -> pa.Table:
    """A list of openb, of nodes or of pods, with columns of these types."""
    if not is_parquet(path):
        return read_csv(path, types, required).combine_chunks()
    table = parquet_table(path, work)
    missing = [name for name in required if name not in table.column_names]
    if missing:
        raise InputError(f"{path}: {missing[0]}", f"columns {', '.join(table.column_names)}", "this required column")
    known = [name for name in types if name in table.column_names]
    return pa.table({name: column_of(table, name, types[name], partial(list_row, path)) for name in known})


def snapshot_nodes(snapshot: Snapshot, catalog: Catalog | None = None) -> Nodes:
    """The nodes of a snapshot, by name; GPU models that the catalogue lacks draw 0 W."""
    rows = snapshot.node_rows
    if not rows:
        raise InputError(snapshot.name, "no nodes", "objects of kind Node")
    known, unknown = with_products(catalog or Catalog.default(), [row["gpu_model"] for row in rows if row["gpu_model"]])
    for model in unknown:
        snapshot.notices[f"nodes: GPU model {model} of unknown watts counts 0 W"] = 1
    places = [node.where for node in snapshot.of_kind("Node")]
    columns = {name: pa.array([row[name] for row in rows], NODE_SCHEMA.field(name).type) for name in rows[0]}
    return Nodes(pa.table(columns), known, snapshot.name, lambda row: places[row], snapshot)
