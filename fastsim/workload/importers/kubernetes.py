"""The pods of a Kubernetes snapshot as a stream."""

from __future__ import annotations

import json
import os
import warnings
from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastsim.errors import InputError
from fastsim.foundation.limits.forked_process import whole_process
from fastsim.foundation.limits.garbage import uncollected
from fastsim.workload import schema as s
from fastsim.workload.pod_rows import Held, PodRows

if TYPE_CHECKING:
    from fastsim.kubernetes.pods import PodTimes
    from fastsim.kubernetes.snapshot import Snapshot


class NodesKept(UserWarning):
    """Warning: pods of a trace stay on the nodes where they ran, whatever the policy; the text has their number."""


MARKED = "fastsim.tolerations"
"""Field of the metadata of pods whose tolerations stand among their expressions."""
OF_NODES = ("DaemonSet/", "Node/")
"""Beginnings of owners of pods that belong to their nodes."""


@uncollected()
def snapshot_pods(snapshot: Snapshot, read_as: str = "now", marked: bool = False) -> PodRows:
    """The pods of a snapshot as they stand, or with ``read_as="trace"`` at their own times; see `Snapshot.pod_rows`.

    ``marked``: with their tolerations among the expressions, for a table that may meet other nodes.
    """
    rows = snapshot.pod_rows(read_as)
    if marked:
        _mark(rows)
    pods = pods_of_rows(snapshot, rows)
    pods.snapshot = snapshot if read_as == "now" else None
    pods.metadata |= {MARKED: "true"} if marked else {}
    return pods


def import_pods(
    path: str | os.PathLike[str], nodes: str | None = None, memory_unit: str = "GiB", read_as: str = "now",
    unpin: str | bool = "",
) -> PodRows:  # fmt: skip
    """The pods among the Kubernetes objects of a file or folder; options as in `Workload.from_kubernetes`."""
    further = [nodes] if nodes else []
    return import_objects(path, *further, memory_unit=memory_unit, read_as=read_as, unpin=unpin)


def warn_of_kept_nodes(workload: PodRows, depth: int = 1) -> None:
    """Warn of pods of a trace that no policy moves, `depth` functions up; pods of each node are meant to stay there."""
    table = workload.table()
    if s.PINNED_NODE not in table.column_names:
        return
    owners = table[s.NATIVE_JOB_ID].to_pylist() if s.NATIVE_JOB_ID in table.column_names else [None] * len(table)
    rows = zip(table[s.PINNED_NODE].to_pylist(), owners, table[s.NATIVE_ID].to_pylist(), strict=True)
    kept = [name for node, owner, name in rows if node is not None and not str(owner).startswith(OF_NODES)]
    if kept:
        stay = "pods of a trace stay on the nodes where they ran; with unpin=true the policy places them"
        text = f"{workload.name}: {stay}: {len(kept):,}, such as {kept[0]}"
        warnings.warn(text, NodesKept, stacklevel=depth + 1)


@whole_process
def import_objects(
    path: str | os.PathLike[str], *nodes: str | os.PathLike[str], memory_unit: str = "GiB", read_as: str = "now",
    unpin: str | bool = "",
) -> PodRows:  # fmt: skip
    """The pods among Kubernetes objects; arguments as in `Workload.from_kubernetes`."""
    from fastsim.kubernetes.snapshot import Snapshot

    snapshot = Snapshot.read(path, *nodes, memory_unit=memory_unit, unpin=str(unpin or ""))
    pods = snapshot_pods(snapshot, read_as)
    snapshot.warn(5, nodes=False)  # warnings about nodes come with the nodes
    if read_as == "trace":
        warn_of_kept_nodes(pods, 5)
    return pods


def trace_of(snapshot: Snapshot) -> PodRows:
    """The pods of a snapshot at their own times, those that are over among them; its notices stay as they are."""
    return snapshot_pods(snapshot.reread(), "trace")


def _mark(rows: list[dict[str, Any]]) -> None:
    """Put the tolerations of pods among their expressions."""
    from fastsim.kubernetes.pod_rules.kept_parts import KeptParts
    from fastsim.kubernetes.pod_rules.node_affinity import toleration_mark

    def marks(listed: list[Any], _: Counter[str]) -> list[dict[str, Any]]:
        return [toleration_mark(toleration) for toleration in listed]

    kept = KeptParts()
    for row in rows:
        listed = row["tolerations"]
        made = kept.of("marks", partial(list, listed), partial(marks, listed), whole=[listed])
        row["constraints"] = kept.joined(row["constraints"], made)


def pods_of_rows(
    snapshot: Snapshot, rows: list[dict[str, Any]], sets: Collection[str] = (), preferred: Collection[str] = ()
) -> PodRows:
    """Rows of pods by arrival.

    ``sets`` are sets of pods that rules of spread, or about pods near, of others count, ``preferred`` those that
    preferences of others count.
    """
    from fastsim.kubernetes.pod_rules.host_ports import is_port_set
    from fastsim.kubernetes.pod_rules.pod_affinity import is_near_set
    from fastsim.kubernetes.pod_rules.topology_spread import with_sets

    near = [name for name in sets if is_near_set(name) or is_port_set(name)]
    rows = snapshot.in_sets(rows, near) if near else rows
    rows = snapshot.in_preference_sets(rows, preferred)
    table = _pod_table(with_sets(rows, [name for name in sets if name not in near]))
    metadata = {
        "fastsim.source": "kubernetes",
        "fastsim.source_sha256": snapshot.checksum,
        "fastsim.converter": "fastsim import kubernetes",
        "fastsim.params": json.dumps(
            {"memory_unit": snapshot.memory_unit, "not_honoured": snapshot.notices}, sort_keys=True
        ),
    }
    return PodRows(Held(table), table.column_names, name=snapshot.name, rows=len(rows), metadata=metadata)


def _pod_table(rows: list[dict[str, Any]]) -> pa.Table:
    """The rows by arrival, with dense ids, times from the first arrival, and numbers of the workloads they are of."""
    rows, timed = _in_time(rows)
    jobs = {owner: number for number, owner in enumerate(dict.fromkeys(row["owner"] for row in rows if row["owner"]))}
    columns: dict[str, Any] = {s.POD_ID: np.arange(len(rows)), s.JOB_ID: [jobs.get(row["owner"]) for row in rows]}
    columns[s.NATIVE_JOB_ID] = [row.get("gang_owner") or row["owner"] or None for row in rows]
    names = [name for name in rows[0] if name in s.POD_SCHEMA.names]
    columns |= zip(names, zip(*map(itemgetter(*names), rows), strict=True), strict=True)
    columns |= timed
    schema = s.pod_schema([
        name for name, values in columns.items() if name in s.REQUIRED or any(v is not None for v in values)
    ])  # fmt: skip
    return pa.table([_column(columns[item.name], item) for item in schema], schema=schema)


def _in_time(rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, Sequence[float | None]]]:
    """The rows by arrival, and columns of their times in seconds from the first arrival."""
    times: list[PodTimes] = [row["times"] for row in rows]
    known = [one.created for one in times if one.created is not None]
    origin = min(known, default=0.0)
    submitted = [0.0 if one.created is None else one.created - origin for one in times]
    order: Sequence[int] = range(len(rows))
    if known and min(submitted) != max(submitted):
        order = sorted(order, key=submitted.__getitem__)
    times, submitted = [times[at] for at in order], [submitted[at] for at in order]
    columns: dict[str, Sequence[float | None]] = {
        s.SUBMIT_S: submitted,
        s.DURATION_S: [None if one.started is None or one.ended is None else one.ended - one.started for one in times],
        s.ORIG_START_S: [None if one.started is None else one.started - origin for one in times],
        s.ORIG_END_S: [None if one.ended is None else one.ended - origin for one in times],
    }
    return [rows[at] for at in order], columns


def _column(values: Any, field: pa.Field) -> pa.Array:
    if pa.types.is_list(field.type):
        return _lists(values, field)
    if pa.types.is_dictionary(field.type):
        return pa.array(values, field.type.value_type).cast(field.type)
    return _plain(values, field)


def _lists(values: Sequence[Any], field: pa.Field) -> pa.Array:
    """A column of lists, of which many rows share each."""
    places: dict[int, int] = {}
    distinct: list[Any] = []
    for value in values:
        if places.setdefault(id(value), len(distinct)) == len(distinct):
            distinct.append(value)
    return _plain(distinct, field).take(pa.array([places[id(value)] for value in values], pa.int32()))


def _plain(values: Any, field: pa.Field) -> pa.Array:
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, OverflowError):
        worst = max(values, key=lambda value: -1 if value is None else value)
        raise InputError(f"kubernetes: {field.name}", worst, f"a value of type {field.type}") from None
