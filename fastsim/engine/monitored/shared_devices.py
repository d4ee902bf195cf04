"""The cluster under containers that share GPUs: its state at every instant, GPU time and cost of each pod.

A GPU is in use while any container runs on it, and each of those has an equal part of it. A node's part of every
quantity follows from the number of its GPUs in use, as in rounds; CPUs and memory of nodes are not allocated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fastsim.cluster.cluster import Cluster
from fastsim.engine.monitored.containers import Stay
from fastsim.engine.monitored.run import PodHistory
from fastsim.engine.rounds.node_metrics import totals_by_node
from fastsim.engine.tables import COUNTS, EVENTS, FRAG_COLUMNS, ROW, TOTALS
from fastsim.workload.typical_pods import TypicalPods
from fastsim_ext.rounds.cluster_metrics import AREAS
from fastsim_ext.state.gpu_prices import Tariff

Array = Any
DEPARTURE, SAMPLE, ARRIVAL, END = (EVENTS.index(name) for name in ("departure", "sample", "arrival", "end"))
ORDER = {DEPARTURE: 0, ARRIVAL: 1, SAMPLE: 2, END: 3}
"""Order of changes at one instant: ends of pods, arrivals, then starts and kills of containers."""
OF_AREA = {
    "cpu_milli_alloc": "cpu_alloc", "cpu_milli_capacity": "cpu_cap", "gpu_milli_alloc": "gpu_alloc",
    "gpu_milli_capacity": "gpu_cap", "pods_pending": "pending",
}  # fmt: skip
"""Columns of a row that are integrated over time, by the name of the integral."""


class CountChange(NamedTuple):
    """A change at a second: counts of pods that change, and one container more or less on a GPU."""

    t_s: float
    kind: int
    pod: int
    counts: dict[str, int]
    gpu: int = -1
    more: int = 0


class GpuPart(NamedTuple):
    """The equal part of a GPU that one of ``sharing`` containers has from one second to another."""

    pod: int
    gpu: int
    start_s: float
    end_s: float
    sharing: int


class ClusterCourse(NamedTuple):
    """Rows of the timeline, integrals over time, and the row at the last arrival within the GPU capacity."""

    rows: Array
    areas: dict[str, float]
    at_capacity: Any


def parts(stays: Sequence[Stay], last_s: float) -> list[GpuPart]:
    """The equal parts of GPUs that containers had, up to the end of the run."""
    held = []
    by_gpu: dict[int, list[tuple[float, int, int]]] = {}
    for stay in stays:
        end_s = min(stay.end_s, last_s)
        if end_s > stay.start_s:
            pod = stay.container.pod
            by_gpu.setdefault(stay.container.gpu, []).extend([(stay.start_s, 1, pod), (end_s, -1, pod)])
    for gpu, moves in sorted(by_gpu.items()):
        pods_on: dict[int, None] = {}
        since_s = 0.0
        for t_s, more, pod in sorted(moves, key=lambda move: move[:2]):
            if t_s > since_s:
                held += [GpuPart(one, gpu, since_s, t_s, len(pods_on)) for one in pods_on]
            since_s = t_s
            if more > 0:
                pods_on[pod] = None
            else:
                del pods_on[pod]
    return held


def gpu_seconds(held: Iterable[GpuPart]) -> dict[int, float]:
    """GPU seconds of each pod that ran."""
    seconds: dict[int, float] = {}
    for part in held:
        seconds[part.pod] = seconds.get(part.pod, 0.0) + (part.end_s - part.start_s) / part.sharing
    return seconds


def costs(held: Iterable[GpuPart], gpus: list[tuple[int, int]], tariff: Tariff) -> dict[int, float]:
    """Cost of each pod that ran, $."""
    cost_of: dict[int, float] = {}
    for part in held:
        cost = tariff.cost(gpus[part.gpu][0], part.start_s, part.end_s) / part.sharing
        cost_of[part.pod] = cost_of.get(part.pod, 0.0) + cost
    return cost_of


def changes(histories: Iterable[PodHistory], stays: Sequence[Stay], last_s: float) -> list[CountChange]:
    """All changes up to the end of the run, in order."""
    listed = []
    for one in histories:
        request = one.request
        counts = {"pending": 1, "arrived_gpu": request.gpu_milli, "arrived_cpu": request.cpu_milli}
        if one.binding is not None and one.binding.gpu < 0:
            counts |= {
                "pending": 0,
                "unplaced": 1,
                "unplaced_gpu": request.gpu_milli,
                "unplaced_cpu": request.cpu_milli,
            }
        listed.append(CountChange(request.submit_s, ARRIVAL, request.pod, counts))
    for stay in stays:
        pod, gpu = stay.container.pod, stay.container.gpu
        listed.append(
            CountChange(t_s=stay.start_s, kind=SAMPLE, pod=pod, counts={"running": 1, "pending": -1}, gpu=gpu, more=1)
        )
        if stay.end_s <= last_s:
            kind, then = (SAMPLE, "pending") if stay.killed else (DEPARTURE, "finished")
            listed.append(
                CountChange(t_s=stay.end_s, kind=kind, pod=pod, counts={"running": -1, then: 1}, gpu=gpu, more=-1)
            )
    return sorted(listed, key=lambda one: (one.t_s, ORDER[one.kind]))


class SharedDevices:
    """Containers on each GPU, and the totals of the nodes that follow from them."""

    def __init__(self, cluster: Cluster, typical: TypicalPods, gpus: list[tuple[int, int]]) -> None:
        """With nothing on them; ``gpus`` are node and number of each device."""
        self.totals__nut = totals_by_node(cluster, typical)
        self.node = [node for node, _ in gpus]
        self.running, self.used = [0] * len(gpus), [0] * len(self.totals__nut)

    def empty(self) -> Array:
        """Each of ``TOTALS`` while nothing runs."""
        return sum((of_node[0] for of_node in self.totals__nut), np.zeros(len(TOTALS), np.int64))

    def move(self, gpu: int, more: int) -> Array:
        """Add (1) or remove (-1) a container on a GPU; the change of each of ``TOTALS``."""
        node, before = self.node[gpu], self.running[gpu]
        self.running[gpu] += more
        old = self.used[node]
        self.used[node] += (self.running[gpu] > 0) - (before > 0)
        return self.totals__nut[node][self.used[node]] - self.totals__nut[node][old]


def course(devices: SharedDevices, changes_in_order: list[CountChange], last_s: float) -> ClusterCourse:
    """The cluster after each change and at the end."""
    rows = np.zeros(len(changes_in_order) + 1, ROW)
    rows["seq"] = np.arange(len(rows))
    totals = devices.empty()
    counts = dict.fromkeys(COUNTS, 0)
    capacity, within = int(totals[TOTALS.index("gpu_cap")]), None
    for row, one in zip(rows, [*changes_in_order, CountChange(last_s, END, -1, {})], strict=True):
        for name, more in one.counts.items():
            counts[name] += more
        if one.more:
            totals = totals + devices.move(one.gpu, one.more)
        row["t"], row["kind"], row["pod"] = one.t_s, one.kind, one.pod
        for name, amount in (*counts.items(), *zip(TOTALS, totals.tolist(), strict=True)):
            row[name] = amount
        if one.kind == ARRIVAL and counts["arrived_gpu"] <= capacity:
            within = row
    return ClusterCourse(rows, areas(rows), (rows[0] if within is None else within).copy())


def areas(rows: Array) -> dict[str, float]:
    """Quantities times seconds between the first row and the last."""
    spans = np.diff(rows["t"])
    before = rows[:-1]
    integrals = {name: float(np.dot(spans, before[column])) for name, column in OF_AREA.items()}
    wasted = sum(before[name] for name in FRAG_COLUMNS if name != "q3_satisfied")
    watts = before["cpu_mw"] + before["gpu_mw"]
    integrals |= {"frag": float(np.dot(spans, wasted)), "power_mw": float(np.dot(spans, watts))}
    return {name: integrals[name] for name in AREAS} | {"seconds": float(spans.sum())}
