"""Pods of Kubernetes objects that arrive one after another and end some time, and the run that plain readings check."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pyarrow as pa

import fastsim as fs
from fastsim.kubernetes.snapshot import Snapshot
from tests.objects import cluster_of, workload_of, written

Body = Mapping[str, Any]
ZONE, RACK, HOST = "topology.kubernetes.io/zone", "rack", "kubernetes.io/hostname"
CPUS = 8000
"""Milli-CPU of a node."""


class Stay(NamedTuple):
    """A pod on a node until an instant; infinite if it stays."""

    body: Body
    node: str
    end_s: float


class Played(NamedTuple):
    """What a plain reading repeats: bodies by name, arrivals and starts of the run."""

    bodies: dict[str, Body]
    arrivals: list[tuple[float, int, str]]
    """Second, number and name of each pod, in the order of the line."""
    starts: dict[int, dict[str, Any]]
    """The row of the placements by the number of the pod."""

    @property
    def instants(self) -> list[float]:
        """Seconds at which a pod arrives or ends, in order."""
        ends = {row["end_s"] for row in self.starts.values() if row["end_s"] is not None}
        return sorted({second for second, _, _ in self.arrivals} | ends)

    @property
    def never_started(self) -> set[int]:
        """Numbers of the pods that did not start."""
        return {number for _, number, _ in self.arrivals} - set(self.starts)


def cpu(body: Body) -> int:
    """Milli-CPU of a pod."""
    return int(body["spec"]["containers"][0]["resources"]["requests"]["cpu"][:-1])


def timed(workload: fs.Workload, rng: random.Random, all_end: bool) -> fs.Workload:
    """The same pods; those that wait arrive one after another and end some time. ``all_end``: running pods end, too."""
    rows, clock = workload.table().to_pylist(), 0.0
    for row in rows:
        waits = row.get("bound_node") is None
        clock += rng.random() if waits else 0.0
        row["submit_s"], row["duration_s"] = clock, rng.uniform(0.5, 8.0) if waits or all_end else None
    fields = [field for field in workload.table().schema if field.name != "duration_s"]
    table = pa.Table.from_pylist(rows, pa.schema([*fields, pa.field("duration_s", pa.float64())]))
    made = fs.Workload.from_arrow(table)
    made.metadata |= workload.metadata
    return made


def played(nodes: list[dict[str, Any]], pods: list[dict[str, Any]], path: Path, rng: random.Random,
           all_end: bool) -> Played:  # fmt: skip
    """A run of the objects, in which whatever fits starts."""
    snapshot = Snapshot.read(written(path, *nodes, *pods))
    workload = timed(workload_of(snapshot), rng, all_end)
    nodes_alone = dataclasses.replace(cluster_of(snapshot), snapshot=None)  # those that run are in the workload
    result = fs.simulate(cluster=nodes_alone, workload=workload, policy="best_fit", queue="fifo_skip")
    started = result.placements.filter(pl.col("start_s").is_not_null()).to_dicts()
    return Played(
        {f"{body['metadata']['namespace']}/{body['metadata']['name']}": body for body in pods},
        [(row["submit_s"], row["pod_id"], row["native_id"]) for row in workload.table().to_pylist()],
        {row["pod_id"]: row for row in started},
    )
