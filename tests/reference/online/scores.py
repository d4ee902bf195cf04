"""Raw integer scores of one node for one pod, as the formulas read, and their normalisation.

Scores are computed for nodes that can host the pod only. All are truncated towards zero, so that
ties are exact. Units are milli-CPU, MiB, milli-GPU and milliwatts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from fastsim.engine.online.plan import PodRequest, ScoreTerm
from tests.reference.online.dot import MOST_CPU, MOST_GPU, dot_product
from tests.reference.online.frag import Fragmentation, power
from tests.reference.online.nodes import (
    WHOLE,
    Node,
    asks_nothing,
    demand,
    fitting_devices,
    shares,
    sub_devices,
    tag,
    taken,
)


def fgd(node: Node, pod: PodRequest, frag: Fragmentation) -> int:
    """Points for keeping fragmentation low: trunc(100 / (1 + exp(-(F_before - F_after) / 1000)))."""
    return 100 if asks_nothing(pod) else device_choice(node, pod, fgd_after(frag))[0]


def pwr(node: Node, pod: PodRequest) -> int:
    """Watts saved by placing the pod here, so mostly negative: trunc(P_before - P_after)."""
    return device_choice(node, pod, pwr_after)[0]


def fgd_after(frag: Fragmentation) -> Callable[[Node, Node], int]:
    """The FGD points of a step from one node state to the next."""

    def points(before: Node, after: Node) -> int:
        return int(100 / (1 + math.exp(-(frag.fragment(before) - frag.fragment(after)) / 1000)))

    return points


def pwr_after(before: Node, after: Node) -> int:
    """The PWR points of a step from one node state to the next, in whole watts."""
    return truncated(power(before) - power(after), 1000)


def device_choice(node: Node, pod: PodRequest, points: Callable[[Node, Node], int]) -> tuple[int, tuple[int, ...]]:
    """Points and devices of a pod: the best single device for a sharing pod, the first one on ties.

    Other pods have no choice: they take the devices of ``sub_devices``.
    """
    if not shares(pod):
        devices = sub_devices(node, pod)
        return points(node, taken(node, pod, devices)), devices
    best: tuple[int, tuple[int, ...]] | None = None
    for index in fitting_devices(node, pod):
        score = points(node, taken(node, pod, (index,)))
        if best is None or score > best[0]:
            best = score, (index,)
    assert best is not None, "scores are computed for nodes that can host the pod only"
    return best


def best_fit(node: Node, pod: PodRequest) -> int:
    """Points for little left over: trunc(100 * (1 - (cpu left / 128000 + gpu left / 8000) / 2))."""
    cpu = (node.cpu_free - pod.cpu_milli) / MOST_CPU * 0.5
    gpu = (node.gpu_total - demand(pod)) / MOST_GPU * 0.5
    return int((1 - (cpu + gpu)) * 100)


def gpu_packing(node: Node, pod: PodRequest) -> int:
    """Points for used devices first (50..100), then idle devices of used nodes (33..50), then empty nodes."""
    if pod.gpu_milli <= 0:
        return 0
    idle = len(node.idle_devices)
    if idle == node.shape.num_gpu:
        return max(33 - idle, idle)
    left = [node.gpu_free[index] for index in sub_devices(node, pod)]
    opened = left.count(WHOLE)
    if opened > 0:
        return max(50 - opened, 33)
    return max(100 - sum(free * 100 // 1000 for free in left) // 10, 50)


def gpu_clustering(node: Node, pod: PodRequest) -> int:
    """25 * used share of eight GPUs, plus 75, 50, 25 or 0 by the kinds of GPU pods on the node."""
    if pod.num_gpu == 0:
        return 0
    base = truncated(25 * (MOST_GPU - node.gpu_total), MOST_GPU)
    tags = dict(node.tags)
    if tag(pod) in tags:
        return base + (75 if len(tags) == 1 else 50)
    return base + (0 if tags else 25)


def simon(node: Node, pod: PodRequest) -> int:
    """Largest share of the capacity that would remain of an empty node: round(100 * max req / (cap - req))."""
    if asks_nothing(pod):
        return 100
    cpu = _share(pod.cpu_milli, node.shape.cpu_milli - pod.cpu_milli)
    memory = _share(pod.memory_mib, node.shape.memory_mib - pod.memory_mib)
    return math.floor(100 * max(cpu, memory) + 0.5)


def raw_score(term: ScoreTerm, node: Node, pod: PodRequest, frag: Fragmentation) -> int:
    """The raw score of one deterministic kernel."""
    kernels: dict[str, Callable[[], int]] = {
        "dot_product": lambda: dot_product(node, pod, term.dim, term.norm),
        "gpu_clustering": lambda: gpu_clustering(node, pod),
        "gpu_packing": lambda: gpu_packing(node, pod),
        "best_fit": lambda: best_fit(node, pod),
        "fgd": lambda: fgd(node, pod, frag),
        "pwr": lambda: pwr(node, pod),
        "simon": lambda: simon(node, pod),
    }
    return kernels[term.kernel]()


def normalised(scores: Sequence[int], how: str) -> list[int]:
    """Scores over all feasible nodes: as they are, or scaled to 0..100 in whole numbers.

    Where all are equal, ``min_max_0`` makes them 0 and ``min_max_100`` makes them 100.
    """
    if how == "none":
        return list(scores)
    low, high = min(scores), max(scores)
    if low == high:
        return [0 if how == "min_max_0" else 100] * len(scores)
    return [(score - low) * 100 // (high - low) for score in scores]


def truncated(amount: int, unit: int) -> int:
    """Integer division towards zero."""
    return amount // unit if amount >= 0 else -(-amount // unit)


def _share(request: int, rest: int) -> float:
    """Request over rest; with nothing left over, 0 for no request and 1 for any."""
    if rest == 0:
        return 0.0 if request == 0 else 1.0
    return request / rest
