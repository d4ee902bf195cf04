"""Pods that run on a cluster already, in front of those that a run offers it.

A cluster that was read from Kubernetes objects brings the pods that run there, and its taints; a table of its nodes
brings the taints. They count for any workload: for other Kubernetes objects, whose selectors, affinity and tolerations
meet its nodes, for tables of them, which carry the tolerations, and for pods of any other kind. Of these, pods with
devices tolerate taints whose key is such a resource, as admission can have it in Kubernetes; they tolerate no others.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from fastsim.hardware.node_constraints import Constraint, Preference
from fastsim.kubernetes.nodes import TAINT, Taint
from fastsim.kubernetes.pod_rules.node_affinity import kept_away
from fastsim.kubernetes.pod_rules.preferences import preference_items
from fastsim.kubernetes.requests import WHOLE
from fastsim.kubernetes.snapshot import NotHonoured, Snapshot
from fastsim.workload import schema as s
from fastsim.workload.importers.kubernetes import MARKED, pods_of_rows, snapshot_pods
from fastsim.workload.pod_rows import PodRows

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster


def with_running(offered: PodRows, cluster: Cluster) -> PodRows:
    """The pods that run on the cluster and then those offered; the same workload if it has them, or if none run."""
    snapshot = cluster.snapshot
    checksum = cluster.checksum() if snapshot is None else snapshot.checksum
    if offered.population == checksum:
        return offered
    asked = offered.snapshot
    if asked is not None and snapshot is not None and asked.has_objects_of(snapshot):
        workload = offered  # which met their nodes when they were read
    elif asked is not None and snapshot is not None:
        workload = _of_objects(asked, snapshot)
    elif asked is not None and taints_of(cluster):
        workload = _in_front(snapshot_pods(asked, marked=True), cluster)
    else:
        workload = _in_front(offered, cluster)
    workload.population = checksum
    return workload


def _of_objects(asked: Snapshot, there: Snapshot) -> PodRows:
    """Both sets of objects as one, on the nodes of the second."""
    both = asked.beside(there)
    workload = snapshot_pods(both)
    for text in (*asked.notices, *there.notices):
        del both.notices[text]  # known since they were read
    both.warn(4)
    return workload


def _in_front(offered: PodRows, cluster: Cluster) -> PodRows:
    """Pods of any kind, with their ids, behind those that run; these, and their jobs, have ids of -1 and below."""
    snapshot, taints = cluster.snapshot, taints_of(cluster)
    rows = [] if snapshot is None else snapshot.running()
    of_kubernetes = offered.metadata.get("fastsim.source") == "kubernetes"
    if of_kubernetes:
        named = _names(offered)
        rows = [row for row in rows if row["native_id"] not in named]
        taints = taints if MARKED in offered.metadata else []  # without marks it met its nodes when it was read
    if not rows and not taints:
        return offered
    running = None
    if snapshot is not None and rows:
        counted, preferred = _sets(offered, s.SPREAD, s.NEAR), _sets(offered, s.PREFERENCES)
        running = pods_of_rows(snapshot, rows, counted, preferred).table()
    names = {*offered.columns, *(() if running is None else running.column_names)}
    closing, avoided = [one for one in taints if one.keeps_away], [one for one in taints if not one.keeps_away]
    names |= {s.CONSTRAINTS} if closing else set()
    names |= {s.PREFERENCES} if avoided else set()
    schema = s.pod_schema([name for name in s.POD_SCHEMA.names if name in names])
    closed = Closed(closing, avoided, () if of_kubernetes else WHOLE)
    workload = PodRows(
        partial(_batches, offered, running, closed, schema),
        schema.names, name=offered.name,
        rows=None if offered.rows is None else offered.rows + len(rows), metadata=offered.metadata,
    )  # fmt: skip
    if closing and not of_kubernetes:
        warnings.warn(f"{cluster.name}: {_closed_text(cluster)}", NotHonoured, stacklevel=5)
    return workload


class Closed(NamedTuple):
    """Taints of a cluster, and keys of taints that every pod with devices tolerates, whatever it says.

    ``avoided`` taints keep no pod away, but make nodes worse.
    """

    taints: list[Taint]
    avoided: list[Taint]
    kinds: tuple[str, ...]

    def expressions(self, row: tuple[Any, ...]) -> list[dict[str, Any]] | None:
        """The expressions of a pod and those against taints, from its own, its devices, and its node if it has one."""
        own, devices, *nodes = row
        if any(node is not None for node in nodes):
            return list(own) if own else None
        away = kept_away(self.taints, own or (), self.kinds if devices else ())
        known = {item["key"] for item in own or ()}
        added = [{"key": taint.label, "op": "DoesNotExist", "values": []} for taint in away if taint.label not in known]
        return [*(own or ()), *added] or None

    def preferences(self, row: tuple[Any, ...]) -> list[dict[str, Any]] | None:
        """The preferences of a pod and those against taints, from its expressions, devices and nodes, and its own."""
        expressions, devices, *nodes, own = row
        if any(node is not None for node in nodes):
            return list(own) if own else None
        away = kept_away(self.avoided, expressions or (), self.kinds if devices else ())
        against = [Preference("taint", nodes=(Constraint(taint.label, "Exists"),)) for taint in away]
        return [*(own or ()), *preference_items(against)] or None


def _closed_text(cluster: Cluster) -> str:
    """The number of nodes that taints close to pods of other kinds."""
    taints = [[Taint.of_label(key) for key, _ in labels or () if key.startswith(TAINT)] for labels in _labels(cluster)]
    of_nodes = [[taint.key for taint in own if taint.keeps_away] for own in taints]
    closed = sum(any(key not in WHOLE for key in keys) for keys in of_nodes)
    partly = sum(bool(keys) for keys in of_nodes) - closed
    text = f"taints close {closed:,} of {len(cluster):,} nodes to pods that are not of Kubernetes"
    return text + (f", and {partly:,} to those of them without GPUs" if partly else "")


def _names(offered: PodRows) -> set[str]:
    """Names of all its pods."""
    named = s.NATIVE_ID in offered.columns
    return {name for batch in offered.batches() for name in batch.column(s.NATIVE_ID).to_pylist()} if named else set()


def _sets(offered: PodRows, *names: str) -> set[str]:
    """Sets of Kubernetes' pods that the rules in columns of its pods count."""
    columns = [name for name in names if name in offered.columns]
    if not columns or offered.metadata.get("fastsim.source") != "kubernetes":
        return set()
    lists = (batch.column(name).to_pylist() for batch in offered.batches() for name in columns)
    return {rule["pods"] for rules in lists for item in rules for rule in item or () if rule["pods"]}


def taints_of(cluster: Cluster) -> list[Taint]:
    """The taints of some node."""
    if cluster.nodes["labels"].null_count == len(cluster):
        return []
    keys = (key for labels in _labels(cluster) for key, _ in labels or ())
    return [Taint.of_label(label) for label in dict.fromkeys(key for key in keys if key.startswith(TAINT))]


def _labels(cluster: Cluster) -> list[Any]:
    labels: list[Any] = cluster.nodes["labels"].to_pylist()
    return labels


def _batches(
    offered: PodRows, running: pa.Table | None, closed: Closed, schema: pa.Schema, rows: int
) -> Iterator[pa.RecordBatch]:
    """Batches of the pods that run, arriving with the first of the others, and of the others."""
    first = True
    for batch in offered.batches(rows):
        if first and running is not None:
            yield from _running(running, schema, batch.column(s.SUBMIT_S)[0].as_py(), rows)
        first = False
        yield _kept_off(batch, closed, schema)
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


def _kept_off(batch: pa.RecordBatch, closed: Closed, schema: pa.Schema) -> pa.RecordBatch:
    """The batch with expressions that keep its pods off nodes with taints, and preferences against them."""
    table = pa.Table.from_batches([batch])
    if not closed.taints and not closed.avoided:
        return _filled(table, schema).combine_chunks().to_batches()[0]
    none = [None] * len(table)
    names = (s.CONSTRAINTS, s.NUM_GPU, s.PINNED_NODE, s.BOUND_NODE, s.PREFERENCES)
    parts = [table[name].to_pylist() if name in table.column_names else none for name in names]
    *of_nodes, _ = parts
    for name, taints, added, columns in (
        (s.CONSTRAINTS, closed.taints, closed.expressions, of_nodes),
        (s.PREFERENCES, closed.avoided, closed.preferences, parts),
    ):
        if taints:
            column = pa.array(map(added, zip(*columns, strict=True)), schema.field(name).type)
            table = table.drop_columns([name]) if name in table.column_names else table
            table = table.append_column(schema.field(name), column)
    return _filled(table, schema).combine_chunks().to_batches()[0]


def _filled(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with every column of the schema, null where it has none."""
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in schema
    ]  # fmt: skip
    return pa.table(columns, schema=schema)
