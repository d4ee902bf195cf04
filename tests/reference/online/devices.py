"""Which devices of the chosen node a pod gets, and the counter-based random numbers."""

from __future__ import annotations

from fastsim.engine.online.plan import OnlinePlan, PodRequest
from tests.reference.online.dot import best_group
from tests.reference.online.frag import Fragmentation
from tests.reference.online.nodes import Node, fitting_devices, shares
from tests.reference.online.scores import device_choice, fgd_after, pwr_after

SCORER_STREAM, DEVICE_STREAM = 1, 2
_MASK = (1 << 64) - 1


def random_word(seed: int, stream: int, counter: int) -> int:
    """64 random bits that depend on nothing but seed, stream and counter."""
    word = (seed * 0x9E3779B97F4A7C15 + stream * 0xBF58476D1CE4E5B9 + counter * 0x94D049BB133111EB) & _MASK
    for _ in range(2):
        word ^= word >> 30
        word = word * 0xBF58476D1CE4E5B9 & _MASK
        word ^= word >> 27
        word = word * 0x94D049BB133111EB & _MASK
        word ^= word >> 31
    return word


def bounded(seed: int, stream: int, counter: int, bound: int) -> int:
    """A random number in 0..bound-1."""
    return ((random_word(seed, stream, counter) >> 32) * bound) >> 32


def devices(
    node: Node, pod: PodRequest, plan: OnlinePlan, frag: Fragmentation, seed: int, attempt: int
) -> tuple[int, ...]:
    """Device indices, ascending, that the pod gets on this node; ``attempt`` counts random draws."""
    if pod.num_gpu == 0:
        return ()
    if not shares(pod):
        return tuple(node.idle_devices[: pod.num_gpu])
    fitting = fitting_devices(node, pod)
    if plan.gpu_pick == "random":
        return (fitting[bounded(seed, DEVICE_STREAM, attempt, len(fitting))],)
    if plan.gpu_pick == "worst":
        return (max(fitting, key=lambda index: (node.gpu_free[index], -index)),)
    if plan.gpu_pick == "fgd":
        return device_choice(node, pod, fgd_after(frag))[1]
    if plan.gpu_pick == "pwr":
        return device_choice(node, pod, pwr_after)[1]
    if plan.gpu_pick == "dot_product" and plan.gpu_dim != "merge":
        return _dot_product(node, pod, plan)
    # A merged dot product names no device, so it picks like best.
    return (min(fitting, key=lambda index: (node.gpu_free[index], index)),)


def _dot_product(node: Node, pod: PodRequest, plan: OnlinePlan) -> tuple[int, ...]:
    best = best_group(node, pod, plan.gpu_dim, plan.gpu_norm)
    assert best is not None, "a node that can host the pod has a group"
    return best[1]
