"""The workload for the loop: batches cut at checkpoints and at the end, their columns as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fastsim.errors import InputError
from fastsim.foundation.columns.physical_types import cell_text
from fastsim.scenario.column_values import filled
from fastsim.workload import schema as s

if TYPE_CHECKING:
    import pyarrow as pa

    from fastsim.cluster.cluster import Cluster
    from fastsim.workload import Workload


class Arrivals(NamedTuple):
    """Columns of one batch: times in seconds (a duration of NaN never ends), tenants by number or -1.

    ``node`` is the position of the node that each pod is bound to when it arrives (-1: none), ``gpus`` its devices as
    bits (0: those that the policy picks); both are None if no pod is bound.
    """

    pod_id: Any
    cls: Any
    submit_s: Any
    duration_s: Any
    priority: Any
    tenant: Any
    node: Any = None
    gpus: Any = None


def arrivals(batch: pa.RecordBatch, cls: Any, tenant: Any, positions: Mapping[str, int]) -> Arrivals:
    """The columns of a batch whose pods have these class ids and tenants; ``positions`` of the nodes by name."""
    pod_id = batch.column("pod_id").to_numpy()
    times = filled(batch, s.SUBMIT_S), filled(batch, s.DURATION_S)
    return Arrivals(pod_id, cls, *times, filled(batch, s.PRIORITY, 0, np.int32), tenant, *bound(batch, positions))


def positions(cluster: Cluster, workload: Workload) -> dict[str, int]:
    """Positions of the nodes by name, if any pod of the workload may be on one when it arrives."""
    if s.BOUND_NODE not in workload.columns:
        return {}
    return {name: position for position, name in enumerate(cluster.nodes["name"].to_pylist())}


def bound(batch: pa.RecordBatch, positions: Mapping[str, int]) -> tuple[Any, Any]:
    """Positions of the nodes that pods are bound to and their devices as bits; a pair of None if no pod is."""
    if s.BOUND_NODE not in batch.schema.names or batch.column(s.BOUND_NODE).null_count == batch.num_rows:
        return None, None
    names = batch.column(s.BOUND_NODE).to_pylist()
    for row, name in enumerate(names):
        if name is not None and name not in positions:
            pod, found = (cell_text(batch.column(one), row) for one in (s.POD_ID, s.BOUND_NODE))
            raise InputError(f"workload: pod {pod}: {s.BOUND_NODE}", found, "a node of the cluster")
    node = np.array([-1 if name is None else positions[name] for name in names], np.int32)
    held = batch.column(s.BOUND_GPUS).to_pylist() if s.BOUND_GPUS in batch.schema.names else [None] * len(names)
    return node, np.array([sum(1 << gpu for gpu in gpus or ()) for gpus in held], np.uint64)


NO_NUMBERS = np.zeros(0, np.int32)
NO_ARRIVALS = Arrivals(
    pod_id=np.zeros(0, np.int64),
    cls=NO_NUMBERS,
    submit_s=np.zeros(0),
    duration_s=np.zeros(0),
    priority=NO_NUMBERS,
    tenant=NO_NUMBERS,
)
"""A batch without pods, which marks the end of the workload."""


def pieces(batches: Iterator[pa.RecordBatch], every: int = 0, at: int = 0) -> Iterator[pa.RecordBatch]:
    """The batches, also cut after every ``every`` rows of the stream and after its first ``at`` rows (0 = not)."""
    row = 0
    for batch in batches:
        while batch.num_rows:
            cuts = [row + batch.num_rows]
            cuts += [row + every - row % every] if every else []
            cuts += [at] if row < at else []
            piece = batch.slice(0, min(cuts) - row)
            batch = batch.slice(piece.num_rows)
            row += piece.num_rows
            yield piece


def arrived_by(batches: Iterator[pa.RecordBatch], time_s: float) -> Iterator[pa.RecordBatch]:
    """The batches up to the last row that arrives at this time or earlier."""
    for batch in batches:
        rows = int(np.searchsorted(filled(batch, s.SUBMIT_S), time_s, side="right"))
        if rows:
            yield batch.slice(0, rows)
        if rows < batch.num_rows:
            return


def with_last(batches: Iterator[Any]) -> Iterator[tuple[Any, bool]]:
    """Each batch with whether it is the last one."""
    batch = next(batches, None)
    while batch is not None:
        following = next(batches, None)
        yield batch, following is None
        batch = following
