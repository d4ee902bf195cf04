"""Pods that no node of a cluster could host even if it were empty, and jobs with more GPUs than a cluster has.

Pods are counted while the workload streams past; jobs are left out, or made smaller, before it runs.
"""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.errors import InputError, ScenarioError
from fastsim.kubernetes.nodes import amount_text
from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.workload.pod_classes import PodClasses
    from fastsim.workload.workload import Workload

REFUSE = "refuse"
HOW = ("drop", "shrink", REFUSE)
"""Treatments of jobs with more GPUs than the cluster has of one model: left out, made smaller, an error."""


class JobOversized(UserWarning):
    """Some jobs of a workload need more GPUs than the cluster has, and were left out or made smaller."""


class Shape(NamedTuple):
    """An empty node: milli-CPU, MiB, number of GPUs and their model, amounts of further resources by name."""

    cpu_milli: int
    memory_mib: int
    num_gpu: int
    model: str | None
    extra: tuple[tuple[str, int], ...] = ()


class Oversized:
    """Counts the pods that are larger than every node; ``count`` of them so far, ``example`` is the first request."""

    def __init__(self, cluster: Cluster) -> None:
        self.count, self.example = 0, ""
        self._shapes = _shapes(cluster)
        self._large = np.zeros(0, bool)

    def add(self, classes: PodClasses, ids: Any) -> None:
        """Take note of a batch of pods, by the class of each."""
        known = len(self._large)
        if len(classes) > known:
            self._large = np.append(self._large, self._too_large(classes, known))
        large = self._large[ids]
        if large.any():
            self.count += int(large.sum())
            self.example = self.example or _request(classes, int(ids[large.argmax()]))

    def _too_large(self, classes: PodClasses, first: int) -> Any:
        """Whether no shape hosts a class, for the classes from ``first`` on."""
        rows = classes.rows(first)
        homeless = np.arange(len(rows))
        for shape in self._shapes:
            homeless = homeless[~_hosted(shape, rows[homeless], classes)]
            if not len(homeless):
                break
        large = np.zeros(len(rows), bool)
        large[homeless] = True
        return large


def fitting(workload: Workload, cluster: Cluster, how: str) -> Workload:
    """The workload with no job on more GPUs than the cluster has of one model; the others are counted in a warning.

    ``how`` as in ``HOW``. Jobs that are left out leave no gap in the numbers of the others.
    """
    from fastsim.workload.workload import Held, Workload

    if how not in HOW:
        raise ScenarioError("oversized", repr(how), f"one of {', '.join(HOW)}")
    most, table = _most_gpus(cluster), workload.table()
    large = pc.greater(table[s.NUM_GPU], most)
    count = pc.sum(large).as_py() or 0
    if not count:
        return workload
    subject = f"{count:,} of {len(table):,} jobs on more than the cluster's {most} GPUs of one model"
    if how == REFUSE:
        raise InputError(workload.name, subject, "none", "leave them out: oversized=drop, or make them fit: shrink")
    act = "left out" if how == "drop" else f"run on {most} GPUs"
    warnings.warn(f"{workload.name}: {subject}: {act}", JobOversized, stacklevel=2)
    changed = table.filter(pc.invert(large)) if how == "drop" else _shrunk(table, large, most)
    metadata = {**workload.metadata, "fastsim.oversized": f"{how}:{count}"}
    return Workload(Held(changed), changed.column_names, name=workload.name, rows=len(changed), metadata=metadata)


def _shrunk(table: pa.Table, large: Any, most: int) -> pa.Table:
    place = table.column_names.index(s.NUM_GPU)
    field = table.schema.field(place)
    return table.set_column(place, field, pc.if_else(large, pa.scalar(most, field.type), table[s.NUM_GPU]))


def _most_gpus(cluster: Cluster) -> int:
    """GPUs of the model that the cluster has most of."""
    counts: Counter[str | None] = Counter()
    for node in cluster.offered.select(["num_gpu", "gpu_model"]).to_pylist():
        counts[node["gpu_model"]] += node["num_gpu"]
    return max(counts.values(), default=0)


_known: WeakKeyDictionary[Cluster, list[Shape]] = WeakKeyDictionary()
"""Shapes of clusters that still exist."""


def _shapes(cluster: Cluster) -> list[Shape]:
    """Distinct empty nodes, those that host most first."""
    shapes = _known.get(cluster)
    if shapes is None:
        shapes = _known[cluster] = _found_shapes(cluster)
    return shapes


def _found_shapes(cluster: Cluster) -> list[Shape]:
    names = ["cpu_milli", "memory_mib", "num_gpu", "gpu_model"]
    nodes = cluster.offered
    further = nodes["extra_resources"]
    if further.null_count == len(further):
        distinct = nodes.group_by(names, use_threads=False).aggregate([])
        shapes = [Shape(*row.values()) for row in distinct.select(names).to_pylist()]
    else:
        columns = [nodes[name].to_pylist() for name in names]
        amounts = [tuple(row or ()) for row in further.to_pylist()]
        shapes = [Shape(*shape) for shape in dict.fromkeys(zip(*columns, amounts, strict=True))]
    return sorted(shapes, key=lambda shape: (shape.num_gpu, shape.cpu_milli, shape.memory_mib), reverse=True)


def _hosted(shape: Shape, rows: Any, classes: PodClasses) -> Any:
    accepting = np.array([not names or shape.model in names for names in classes.model_lists])
    there = dict(shape.extra)
    enough = np.array([
        all(amount <= there.get(name, 0) for name, amount in conditions.extra_resources)
        for conditions in classes.conditions
    ])  # fmt: skip
    # Only single-GPU pods share a device, so the devices of an empty node just have to be enough.
    devices = (rows["num_gpu"] <= shape.num_gpu) & accepting[rows["models"]]
    fits = (rows["cpu_milli"] <= shape.cpu_milli) & (rows["memory_mib"] <= shape.memory_mib)
    return fits & enough[rows["models"]] & (devices | (rows["num_gpu"] == 0))


def _request(classes: PodClasses, k: int) -> str:
    row = classes.row(k)
    words = [f"{row['cpu_milli']} milli-CPU", f"{row['memory_mib']} MiB"]
    if row["num_gpu"]:
        words.append(f"{row['num_gpu']} x {row['gpu_milli']} milli-GPU")
    if models := classes.model_lists[row["models"]]:
        words.append(f"model {' or '.join(models)}")
    words += [amount_text(name, amount) for name, amount in classes.conditions[row["models"]].extra_resources]
    return ", ".join(words)
