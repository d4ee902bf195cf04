"""What may interrupt or follow a run of the reference engine: descheduling, inflation, another target workload.

The deschedule policies are spelled from their published description (Fragmentation Gradient Descent,
USENIX ATC 2023), not from the policies the compiled engine is given. Units: milli-CPU and milli-GPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from fastsim.engine.online.plan import PodRequest
from fastsim.workload.typical_pods import TypicalPods
from tests.reference.online.frag import Fragmentation
from tests.reference.online.nodes import WHOLE, Node, demand, demand_with_instances, given_back, taken
from tests.reference.online.tables import Outcome, stage_row

if TYPE_CHECKING:
    from tests.reference.online.engine import ReferenceEngine

STARVED_CPU = 2000
"""A node with less milli-CPU left than this is out of CPU for ``cos_sim``."""
SPARE_GPU = 500
"""... and it has a GPU to give if one device has more milli-GPU left than this."""

Step = tuple[str, float, float | None]
"""Deschedule policy, share of the running pods it may evict, time in seconds (None: after the run)."""


class Stages(NamedTuple):
    """All that was asked for besides placing the workload; ``inflation`` is (ratio, seed)."""

    deschedule: Sequence[Step] = ()
    inflation: tuple[float, int] | None = None
    retarget: TypicalPods | None = None

    @property
    def instants(self) -> list[float]:
        """Seconds at which there is something to deschedule."""
        return sorted({at_s for _, _, at_s in self.deschedule if at_s is not None})

    def due(self, at_s: float | None) -> list[Step]:
        """The deschedule steps of one instant, or those after the run (None)."""
        return [step for step in self.deschedule if step[2] == at_s]


class Host(NamedTuple):
    """A node with at least one pod, and its pods in the order of their arrival."""

    position: int
    name: str
    node: Node
    pods: tuple[Outcome, ...]

    def without(self, pod: Outcome) -> Host:
        """The same node when one of its pods has gone."""
        rest = tuple(other for other in self.pods if other is not pod)
        return self._replace(node=given_back(self.node, pod.request, pod.devices, pod.group), pods=rest)


def hosts(engine: ReferenceEngine) -> list[Host]:
    """All nodes that have pods, in position order."""
    found = []
    for position, node in enumerate(engine.nodes):
        pods = sorted((pod for pod in engine.running.values() if pod.node == position), key=lambda pod: pod.sequence)
        if node is not None and pods:
            found.append(Host(position, engine.names[position], node, tuple(pods)))
    return found


def cos_sim(running: Sequence[Host], frag: Fragmentation) -> list[Outcome]:
    """From each node out of CPU that has a GPU to give: the pod that points elsewhere most.

    Nodes with the most free milli-GPU come first, then by name.
    """
    starved = [
        host for host in running
        if host.node.cpu_free < STARVED_CPU and max(host.node.gpu_free, default=0) > SPARE_GPU
    ]  # fmt: skip
    starved.sort(key=lambda host: (-host.node.gpu_total, host.name))
    return [min(host.pods, key=lambda pod: likeness(host.node, pod.request)) for host in starved]


def likeness(node: Node, pod: PodRequest) -> Fraction:
    """Squared cosine of the angle between (free + pod) and pod in the (CPU, GPU) plane.

    No component is negative, so squares are in the order of the cosines, and they are exact. A pod
    that asks for neither has no angle and counts as alike.
    """
    want = (pod.cpu_milli, demand(pod))
    have = (node.cpu_free + want[0], node.gpu_total + want[1])
    lengths = (have[0] ** 2 + have[1] ** 2) * (want[0] ** 2 + want[1] ** 2)
    return Fraction((have[0] * want[0] + have[1] * want[1]) ** 2, lengths) if lengths else Fraction(1)


def frag_one_pod(running: Sequence[Host], frag: Fragmentation) -> list[Outcome]:
    """From each node, most fragmented first: the pod whose leaving saves most whole milli-GPU of fragmentation."""
    falling = sorted(running, key=lambda host: -frag.fragment(host.node))
    return [pod for pod in (burden(host, frag) for host in falling) if pod is not None]


def frag_multi_pod(running: Sequence[Host], frag: Fragmentation) -> list[Outcome]:
    """The same pod by pod: after each one the node that is most fragmented then comes next."""
    left, chosen = {host.position: host for host in running}, []
    while left:
        host = max(left.values(), key=lambda host: frag.fragment(host.node))
        pod = burden(host, frag)
        if pod is None:
            del left[host.position]
        else:
            chosen.append(pod)
            left[host.position] = host.without(pod)
    return chosen


def burden(host: Host, frag: Fragmentation) -> Outcome | None:
    """The pod without which a node is least fragmented, the earliest of equals; None if nothing is saved."""
    before = frag.fragment(host.node)
    saved = [math.trunc(before - frag.fragment(host.without(pod).node)) for pod in host.pods]
    most = max(saved, default=0)
    return host.pods[saved.index(most)] if most > 0 else None


POLICIES: dict[str, Callable[[Sequence[Host], Fragmentation], list[Outcome]]] = {
    "cos_sim": cos_sim, "frag_one_pod": frag_one_pod, "frag_multi_pod": frag_multi_pod,
}  # fmt: skip
"""Every pod each policy would like to evict, in its order."""


def deschedule(engine: ReferenceEngine, policy: str, ratio: float) -> None:
    """Evict up to ``ratio`` of the running pods, then offer each a place again, in the same order."""
    victims = POLICIES[policy](hosts(engine), engine.frag)[: math.ceil(ratio * len(engine.running))]
    for pod in victims:
        engine.release(pod, engine.now, "evicted")
    note(engine, "post_eviction")
    for pod in victims:
        choice = engine.select.choose(engine.nodes, pod.request)
        if choice.position is None:
            engine.tally.lost += 1
            worked_s = max(0.0, (engine.now - pod.began_s) - pod.restart_s)
            pod.lost_work_s += worked_s - engine.rules.kept_s(worked_s)
        else:
            pod.earlier = (*pod.earlier, replace(pod, earlier=()))
            engine.settle(pod, choice, engine.now)
    note(engine, "post_deschedule")


def inflate(engine: ReferenceEngine, ratio: float, seed: int) -> None:
    """Place clones of random pods of the workload, note the state, take them away again.

    It stops before the first clone with which the workload and its clones would ask for more CPU or
    GPU than the nodes that are present have. Clones count as nobody's pods.
    """
    import numpy as np

    asked = [pod.request for pod in engine.pods]
    clones = max(math.ceil(len(asked) * ratio) - len(asked), 0)
    drawn = np.random.Generator(np.random.PCG64DXSM(seed)).integers(0, max(len(asked), 1), clones)
    before = list(engine.nodes)
    for request in affordable([asked[index] for index in drawn], asked, before):
        choice = engine.select.choose(engine.nodes, request)
        node = None if choice.position is None else engine.nodes[choice.position]
        if choice.position is not None and node is not None:
            engine.nodes[choice.position] = taken(node, request, choice.devices)
    note(engine, "inflation")
    engine.nodes = before


def affordable(
    clones: Sequence[PodRequest], asked: Sequence[PodRequest], nodes: Sequence[Node | None]
) -> list[PodRequest]:
    """The first clones, as many as the cluster could hold by its sums together with all that was asked before."""
    present = [node.shape for node in nodes if node is not None]
    cpu = sum(shape.cpu_milli for shape in present) - sum(request.cpu_milli for request in asked)
    gpu = sum((shape.num_gpu + shape.mig_gpus) * WHOLE for shape in present) - sum(map(demand_with_instances, asked))
    for count, request in enumerate(clones):
        cpu, gpu = cpu - request.cpu_milli, gpu - demand_with_instances(request)
        if cpu < 0 or gpu < 0:
            return list(clones[:count])
    return list(clones)


def closing_stages(engine: ReferenceEngine, stages: Stages) -> None:
    """Inflation, then the other target workload, then the deschedule steps without a time."""
    last = stages.due(None)
    if stages.inflation is None and stages.retarget is None and not last:
        return
    note(engine, "schedule")
    if stages.inflation is not None:
        inflate(engine, *stages.inflation)
    if stages.retarget is not None:
        engine.frag = engine.select.frag = Fragmentation(stages.retarget)
        note(engine, "retarget")
    for policy, ratio, _ in last:
        deschedule(engine, policy, ratio)
        engine.note_deschedule()


def note(engine: ReferenceEngine, stage: str) -> None:
    """Remember the state of now under a name."""
    row: dict[str, Any] = engine.state_row("end", None)
    engine.run.stage_rows.append(stage_row(stage, row))
