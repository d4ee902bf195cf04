"""Pods that run on a cluster already, in front of those that a run offers it.

A cluster that was read from Kubernetes objects brings the pods that run there, and its taints. They count for any
workload: for other Kubernetes objects, whose selectors, affinity and tolerations meet its nodes, and for pods of any
other kind, which tolerate no taint.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from fastsim.kubernetes.nodes import TAINT
from fastsim.kubernetes.snapshot import NotHonoured, Snapshot
from fastsim.workload import Workload
from fastsim.workload import schema as s
from fastsim.workload.importers.kubernetes import workload_of, workload_of_rows

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster


def with_running(offered: Workload, cluster: Cluster) -> Workload:
    """The pods that run on the cluster and then those offered; the same workload if it has them, or if none run."""
    snapshot = cluster.snapshot
    if snapshot is None or offered.population == snapshot.checksum:
        return offered
    workload = _of_objects(offered.snapshot, snapshot) if offered.snapshot is not None else _in_front(offered, cluster)
    workload.population = snapshot.checksum
    return workload


def _of_objects(asked: Snapshot, there: Snapshot) -> Workload:
    """Both sets of objects as one, on the nodes of the second."""
    both = asked.beside(there)
    workload = workload_of(both)
    for text in (*asked.notices, *there.notices):
        del both.notices[text]  # known since they were read
    both.warn(4)
    return workload


def _in_front(offered: Workload, cluster: Cluster) -> Workload:
    """Pods of any kind, with their ids, behind those that run; these, and their jobs, have ids of -1 and below."""
    snapshot = cluster.snapshot
    assert snapshot is not None
    rows, taints = snapshot.running(), taints_of(cluster)
    if offered.metadata.get("fastsim.source") == "kubernetes":  # it met nodes when it was read
        named = _names(offered)
        rows, taints = [row for row in rows if row["native_id"] not in named], []
    if not rows and not taints:
        return offered
    running = workload_of_rows(snapshot, rows, _sets(offered)).table() if rows else None
    names = {*offered.columns, *(() if running is None else running.column_names)}
    names |= {s.CONSTRAINTS} if taints else set()
    schema = s.pod_schema([name for name in s.POD_SCHEMA.names if name in names])
    workload = Workload(
        partial(_batches, offered, running, taints, schema), schema.names, name=offered.name,
        rows=None if offered.rows is None else offered.rows + len(rows), metadata=offered.metadata,
    )  # fmt: skip
    if taints:
        closed = sum(any(key.startswith(TAINT) for key, _ in labels or ()) for labels in _labels(cluster))
        warnings.warn(f"{cluster.name}: taints close {closed:,} of {len(cluster):,} nodes to pods that are not of "
                      "Kubernetes", NotHonoured, stacklevel=4)  # fmt: skip
    return workload


def _names(offered: Workload) -> set[str]:
    """Names of all its pods."""
    named = s.NATIVE_ID in offered.columns
    return {name for batch in offered.batches() for name in batch.column(s.NATIVE_ID).to_pylist()} if named else set()


def _sets(offered: Workload) -> set[str]:
    """Sets of Kubernetes' pods that rules of spread of its pods count."""
    if s.SPREAD not in offered.columns or offered.metadata.get("fastsim.source") != "kubernetes":
        return set()
    lists = (batch.column(s.SPREAD).to_pylist() for batch in offered.batches())
    return {rule["pods"] for rules in lists for item in rules for rule in item or ()}


def taints_of(cluster: Cluster) -> list[str]:
    """The labels that stand for taints of some node."""
    keys = (key for labels in _labels(cluster) for key, _ in labels or ())
    return list(dict.fromkeys(key for key in keys if key.startswith(TAINT)))


def _labels(cluster: Cluster) -> list[Any]:
    labels: list[Any] = cluster.nodes["labels"].to_pylist()
    return labels


def _batches(
    offered: Workload, running: pa.Table | None, taints: list[str], schema: pa.Schema, rows: int
) -> Iterator[pa.RecordBatch]:
    """Batches of the pods that run, arriving with the first of the others, and of the others."""
    first = True
    for batch in offered.batches(rows):
        if first and running is not None:
            yield from _running(running, schema, batch.column(s.SUBMIT_S)[0].as_py(), rows)
        first = False
        yield _kept_off(batch, taints, schema)
    if first and running is not None:
        yield from _running(running, schema, 0.0, rows)


def _running(running: pa.Table, schema: pa.Schema, submit_s: float, rows: int) -> Iterator[pa.RecordBatch]:
    at = running.column_names.index(s.SUBMIT_S)
    table = running.set_column(at, running.schema.field(at), pa.array([submit_s] * len(running), pa.float64()))
    ids = pa.array(range(-len(running), 0), pa.int64())
    table = table.set_column(table.column_names.index(s.POD_ID), schema.field(s.POD_ID), ids)
    if s.JOB_ID in table.column_names:
        jobs = pc.subtract(-1, table[s.JOB_ID])
        table = table.set_column(table.column_names.index(s.JOB_ID), schema.field(s.JOB_ID), jobs)
    yield from _filled(table, schema).to_batches(max_chunksize=rows)


def _kept_off(batch: pa.RecordBatch, taints: list[str], schema: pa.Schema) -> pa.RecordBatch:
    """The batch with expressions that keep its pods off nodes with taints."""
    table = pa.Table.from_batches([batch])
    if taints:
        away = [{"key": key, "op": "DoesNotExist", "values": []} for key in taints]
        lists = table[s.CONSTRAINTS].to_pylist() if s.CONSTRAINTS in table.column_names else [None] * len(table)
        field = schema.field(s.CONSTRAINTS)
        column = pa.array([[*(conditions or ()), *away] for conditions in lists], field.type)
        if s.CONSTRAINTS in table.column_names:
            table = table.drop_columns([s.CONSTRAINTS])
        table = table.append_column(field, column)
    return _filled(table, schema).combine_chunks().to_batches()[0]


def _filled(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with every column of the schema, null where it has none."""
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in schema
    ]  # fmt: skip
    return pa.table(columns, schema=schema)
