"""What containers that share GPUs amount to: the cluster at every instant, GPU time and money of each pod.

A GPU is in use while any container runs on it, and each of those has an equal part of it. A node's part of every
quantity follows from how many of its GPUs are in use, as in rounds; CPUs and memory of nodes are not given out.
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
"""What comes first of one instant: pods that are done, pods that come, containers that start or die."""
OF_AREA = {
    "cpu_milli_alloc": "cpu_alloc", "cpu_milli_capacity": "cpu_cap", "gpu_milli_alloc": "gpu_alloc",
    "gpu_milli_capacity": "gpu_cap", "pods_pending": "pending",
}  # fmt: skip
"""Columns of a row that are kept over time under another name."""


class Change(NamedTuple):
    """Something happens to a pod at a second: counts that move, and whether a GPU has one container more or less."""

    t_s: float
    kind: int
    pod: int
    counts: dict[str, int]
    gpu: int = -1
    more: int = 0


class Part(NamedTuple):
    """A container has an equal part of a GPU, that of so many, from one second to another."""

    pod: int
    gpu: int
    start_s: float
    end_s: float
    sharing: int


class Course(NamedTuple):
    """Rows of the timeline, quantities over time as a gauge has them, and the last row within the capacity."""

    rows: Array
    areas: dict[str, float]
    at_capacity: Any


def parts(stays: Sequence[Stay], last_s: float) -> list[Part]:
    """The parts that containers had of GPUs, up to the end of the run."""
    found = []
    by_gpu: dict[int, list[tuple[float, int, int]]] = {}
    for stay in stays:
        ends = min(stay.end_s, last_s)
        if ends > stay.start_s:
            pod = stay.container.pod
            by_gpu.setdefault(stay.container.gpu, []).extend([(stay.start_s, 1, pod), (ends, -1, pod)])
    for gpu, moves in sorted(by_gpu.items()):
        there: dict[int, None] = {}
        since_s = 0.0
        for t_s, more, pod in sorted(moves, key=lambda move: move[:2]):
            if t_s > since_s:
                found += [Part(one, gpu, since_s, t_s, len(there)) for one in there]
            since_s = t_s
            if more > 0:
                there[pod] = None
            else:
                del there[pod]
    return found


def gpu_seconds(held: Iterable[Part]) -> dict[int, float]:
    """GPU seconds of each pod that ran."""
    found: dict[int, float] = {}
    for part in held:
        found[part.pod] = found.get(part.pod, 0.0) + (part.end_s - part.start_s) / part.sharing
    return found


def costs(held: Iterable[Part], gpus: list[tuple[int, int]], tariff: Tariff) -> dict[int, float]:
    """What each pod that ran pays for its parts, $."""
    found: dict[int, float] = {}
    for part in held:
        cost = tariff.cost(gpus[part.gpu][0], part.start_s, part.end_s) / part.sharing
        found[part.pod] = found.get(part.pod, 0.0) + cost
    return found


def changes(lived: Iterable[PodHistory], stays: Sequence[Stay], last_s: float) -> list[Change]:
    """Everything that happens to pods up to the end of the run, in order."""
    found = []
    for one in lived:
        asked = one.asked
        counts = {"pending": 1, "arrived_gpu": asked.gpu_milli, "arrived_cpu": asked.cpu_milli}
        if one.placed is not None and one.placed.gpu < 0:
            counts |= {"pending": 0, "unplaced": 1, "unplaced_gpu": asked.gpu_milli, "unplaced_cpu": asked.cpu_milli}
        found.append(Change(asked.submit_s, ARRIVAL, asked.pod, counts))
    for stay in stays:
        pod, gpu = stay.container.pod, stay.container.gpu
        found.append(Change(stay.start_s, SAMPLE, pod, {"running": 1, "pending": -1}, gpu, 1))
        if stay.end_s <= last_s:
            kind, then = (SAMPLE, "pending") if stay.killed else (DEPARTURE, "finished")
            found.append(Change(stay.end_s, kind, pod, {"running": -1, then: 1}, gpu, -1))
    return sorted(found, key=lambda one: (one.t_s, ORDER[one.kind]))


class Devices:
    """How many containers run on each GPU, and what that makes of the nodes."""

    def __init__(self, cluster: Cluster, typical: TypicalPods, gpus: list[tuple[int, int]]) -> None:
        """With nothing on them; ``gpus`` are node and number of each device."""
        self.totals__nut = totals_by_node(cluster, typical)
        self.node = [node for node, _ in gpus]
        self.running, self.used = [0] * len(gpus), [0] * len(self.totals__nut)

    def empty(self) -> Array:
        """Each of ``TOTALS`` while nothing runs."""
        return sum((of_node[0] for of_node in self.totals__nut), np.zeros(len(TOTALS), np.int64))

    def move(self, gpu: int, more: int) -> Array:
        """One container more or less (-1) on a GPU: what that adds to each of ``TOTALS``."""
        node, before = self.node[gpu], self.running[gpu]
        self.running[gpu] += more
        old = self.used[node]
        self.used[node] += (self.running[gpu] > 0) - (before > 0)
        return self.totals__nut[node][self.used[node]] - self.totals__nut[node][old]


def course(devices: Devices, happened: list[Change], last_s: float) -> Course:
    """The cluster after each change and at the end."""
    rows = np.zeros(len(happened) + 1, ROW)
    rows["seq"] = np.arange(len(rows))
    totals = devices.empty()
    counts = dict.fromkeys(COUNTS, 0)
    capacity, within = int(totals[TOTALS.index("gpu_cap")]), None
    for row, one in zip(rows, [*happened, Change(last_s, END, -1, {})], strict=True):
        for name, more in one.counts.items():
            counts[name] += more
        if one.more:
            totals = totals + devices.move(one.gpu, one.more)
        row["t"], row["kind"], row["pod"] = one.t_s, one.kind, one.pod
        for name, amount in (*counts.items(), *zip(TOTALS, totals.tolist(), strict=True)):
            row[name] = amount
        if one.kind == ARRIVAL and counts["arrived_gpu"] <= capacity:
            within = row
    return Course(rows, areas(rows), (rows[0] if within is None else within).copy())


def areas(rows: Array) -> dict[str, float]:
    """Quantities times seconds between the first row and the last."""
    spans = np.diff(rows["t"])
    before = rows[:-1]
    found = {name: float(np.dot(spans, before[column])) for name, column in OF_AREA.items()}
    wasted = sum(before[name] for name in FRAG_COLUMNS if name != "q3_satisfied")
    watts = before["cpu_mw"] + before["gpu_mw"]
    found |= {"frag": float(np.dot(spans, wasted)), "power_mw": float(np.dot(spans, watts))}
    return {name: found[name] for name in AREAS} | {"seconds": float(spans.sum())}
