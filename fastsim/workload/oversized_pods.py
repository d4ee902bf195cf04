"""Pods that no node of a cluster could host even if it were empty, and jobs with more GPUs than a cluster has.

Pods are counted while the workload streams past; jobs are left out, or made smaller, before it runs.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fastsim.errors import InputError, ScenarioError, suggestion
from fastsim.foundation.columns.content_equality import ValueByObject
from fastsim.hardware.eligible_nodes import EligibleNodes
from fastsim.hardware.node_constraints import BESIDE, domains, holds, node_labels, unstated
from fastsim.workload import schema as s

if TYPE_CHECKING:
    from fastsim.cluster.cluster import Cluster
    from fastsim.workload.pod_classes import PodClasses
    from fastsim.workload.pod_rows import PodRows

REFUSE = "refuse"
HOW = ("drop", "shrink", REFUSE)
"""Treatments of jobs with more GPUs than the cluster has of one model: left out, made smaller, an error."""


def smaller_jobs(how: str) -> str:
    """Ways to treat such jobs in these ways, for errors."""
    return f"--oversized {how} of fastsim run, oversized=drop in a workload's text, Workload.fitting(cluster) in Python"


class JobOversized(UserWarning):
    """Some jobs of a workload need more GPUs than the cluster has, and were left out or made smaller."""


MOST_NAMES, MOST_MODELS = 5, 20
"""GPU models that a text lists: those asked for, and those of a cluster."""
TOO_LARGE, NO_MATCH, NO_GPU_MODEL = "too_large", "no_match", "no_gpu_model"
OBSTACLES = {
    TOO_LARGE: "no node is large enough",
    "no_gpu": "no node has a GPU",
    NO_GPU_MODEL: "no node has a GPU of the models asked for",
    "no_gpu_memory": "no GPU has the memory asked for",
    "no_extra": "no node has enough of a further resource",
    NO_MATCH: "no node that is large enough has the labels, taints and name asked for",
}
"""Reasons why no node hosts a pod even if it is empty, as in ``engine.tables.REASONS``, in words."""
LACKS = (NO_GPU_MODEL, "no_gpu", "no_gpu_memory", TOO_LARGE, TOO_LARGE, "no_extra", "")
"""What a pod lacks on an empty node, by the checks that the node passes: models, number and memory of GPUs, CPUs,
memory, further resources."""


class Shape(NamedTuple):
    """An empty node: milli-CPU, MiB, GPUs, their model and memory, amounts of further resources."""

    cpu_milli: int
    memory_mib: int
    num_gpu: int
    model: str | None
    gpu_memory_mib: int | None = None
    extra: tuple[tuple[str, int], ...] = ()


class _Labelled(NamedTuple):
    """Shapes that nodes have, the place of each node's shape among them, labels of the nodes, who may use them."""

    shapes: list[Shape]
    places: Any
    labels: list[dict[str, str]]
    eligible: EligibleNodes


@dataclass
class Kept:
    """Pods that one obstacle keeps off every node: their number, and the first request."""

    count: int = 0
    example: str = ""
    models: dict[str, None] = field(default_factory=dict)
    """GPU models asked for, in order of appearance."""
    causes: Counter[str] = field(default_factory=Counter)
    """Numbers of nodes that are large enough for the first pod, by the taint, label or name that keeps it away."""


class Oversized:
    """Counts the pods that no empty node of a cluster hosts: ``kept`` has them by the obstacle."""

    def __init__(self, cluster: Cluster) -> None:
        self.kept: dict[str, Kept] = {}
        self.models = sorted({shape.model for shape in _shapes(cluster) if shape.model and shape.num_gpu})
        self._cluster, self._shapes = cluster, _shapes(cluster)
        self._reasons = np.zeros(0, np.int64)

    @property
    def count(self) -> int:
        """Pods so far."""
        return sum(kept.count for kept in self.kept.values())

    def add(self, classes: PodClasses, ids: Any) -> None:
        """Take note of a batch of pods, by the class of each."""
        known = len(self._reasons)
        if len(classes) > known:
            self._reasons = np.append(self._reasons, self._obstacles(classes, known))
        reasons = self._reasons[ids]
        if not reasons.any():
            return
        for number, reason in enumerate(OBSTACLES, start=1):
            rows = np.flatnonzero(reasons == number)
            if len(rows):
                self._keep(reason, classes, ids[rows])

    def _keep(self, reason: str, classes: PodClasses, ids: Any) -> None:
        kept = self.kept.setdefault(reason, Kept())
        kept.count += len(ids)
        kept.example = kept.example or _request(classes, int(ids[0]))
        if reason == NO_MATCH and not kept.causes:
            kept.causes = self._causes(classes, int(ids[0]))
        if reason == NO_GPU_MODEL:
            for k in np.unique(ids).tolist():
                kept.models |= dict.fromkeys(classes.model_lists[classes.row(k)["models"]])

    def _causes(self, classes: PodClasses, k: int) -> Counter[str]:
        """Numbers of nodes by what keeps the pods of a class away from them, of the nodes that are large enough."""
        row = classes.rows(k)[:1]
        conditions, nodes = classes.conditions[row["models"][0]], _labelled(self._cluster)
        hosting = [bool(_passed(shape, row, classes)[0] == len(LACKS) - 1) for shape in nodes.shapes]
        causes: Counter[str] = Counter()
        for place, labels in zip(nodes.places.tolist(), nodes.labels, strict=True):
            if hosting[place]:
                causes.update({_cause(one.key) for one in conditions.constraints if not holds(one, labels)})
                causes.update(["name"] if conditions.pinned_node not in (None, labels["name"]) else [])
        return causes

    def _obstacles(self, classes: PodClasses, first: int) -> Any:
        """The number of the obstacle (from 1 on) of each class from ``first`` on; 0 if a node hosts it."""
        rows, numbers = classes.rows(first), {reason: k for k, reason in enumerate(OBSTACLES, start=1)}
        passed = np.full(len(rows), -1)
        for shape in self._shapes:
            open_rows = np.flatnonzero(passed < len(LACKS) - 1)
            if not len(open_rows):
                break
            passed[open_rows] = np.maximum(passed[open_rows], _passed(shape, rows[open_rows], classes))
        gpus = any(shape.num_gpu for shape in self._shapes)
        first_lacks = (NO_GPU_MODEL, TOO_LARGE) if gpus else ("no_gpu", "no_gpu")
        lacks = (*first_lacks, *LACKS[2:], TOO_LARGE)  # the last one where there is no node
        found = np.array([numbers.get(reason, 0) for reason in lacks])[passed]
        choosy = [row for row in self._choosy(rows, classes) if not found[row]]
        found[[row for row, admitted in zip(choosy, self._admitted(rows[choosy], classes), strict=True)
               if not admitted]] = numbers[NO_MATCH]  # fmt: skip
        return found

    def _choosy(self, rows: Any, classes: PodClasses) -> list[int]:
        """Rows of requests that not every node may host, however large it is."""
        choosy = np.array([
            bool(c.constraints or c.spread or c.near or c.pinned_node is not None) for c in classes.conditions
        ])  # fmt: skip
        chosen: list[int] = np.flatnonzero(choosy[rows["models"]]).tolist()
        return chosen

    def _admitted(self, rows: Any, classes: PodClasses) -> list[bool]:
        """Whether a node that is large enough has the labels, taints and name that each request asks for."""
        if not len(rows):
            return []
        nodes = _labelled(self._cluster)
        hosting = np.stack([_passed(shape, rows, classes) == len(LACKS) - 1 for shape in nodes.shapes])
        admitted = []
        for number, row in enumerate(rows):
            conditions = classes.conditions[row["models"]]
            marks = nodes.eligible.marks(conditions) & hosting[nodes.places, number]
            keys = tuple(rule.topology for rule in conditions.spread)
            for rule in conditions.spread:
                marks &= np.array([domain is not None for domain in domains(rule, keys, nodes.labels)], bool)
            for near in conditions.near:
                if near.rule == BESIDE:
                    marks &= np.array([near.topology in labels for labels in nodes.labels], bool)
            admitted.append(bool(marks.any()))
        return admitted


def nearest(model: str, models: Sequence[str]) -> str:
    """The question whether another model is meant: one whose name begins with this one, or is spelled like it."""
    longer = next((name for name in models if name.lower().startswith(model.lower())), None)
    return suggestion(model, models) if longer is None else f"did you mean {longer!r}?"


def _cause(key: str) -> str:
    """What an expression is about, by its key: a taint, a label, or the name of the node."""
    from fastsim.kubernetes.nodes import TAINT

    if key.startswith(TAINT):
        return f"taint {key.removeprefix(TAINT)}"
    return key if key == "name" else f"label {key}"


def obstacle_text(reason: str, kept: Kept, models: Sequence[str]) -> str:
    """Why the pods found no node, with the first request; ``models`` are those of the cluster."""
    text = f"{OBSTACLES[reason]}, for example {kept.example}"
    if kept.causes:
        first = sorted(kept.causes, key=lambda cause: (-kept.causes[cause], cause))[:MOST_NAMES]
        listed = (f"{cause} of {kept.causes[cause]:,} node{'s' * (kept.causes[cause] > 1)}" for cause in first)
        text += f", kept away by {', '.join(listed)}"
    if reason != NO_GPU_MODEL:
        return text
    asked = [*kept.models]
    hint = next(filter(None, (nearest(model, models) for model in asked)), "")
    names = ", ".join(asked[:MOST_NAMES]) + (", …" if len(asked) > MOST_NAMES else "")
    there = ", ".join(models[:MOST_MODELS]) + (", …" if len(models) > MOST_MODELS else "")
    return f"{text}: asked for {names}, the cluster has {there}" + (f"; {hint}" if hint else "")


def fitting(workload: PodRows, cluster: Cluster, how: str) -> PodRows:
    """The workload with no job on more GPUs than the cluster has of one model; the others are counted in a warning.

    ``how`` as in ``HOW``. The ids of the other jobs stay.
    """
    from fastsim.workload.pod_rows import Held, PodRows

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
    return PodRows(Held(changed), changed.column_names, name=workload.name, rows=len(changed), metadata=metadata)


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


_known: ValueByObject[Cluster, list[Shape]] = ValueByObject()
"""Shapes of clusters that still exist."""
_known_labels: ValueByObject[Cluster, _Labelled] = ValueByObject()
"""Shape and labels of every node of clusters that still exist."""


FEW = 500
"""Nodes whose distinct shapes are found sooner than Arrow's groups are loaded."""


def _shapes(cluster: Cluster) -> list[Shape]:
    """Distinct empty nodes, those that host most first."""
    shapes = _known.get(cluster)
    if shapes is None:
        nodes = cluster.offered
        if len(nodes) > FEW and nodes["extra_resources"].null_count == len(nodes):
            # Distinct ones are found faster without a list.
            nodes = nodes.group_by([*SHAPE], use_threads=False).aggregate([])
        shapes = _known[cluster] = sorted(
            dict.fromkeys(_node_shapes(nodes)),
            key=lambda shape: (shape.num_gpu, shape.cpu_milli, shape.memory_mib),
            reverse=True,
        )
    return shapes


SHAPE = ("cpu_milli", "memory_mib", "num_gpu", "gpu_model", "gpu_memory_mib")
"""Node columns of a :class:`Shape`, in the order of its fields."""


def _node_shapes(nodes: pa.Table) -> list[Shape]:
    """The shape of every row of a node table; without a column ``extra_resources`` there are none."""
    columns = [nodes[name].to_pylist() for name in SHAPE]
    extra = nodes["extra_resources"].to_pylist() if "extra_resources" in nodes.column_names else [None] * len(nodes)
    held = [tuple(amounts or ()) for amounts in extra]
    return [Shape(*cells) for cells in zip(*columns, held, strict=True)]


def _labelled(cluster: Cluster) -> _Labelled:
    nodes = _known_labels.get(cluster)
    if nodes is None:
        labels = [node_labels(row) for row in cluster.offered.select(["name", "labels"]).to_pylist()]
        of_nodes = _node_shapes(cluster.offered)
        numbers = {shape: number for number, shape in enumerate(dict.fromkeys(of_nodes))}
        places = np.array([numbers[shape] for shape in of_nodes], np.int64)
        nodes = _known_labels[cluster] = _Labelled(list(numbers), places, labels, EligibleNodes(labels))
    return nodes


def _passed(shape: Shape, rows: Any, classes: PodClasses) -> Any:
    """How many checks of ``LACKS`` an empty node passes for each request."""
    accepting = np.array([not names or shape.model in names for names in classes.model_lists])
    there, memory = dict(shape.extra), shape.gpu_memory_mib
    enough = np.array([
        all(amount <= there.get(name, unstated(name)) for name, amount in conditions.extra_resources)
        for conditions in classes.conditions
    ])  # fmt: skip
    roomy = np.array([memory is None or conditions.gpu_memory_mib <= memory for conditions in classes.conditions])
    wanted, none = rows["models"], rows["num_gpu"] == 0
    # Only single-GPU pods share a device, so the devices of an empty node just have to be enough.
    checks = np.stack([
        accepting[wanted] | none, rows["num_gpu"] <= shape.num_gpu, roomy[wanted] | none,
        rows["cpu_milli"] <= shape.cpu_milli, rows["memory_mib"] <= shape.memory_mib, enough[wanted],
    ])  # fmt: skip
    return np.logical_and.accumulate(checks).sum(axis=0)


def _request(classes: PodClasses, k: int) -> str:
    from fastsim.kubernetes.nodes import amount_text

    row = classes.row(k)
    words = [f"{row['cpu_milli']} milli-CPU", f"{row['memory_mib']} MiB"]
    if row["num_gpu"]:
        words.append(f"{row['num_gpu']} x {row['gpu_milli']} milli-GPU")
    if models := classes.model_lists[row["models"]]:
        words.append(f"model {' or '.join(models)}")
    words += [amount_text(name, amount) for name, amount in classes.conditions[row["models"]].extra_resources]
    return ", ".join(words)
