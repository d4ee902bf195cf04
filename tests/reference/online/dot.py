"""The dot-product score: how well a pod's request lines up with what a node has left.

``dim`` says how a node's GPUs become dimensions, ``norm`` what a component is divided by. Every
way to serve the pod is one group: a node vector, a pod vector and the devices that would be used.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from fastsim.engine.online.plan import PodRequest
from tests.reference.online.nodes import WHOLE, Node, demand

MOST_CPU = 128_000
"""Milli-CPU of the largest node the published weights were made for."""
MOST_GPU = 8_000
"""Milli-GPU of that node."""


class Group(NamedTuple):
    """One way to serve the pod; vectors start with milli-CPU, then milli-GPU per dimension."""

    node: tuple[float, ...]
    pod: tuple[float, ...]
    devices: tuple[int, ...]


def best_group(node: Node, pod: PodRequest, dim: str, norm: str) -> tuple[float, tuple[int, ...]] | None:
    """Score and devices of the best group, the first one on ties; ``None`` if there is no group."""
    best: tuple[float, tuple[int, ...]] | None = None
    for group in groups(node, pod, dim):
        score = group_score(group, node, pod, norm)
        if best is None or score > best[0]:
            best = score, group.devices
    return best


def dot_product(node: Node, pod: PodRequest, dim: str, norm: str) -> int:
    """Points: trunc(100 * score of the best group), 0 if there is no group."""
    best = best_group(node, pod, dim, norm)
    return 0 if best is None else int(100 * best[0])


def group_score(group: Group, node: Node, pod: PodRequest, norm: str) -> float:
    """1 - (sum over dimensions of node * pod, both normalised) / dimensions; ``pod``: tanh of a tenth."""
    cpu, gpu = norms(node, pod, norm)
    units = (cpu, *[gpu] * (len(group.node) - 1))
    dot = 0.0
    for have, want, unit in zip(group.node, group.pod, units, strict=True):
        if unit > 0:
            dot += (have / unit) * (want / unit)
    mean = dot / len(group.node)
    return 1 - (math.tanh(mean / 10) if norm == "pod" else mean)


def norms(node: Node, pod: PodRequest, norm: str) -> tuple[int, int]:
    """Divisors of the CPU component and of each GPU component."""
    if norm == "node":
        return node.shape.cpu_milli, node.shape.num_gpu * WHOLE
    return (pod.cpu_milli, demand(pod)) if norm == "pod" else (MOST_CPU, MOST_GPU)


def groups(node: Node, pod: PodRequest, dim: str) -> list[Group]:
    """All groups of a node that has enough CPU left."""
    if node.cpu_free < pod.cpu_milli:
        return []
    if dim == "merge":
        return [Group((node.cpu_free, node.gpu_total), (pod.cpu_milli, demand(pod)), ())]
    return _extended(node, pod) if dim == "extend" else _shared(node, pod, divide=dim == "divide")


def _shared(node: Node, pod: PodRequest, divide: bool) -> list[Group]:
    """One group per used device that fits a small request, then one for all idle devices.

    ``divide`` gives each group only its part of the node's CPU; where nothing is free there are no
    parts, so there is no group.
    """
    want, total = demand(pod), node.gpu_total
    if divide and total == 0:
        return []
    options: list[tuple[int, tuple[int, ...]]] = []
    for index, free in enumerate(node.gpu_free):
        if want <= free < WHOLE:
            options.append((free, (index,)))
    idle = len(node.idle_devices) * WHOLE
    if want <= idle:
        options.append((idle, lowest_idle(node, want)))
    return [
        Group((node.cpu_free * gpu / total if divide else node.cpu_free, gpu), (pod.cpu_milli, want), devices)
        for gpu, devices in options
    ]


def _extended(node: Node, pod: PodRequest) -> list[Group]:
    """Each partly used device is a dimension, all idle devices together are the last one."""
    want = demand(pod)
    dims: list[tuple[int, tuple[int, ...]]] = []
    dims += [(free, (index,)) for index, free in enumerate(node.gpu_free) if 0 < free < WHOLE]
    if node.idle_devices:
        dims.append((len(node.idle_devices) * WHOLE, lowest_idle(node, want)))
    have = (node.cpu_free, *[free for free, _ in dims])
    return [
        Group(have, (pod.cpu_milli, *[want if other == place else 0 for other in range(len(dims))]), devices)
        for place, (free, devices) in enumerate(dims)
        if free >= want
    ]


def lowest_idle(node: Node, want: int) -> tuple[int, ...]:
    """The lowest-index idle devices that together give ``want`` milli-GPU."""
    return tuple(node.idle_devices[: -(-want // WHOLE)])
