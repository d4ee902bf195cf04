"""Clusters and workloads from what Kubernetes says of itself: ``kubectl get nodes,pods -o json``, YAML, KAI snapshots.

>>> from fastsim.kubernetes import Snapshot
>>> Snapshot.read("no-such-folder")
Traceback (most recent call last):
...
fastsim.errors.InputError: no-such-folder: found no such file or folder, expected Kubernetes objects (YAML or JSON)
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from fastsim.errors import InputError, ScenarioError
from fastsim.gpu_products import with_products
from fastsim.kubernetes_nodes import MEMORY_UNITS, node_row, slots_per_gpu, taints
from fastsim.manifests import Manifest, manifests
from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.catalog import Catalog
    from fastsim.cluster import Cluster
    from fastsim.workload import Workload

READ = ("Node", "Pod", "PriorityClass", "Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "DaemonSet",
        "Job", "CronJob")  # fmt: skip
"""Kinds that are looked at; others are counted."""


class NotHonoured(UserWarning):
    """Something in the objects has no counterpart here; what, and how often."""


class Snapshot:
    """The objects of a cluster; `notices` counts what was found in them and is not honoured.

    ``memory_unit`` is what one of ``aliyun.com/gpu-mem`` means, GiB or MiB: no object tells that flag of the plugin.
    """

    def __init__(self, objects: Sequence[Manifest], name: str = "kubernetes", memory_unit: str = "GiB") -> None:
        if memory_unit not in MEMORY_UNITS:
            raise ScenarioError("kubernetes: memory_unit", repr(memory_unit), f"one of {', '.join(MEMORY_UNITS)}")
        self.objects, self.name, self.memory_unit = list(objects), name, memory_unit
        self.notices: Counter[str] = Counter()
        for item in self.objects:
            if item.kind not in READ:
                self.notices[f"objects of kind {item.kind}"] += 1

    @classmethod
    def read(cls, *paths: str | os.PathLike[str], memory_unit: str = "GiB") -> Snapshot:
        """The objects of files and folders: YAML, JSON or a KAI snapshot (ZIP)."""
        objects = [item for path in paths for item in manifests(path)]
        return cls(objects, ", ".join(map(str, paths)), memory_unit)

    def cluster(self, catalog: Catalog | None = None) -> Cluster:
        """The nodes, in the order of the objects; GPU models that the catalogue lacks draw 0 W."""
        from fastsim.catalog import Catalog
        from fastsim.cluster import Cluster
        from fastsim.node_table import NODE_SCHEMA

        rows = self._nodes
        if not rows:
            raise InputError(self.name, "no nodes", "objects of kind Node")
        known, unknown = with_products(
            catalog or Catalog.default(), [row["gpu_model"] for row in rows if row["gpu_model"]]
        )
        for model in unknown:
            self.notices[f"nodes: GPU model {model} of unknown watts counts 0 W"] = 1
        places = [node.where for node in self._of("Node")]
        columns = {name: pa.array([row[name] for row in rows], NODE_SCHEMA.field(name).type) for name in rows[0]}
        return Cluster(pa.table(columns), known, self.name, lambda row: places[row])

    def workload(self) -> Workload:
        """The pods by arrival; seconds count from the first, and pods that tell no time arrive then."""
        rows = self.rows_of(self.objects)
        if not rows:
            raise InputError(self.name, "no pods", "objects of kind Pod, or workloads that have pods")
        return self.workload_of(rows)

    def rows_of(self, objects: Sequence[Manifest]) -> list[dict[str, Any]]:
        """The pods among some objects as rows that :meth:`workload_of` takes; this snapshot's nodes are theirs."""
        from fastsim.workload.kubernetes_expansion import pods
        from fastsim.workload.kubernetes_pods import pod_row

        found = [
            pod_row(pod, self._places, self._surroundings, self._priorities, self.notices)
            for pod in pods(objects, self._places, self.notices)
        ]
        return [row for row in found if row is not None]

    def workload_of(self, rows: list[dict[str, Any]]) -> Workload:
        """Rows of pods by arrival."""
        from fastsim.workload.stream import Held, Workload

        table = _pod_table(rows)
        metadata = {
            "fastsim.source": "kubernetes",
            "fastsim.source_sha256": self._checksum,
            "fastsim.converter": "fastsim import kubernetes",
            "fastsim.params": json.dumps(
                {"memory_unit": self.memory_unit, "not_honoured": self.notices}, sort_keys=True
            ),
        }
        return Workload(Held(table), table.column_names, name=self.name, rows=len(rows), metadata=metadata)

    def warn(self, depth: int = 1) -> None:
        """One warning for each thing that is not honoured, given `depth` public functions up."""
        for text, count in sorted(self.notices.items()):
            warnings.warn(f"{self.name}: {text}: {count:,}", NotHonoured, stacklevel=depth + 1)

    @cached_property
    def _nodes(self) -> list[dict[str, Any]]:
        return [node_row(node, self.memory_unit, self.notices) for node in self._of("Node")]

    @cached_property
    def _places(self) -> Any:
        from fastsim.workload.kubernetes_rules import Places

        labels = [{**dict(row["labels"]), "name": row["name"]} for row in self._nodes]
        found = [taint for node in self._of("Node") for taint in taints(node, Counter())]
        return Places(labels, list(dict.fromkeys(found)))

    @cached_property
    def _surroundings(self) -> Any:
        from fastsim.workload.kubernetes_requests import Surroundings

        gpus = [row["gpu_memory_mib"] for row in self._nodes if row["num_gpu"]]
        turns = {slots_per_gpu(node) for node in self._of("Node")}
        largest = max(gpus) if gpus and None not in gpus else None
        return Surroundings(largest, turns.pop() if len(turns) == 1 else 1, self.memory_unit)

    @cached_property
    def _priorities(self) -> dict[str, int]:
        found = {}
        for item in self._of("PriorityClass"):
            value = item.body.get("value", 0)
            if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 31:
                raise InputError(f"{item.where}: value", repr(value), "a whole number of 32 bits")
            found[item.name] = value
        return found

    @cached_property
    def _checksum(self) -> str:
        text = json.dumps([item.body for item in self.objects], sort_keys=True, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def _of(self, kind: str) -> list[Manifest]:
        return [item for item in self.objects if item.kind == kind]


def _pod_table(rows: list[dict[str, Any]]) -> pa.Table:
    """The rows by arrival, with dense ids, times from the first arrival, and numbers of the workloads they are of."""
    known = [row["times"].created for row in rows if row["times"].created is not None]
    origin = min(known, default=0.0)
    for row in rows:
        times = row["times"]
        row[s.SUBMIT_S] = origin if times.created is None else times.created
        over = times.started is not None and times.ended is not None
        row[s.DURATION_S] = times.ended - times.started if over else None
        row[s.ORIG_START_S], row[s.ORIG_END_S] = times.started, times.ended
        for name in (s.SUBMIT_S, s.ORIG_START_S, s.ORIG_END_S):
            row[name] = None if row[name] is None else row[name] - origin
    rows = sorted(rows, key=lambda row: row[s.SUBMIT_S])
    jobs = {owner: number for number, owner in enumerate(dict.fromkeys(row["owner"] for row in rows if row["owner"]))}
    columns: dict[str, Any] = {s.POD_ID: np.arange(len(rows)), s.JOB_ID: [jobs.get(row["owner"]) for row in rows]}
    columns |= {name: [row[name] for row in rows] for name in rows[0] if name in s.POD_SCHEMA.names}
    schema = s.pod_schema([
        name for name, values in columns.items() if name in s.REQUIRED or any(v is not None for v in values)
    ])  # fmt: skip
    return pa.table([_column(columns[item.name], item) for item in schema], schema=schema)


def _column(values: Any, field: pa.Field) -> pa.Array:
    if pa.types.is_dictionary(field.type):
        return pa.array(values, field.type.value_type).cast(field.type)
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, OverflowError):
        worst = max(values, key=lambda value: -1 if value is None else value)
        raise InputError(f"kubernetes: {field.name}", worst, f"a value of type {field.type}") from None
