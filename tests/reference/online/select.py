"""One decision of the reference engine: which node and which devices a pod gets, or why none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

from fastsim.engine.online.plan import PREFERENCE_KERNELS, OnlinePlan, PodRequest, ScoreTerm
from tests.reference.online.devices import SCORER_STREAM, bounded, devices
from tests.reference.online.frag import Fragmentation
from tests.reference.online.nodes import STAGES, Node, fitting_devices, seen, stage
from tests.reference.online.preferences import preference_points
from tests.reference.online.scores import normalised, raw_score

LANES = 8
"""Device rows of user-written scorers are padded to a multiple of this."""


@dataclass(frozen=True)
class Choice:
    """Node position and ascending device indices, or the reason why the pod fits nowhere."""

    position: int | None = None
    devices: tuple[int, ...] = ()
    reason: str = ""


class Selection:
    """Filter, score, normalise, weigh, pick the node, pick the devices; counts its attempts."""

    def __init__(
        self, plan: OnlinePlan, frag: Fragmentation, seed: int, models: Sequence[str | None] = (),
        labels: Sequence[Mapping[str, str]] = (),
    ) -> None:  # fmt: skip
        self.plan, self.frag, self.seed, self.models, self.labels = plan, frag, seed, models, labels
        self.attempts = 0

    def choose(
        self, nodes: Sequence[Node | None], pod: PodRequest, present: Sequence[Node | None] | None = None
    ) -> Choice:
        """The best node, the smallest position on ties; absent and excluded nodes are ``None``.

        ``present`` are the nodes with those that are excluded.
        """
        near = nodes if present is None else present
        attempt = self.attempts
        self.attempts += 1
        stages = {position: stage(node, pod, near) for position, node in enumerate(nodes) if node is not None}
        feasible = [position for position, reached in stages.items() if reached == len(STAGES)]
        if not feasible:
            return Choice(reason=STAGES[max(stages.values())] if stages else "no_node")
        position = feasible[0] if len(feasible) == 1 else self._best(nodes, near, pod, feasible, attempt)
        node = nodes[position]
        assert node is not None
        return Choice(position, devices(seen(node, pod), pod, self.plan, self.frag, self.seed, attempt))

    def check_binding(
        self, nodes: Sequence[Node | None], position: int, pod: PodRequest, gpus: tuple[int, ...]
    ) -> Choice:
        """As :meth:`choose`, for a pod bound to a node and, if known, to devices."""
        attempt, node = self.attempts, nodes[position]
        self.attempts += 1
        if node is None:
            return Choice(reason="no_node")
        unbound = pod.conditions._replace(
            pinned_node=None, constraints=(), group=None, max_per_node=None, spread=(), near=()
        )
        there = replace(pod, conditions=unbound)
        reached = stage(node, there)
        if reached < len(STAGES):
            return Choice(reason=STAGES[reached])
        if gpus:
            free = set(fitting_devices(seen(node, there), there))
            held = len(gpus) == pod.num_gpu and free.issuperset(gpus)
            return Choice(position, gpus) if held else Choice(reason="no_gpu")
        return Choice(position, devices(seen(node, pod), pod, self.plan, self.frag, self.seed, attempt))

    def _best(
        self, nodes: Sequence[Node | None], near: Sequence[Node | None], pod: PodRequest, feasible: list[int],
        attempt: int,
    ) -> int:  # fmt: skip
        totals = [0] * len(feasible)
        for term in self.plan.terms:
            if term.kernel in PREFERENCE_KERNELS:
                points = preference_points(term.kernel, pod.conditions.preferences, near, feasible, self.labels)
            else:
                points = normalised(self._points(term, nodes, pod, feasible, attempt), term.normalise)
            totals = [total + term.weight * point for total, point in zip(totals, points, strict=True)]
        best = 0
        for place, total in enumerate(totals):
            if total > totals[best]:
                best = place
        return feasible[best]

    def _points(
        self, term: ScoreTerm, nodes: Sequence[Node | None], pod: PodRequest, feasible: list[int], attempt: int
    ) -> list[int]:
        if term.kernel == "random":
            lucky = bounded(self.seed, SCORER_STREAM, attempt, len(feasible))
            return [100 if place == lucky else 0 for place in range(len(feasible))]
        if term.kernel == "python":
            assert term.scorer is not None
            looks = [seen(node, pod) if node is not None and place in feasible else node
                     for place, node in enumerate(nodes)]  # fmt: skip
            points: Any = term.scorer(scorer_columns(looks, feasible, self.models), pod)
            return [int(points[position]) for position in feasible]
        present = [seen(node, pod) for node in map(nodes.__getitem__, feasible) if node is not None]
        return [raw_score(term, node, pod, self.frag) for node in present]


def scorer_columns(nodes: Sequence[Node | None], feasible: Sequence[int], models: Sequence[str | None]) -> Any:
    """The columns of a user-written scorer; GPU models are numbered by first appearance in the cluster."""
    import numpy as np

    distinct = dict.fromkeys(model for model in models if model is not None)
    number: dict[str | None, int] = {model: index for index, model in enumerate(distinct)}
    width = max([LANES, *(-(-len(node.gpu_free) // LANES) * LANES for node in nodes if node is not None)])
    gpu_free = np.zeros((len(nodes), width), np.int32)
    for position, node in enumerate(nodes):
        if node is not None:
            gpu_free[position, : len(node.gpu_free)] = node.gpu_free

    def column(of: Any, kind: type) -> Any:
        return np.array([of(node) if node is not None else 0 for node in nodes], kind)

    return SimpleNamespace(
        cpu_milli=column(lambda node: node.shape.cpu_milli, np.int64),
        cpu_free=column(lambda node: node.cpu_free, np.int64),
        memory_mib=column(lambda node: node.shape.memory_mib, np.int64),
        memory_free=column(lambda node: node.memory_free, np.int64),
        num_gpu=column(lambda node: node.shape.num_gpu, np.int32),
        gpu_free=gpu_free,
        gpu_model=column(lambda node: number.get(node.shape.gpu_model, -1), np.int32),
        pods=column(lambda node: node.pods, np.int32),
        feasible=np.isin(np.arange(len(nodes)), feasible).astype(np.uint8),
    )
