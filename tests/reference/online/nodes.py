"""Nodes of the reference engine: plain values, the feasibility filter, allocation and release.

The reference engine is the slow, readable form of the compiled one. Its nodes are immutable;
placing a pod makes a new node. Units are milli-CPU, MiB, milli-GPU and milliwatts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fastsim.engine.online.plan import PodRequest
from fastsim.hardware.mig import gpu_milli
from fastsim.hardware.node_constraints import Conditions, NearRule, SpreadRule, eligible

WHOLE = 1000
"""Milli-GPU of an unused device."""

STAGES = (
    "no_match", "no_gpu_model", "no_gpu", "no_cpu", "no_memory", "no_extra", "no_pod_slot", "spread", "pod_limit",
    "pod_affinity",
)  # fmt: skip
"""Reasons why a node cannot host a pod, in the order of the checks."""


class Shape(NamedTuple):
    """Constant properties of a node; ``None`` in ``max_pods`` and ``gpu_memory_mib`` (of a device) means any."""

    cpu_milli: int
    memory_mib: int
    num_gpu: int
    gpu_model: str | None
    max_pods: int | None
    gpu_idle_mw: int
    gpu_peak_mw: int
    cpu_idle_mw: int
    cpu_peak_mw: int
    cpu_cores_per_socket: int
    labels: tuple[tuple[str, str], ...] = ()
    gpu_memory_mib: int | None = None
    extra: tuple[tuple[str, int], ...] = ()
    mig_gpus: int = 0
    """Partitioned GPUs, besides the ``num_gpu`` whole ones."""


class Node(NamedTuple):
    """The state of a node; ``tags`` counts its GPU pods by the tag of :func:`tag`, ``groups`` its pods by group.

    ``gpu_memory_used`` is MiB by device, ``extra_used`` amounts by name; unused ones are in neither.
    """

    shape: Shape
    cpu_free: int
    memory_free: int
    gpu_free: tuple[int, ...]
    tags: tuple[tuple[str, int], ...] = ()
    pods: int = 0
    gpu_memory_used: tuple[tuple[int, int], ...] = ()
    extra_used: tuple[tuple[str, int], ...] = ()
    groups: tuple[tuple[str, int], ...] = ()
    sets: tuple[tuple[str, int], ...] = ()
    """Its pods by the sets that rules of spread count."""
    preference_sets: tuple[tuple[str, int], ...] = ()
    """Its pods by the sets that preferences count."""

    @property
    def gpu_total(self) -> int:
        """Free milli-GPU of all devices together."""
        return sum(self.gpu_free)

    @property
    def mig_used(self) -> int:
        """Milli-GPU of the instances in use."""
        return gpu_milli(self.extra_used)

    @property
    def idle_devices(self) -> list[int]:
        """Indices of the unused devices."""
        return [index for index, free in enumerate(self.gpu_free) if free == WHOLE]


Nodes = Sequence[Node | None]
"""Nodes by position; None where one is away."""


def empty_node(shape: Shape) -> Node:
    """A node without pods."""
    return Node(shape, shape.cpu_milli, shape.memory_mib, (WHOLE,) * shape.num_gpu)


def asks_nothing(pod: PodRequest) -> bool:
    """Whether the pod has no request at all."""
    return pod.cpu_milli == pod.memory_mib == pod.gpu_milli == 0


def shares(pod: PodRequest) -> bool:
    """Whether the pod takes a part of one device."""
    return pod.num_gpu == 1 and pod.gpu_milli < WHOLE


def demand(pod: PodRequest) -> int:
    """Milli-GPU the pod takes on all its devices."""
    return pod.num_gpu * pod.gpu_milli


def demand_with_instances(pod: PodRequest) -> int:
    """The same with its share of partitioned GPUs, on which scores do not depend."""
    return demand(pod) + gpu_milli(pod.conditions.extra_resources)


def tag(pod: PodRequest) -> str:
    """Class of a GPU pod: ``share-gpu`` or ``<n>-gpu``."""
    return "share-gpu" if shares(pod) else f"{pod.num_gpu}-gpu"


def accepts(models: tuple[str, ...], model: str | None) -> bool:
    """Whether a list of GPU models allows a node's model; an empty list allows every node."""
    return not models or model in models


def units(gpu_free: Iterable[int], milli: int) -> int:
    """How many requests of ``milli`` the devices can serve, several on one device allowed."""
    return sum(free // milli for free in gpu_free)


def stage(node: Node, pod: PodRequest, near: Nodes | None = None) -> int:
    """Index in :data:`STAGES` of the first check that fails, ``len(STAGES)`` if the pod fits.

    ``near`` are all nodes, for rules of spread; without them only the label of the node matters.
    """
    shape, asked, node = node.shape, pod.conditions, seen(node, pod)
    checks = (
        eligible(asked, dict(shape.labels)) if asked.constraints or asked.pinned_node is not None else True,
        pod.gpu_milli == 0 or accepts(pod.gpu_models, shape.gpu_model),
        pod.gpu_milli == 0 or units(node.gpu_free, pod.gpu_milli) >= pod.num_gpu,
        pod.cpu_milli <= node.cpu_free,
        pod.memory_mib <= node.memory_free,
        all(amount <= extra_free(node, name) for name, amount in asked.extra_resources),
        shape.max_pods is None or node.pods + 1 <= shape.max_pods,
        all(in_balance(rule, node, pod, near) for rule in asked.spread)
        and (near is not None or all(rule.topology in dict(shape.labels) for rule in _besides(pod))),
        asked.max_per_node is None or dict(node.groups).get(asked.group or "", 0) + 1 <= asked.max_per_node,
        near is None or well_placed(node, pod, near),
    )
    return checks.index(False) if False in checks else len(STAGES)


def fits(node: Node, pod: PodRequest, near: Nodes | None = None) -> bool:
    """Whether the node can host the pod; ``near`` as in :func:`stage`."""
    return stage(node, pod, near) == len(STAGES)


def in_balance(rule: SpreadRule, node: Node, pod: PodRequest, near: Nodes | None) -> bool:
    """Whether a rule of spread lets the pod onto a node."""
    here = _domain(rule, node, pod)
    if here is None or near is None:
        return here is not None
    counts: dict[str, int] = {}
    for other in near:
        place = None if other is None else _domain(rule, other, pod)
        if other is not None and place is not None:
            counts[place] = counts.get(place, 0) + dict(other.sets).get(rule.pods, 0)
    least = min(counts.values()) if len(counts) >= rule.min_domains else 0
    return counts[here] + (rule.pods in pod.conditions.spread_sets) - least <= rule.max_skew


def _besides(pod: PodRequest) -> list[NearRule]:
    return [rule for rule in pod.conditions.near if rule.rule == "beside"]


def well_placed(node: Node, pod: PodRequest, near: Nodes) -> bool:
    """Whether the rules about pods near let the pod onto a node."""
    labels, asked = dict(node.shape.labels), pod.conditions
    counts = {rule: neighbours(rule, near) for rule in asked.near}
    apart = all(
        counts[rule].get(labels.get(rule.topology), 0) == 0 for rule in asked.near if rule.rule != "beside"
    )  # fmt: skip
    besides = _besides(pod)
    first = all(rule.pods in asked.spread_sets and not any(counts[rule].values()) for rule in besides)
    return (
        apart and all(rule.topology in labels for rule in besides)
        and (first or all(counts[rule].get(labels[rule.topology], 0) > 0 for rule in besides))
    )  # fmt: skip


def neighbours(rule: NearRule, near: Nodes) -> dict[str | None, int]:
    """Pods that a rule counts, by domain."""
    counts: dict[str | None, int] = {}
    for node in near:
        place = None if node is None else dict(node.shape.labels).get(rule.topology)
        if node is not None and place is not None:
            counts[place] = counts.get(place, 0) + dict(node.sets).get(rule.pods, 0)
    return counts


def _domain(rule: SpreadRule, node: Node, pod: PodRequest) -> str | None:
    labels = dict(node.shape.labels)
    if any(each.topology not in labels for each in pod.conditions.spread):
        return None
    return labels[rule.topology] if eligible(Conditions(constraints=rule.counted), labels) else None


def near_with(nodes: Nodes, position: int, node: Node) -> list[Node | None]:
    """All nodes, one of them as it is imagined."""
    return [node if place == position else other for place, other in enumerate(nodes)]


def seen(node: Node, pod: PodRequest) -> Node:
    """The node with devices shown as full that have too little memory left for the pod."""
    memory, want = node.shape.gpu_memory_mib, pod.conditions.gpu_memory_mib
    if memory is None or want == 0:
        return node
    used = dict(node.gpu_memory_used)
    room = [memory - used.get(index, 0) >= want for index in range(len(node.gpu_free))]
    return node._replace(gpu_free=tuple(free if fits else 0 for free, fits in zip(node.gpu_free, room, strict=True)))


def extra_free(node: Node, name: str) -> int:
    """Amount left of an extra resource; 0 on a node without it."""
    return dict(node.shape.extra).get(name, 0) - dict(node.extra_used).get(name, 0)


def fitting_devices(node: Node, pod: PodRequest) -> list[int]:
    """Indices of the devices with room for one device's share of the pod."""
    return [index for index, free in enumerate(node.gpu_free) if free >= pod.gpu_milli]


def sub_devices(node: Node, pod: PodRequest) -> tuple[int, ...]:
    """Devices served by rising free milli-GPU, lower index first, until the pod is satisfied."""
    rising = sorted(fitting_devices(node, pod), key=lambda index: node.gpu_free[index])
    return tuple(sorted(rising[: pod.num_gpu]))


def taken(node: Node, pod: PodRequest, devices: tuple[int, ...], group: str | None = None) -> Node:
    """The node after the pod, one of a group, was placed on these devices."""
    return _moved(node, pod, devices, -1, group)


def given_back(node: Node, pod: PodRequest, devices: tuple[int, ...], group: str | None = None) -> Node:
    """The node after the pod on these devices has left."""
    return _moved(node, pod, devices, +1, group)


def _moved(node: Node, pod: PodRequest, devices: tuple[int, ...], sign: int, group: str | None) -> Node:
    gpu_free = list(node.gpu_free)
    for index in devices:
        gpu_free[index] += sign * pod.gpu_milli
    asked, gpu_memory = pod.conditions, pod.conditions.gpu_memory_mib
    return node._replace(
        cpu_free=node.cpu_free + sign * pod.cpu_milli,
        memory_free=node.memory_free + sign * pod.memory_mib,
        gpu_free=tuple(gpu_free),
        tags=_counted(node.tags, [(tag(pod), -sign)] if pod.num_gpu > 0 else []),
        pods=node.pods - sign,
        gpu_memory_used=_counted(node.gpu_memory_used, [(index, -sign * gpu_memory) for index in devices]),
        extra_used=_counted(node.extra_used, [(name, -sign * amount) for name, amount in asked.extra_resources]),
        groups=_counted(node.groups, [] if group is None else [(group, -sign)]),
        sets=_counted(node.sets, [(name, -sign) for name in asked.spread_sets]),
        preference_sets=_counted(node.preference_sets, [(name, -sign) for name in asked.preference_sets]),
    )


def _counted(counts: tuple[tuple[Any, int], ...], added: Iterable[tuple[Any, int]]) -> tuple[tuple[Any, int], ...]:
    """The counts with some added; those of zero are left out."""
    sums = dict(counts)
    for key, count in added:
        sums[key] = sums.get(key, 0) + count
    return tuple(sorted((key, count) for key, count in sums.items() if count != 0))
