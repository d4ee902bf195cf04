"""The spellings of the same scores that one test is run against."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Protocol

import numpy as np
import pyarrow as pa

from fastsim.cluster.cluster import Cluster
from fastsim.engine.online.kernel_columns import (
    Columns,
    ModelIds,
    fresh_target,
    node_columns,
    plan_columns,
    typical_columns,
)
from fastsim.engine.online.plan import DIMS, GPU_PICKS, KERNELS, NORMS, OnlinePlan, PodRequest, ScoreTerm
from fastsim.workload.typical_pods import TypicalPods
from fastsim_ext.select.indexed import IndexedSelector
from fastsim_ext.select.scan import Selector
from fastsim_ext.select.state_memo import Memo
from fastsim_ext.state.node_table import NodeTable, TypicalTable
from fastsim_ext.state.pod_table import WorkTable
from tests.reference.online.devices import devices
from tests.reference.online.dot import best_group
from tests.reference.online.frag import Fragmentation, cpu_power, gpu_power
from tests.reference.online.nodes import Node, Shape, sub_devices, taken
from tests.reference.online.scores import raw_score

GPU_WATTS = {
    "T4": (10, 70), "A10": (30, 150), "P100": (25, 250), "V100M16": (30, 300), "V100M32": (30, 300),
    "A100": (50, 400), "G2": (30, 150), "G3": (50, 400), None: (0, 0),
}  # fmt: skip
"""Idle and peak watts of one device."""


@dataclass(frozen=True)
class NodeState:
    """A node at one moment: milli-CPU, MiB, milli-GPU of each device, GPU pods by tag."""

    gpu_model: str | None
    cpu_milli: int
    cpu_free: int
    memory_free: int
    gpu_free: tuple[int, ...]
    tags: tuple[tuple[str, int], ...] = ()


class Backend(Protocol):
    """One spelling of scores, device choice, fragmentation and power."""

    def __init__(self, typical: TypicalPods) -> None:
        """Scores are made against these typical pods."""

    def raw(self, kernel: str, dim: str, norm: str, state: NodeState, pod: PodRequest) -> int:
        """Raw score of a node that can host the pod."""

    def gpu_pick(self, method: str, dim: str, norm: str, state: NodeState, pod: PodRequest) -> tuple[int, ...]:
        """Ascending indices of the devices the pod gets."""

    def frag(self, state: NodeState) -> tuple[float, ...]:
        """Expected milli-GPU of the seven classes."""

    def frag_after(self, state: NodeState, pod: PodRequest, device: int | None) -> float:
        """Sum of all classes but q3 after the pod was placed, for sharing pods on this device."""

    def power(self, state: NodeState) -> tuple[int, int]:
        """Milliwatts of CPU and GPUs."""


class Twin:
    """The plain Python reference."""

    def __init__(self, typical: TypicalPods) -> None:
        self._frag = Fragmentation(typical)

    def raw(self, kernel: str, dim: str, norm: str, state: NodeState, pod: PodRequest) -> int:
        """Raw score of a node that can host the pod."""
        return raw_score(ScoreTerm(kernel, dim=dim, norm=norm), self.node(state), pod, self._frag)

    def gpu_pick(self, method: str, dim: str, norm: str, state: NodeState, pod: PodRequest) -> tuple[int, ...]:
        """Ascending indices of the devices the pod gets."""
        plan = OnlinePlan((), gpu_pick=method, gpu_dim=dim, gpu_norm=norm)
        return devices(self.node(state), pod, plan, self._frag, seed=0, attempt=0)

    def frag(self, state: NodeState) -> tuple[float, ...]:
        """Expected milli-GPU of the seven classes."""
        return self._frag.classes(self.node(state))

    def frag_after(self, state: NodeState, pod: PodRequest, device: int | None) -> float:
        """Sum of all classes but q3 after the pod was placed, for sharing pods on this device."""
        node = self.node(state)
        return self._frag.fragment(taken(node, pod, sub_devices(node, pod) if device is None else (device,)))

    def power(self, state: NodeState) -> tuple[int, int]:
        """Milliwatts of CPU and GPUs."""
        node = self.node(state)
        return cpu_power(node), gpu_power(node)

    @staticmethod
    def names_devices(dim: str, norm: str, state: NodeState, pod: PodRequest) -> tuple[int, ...]:
        """Devices of the best dot-product group, none if the group stands for the whole node."""
        best = best_group(Twin.node(state), pod, dim, norm)
        return () if best is None else best[1]

    @staticmethod
    def node(state: NodeState) -> Node:
        """The twin's node in this state; the default CPU draws 15 to 120 W per socket of 16 cores."""
        idle, peak = GPU_WATTS[state.gpu_model]
        shape = Shape(
            state.cpu_milli, state.memory_free, len(state.gpu_free), state.gpu_model, None,
            idle * 1000, peak * 1000, 15_000, 120_000, 16,
        )  # fmt: skip
        return Node(shape, state.cpu_free, state.memory_free, state.gpu_free, state.tags)


class Compiled:
    """The compiled kernels, on a table of one node."""

    def __init__(self, typical: TypicalPods) -> None:
        self._typical = typical

    def raw(self, kernel: str, dim: str, norm: str, state: NodeState, pod: PodRequest) -> int:
        """Raw score of a node that can host the pod."""
        _, select = self._tables(state, pod)
        return select.raw(KERNELS.index(kernel), DIMS.index(dim), NORMS.index(norm), 0, 0)[0]

    def gpu_pick(self, method: str, dim: str, norm: str, state: NodeState, pod: PodRequest) -> tuple[int, ...]:
        """Ascending indices of the devices the pod gets."""
        _, select = self._tables(state, pod, dim, norm)
        return bits(select.pick(GPU_PICKS.index(method), 0, 0))

    def frag(self, state: NodeState) -> tuple[float, ...]:
        """Expected milli-GPU of the seven classes."""
        nodes, _ = self._tables(state, None)
        return tuple(nodes.frag_shares(0))

    def frag_after(self, state: NodeState, pod: PodRequest, device: int | None) -> float:
        """Sum of all classes but q3 after the pod was placed, for sharing pods on this device."""
        chosen = sub_devices(Twin.node(state), pod) if device is None else (device,)
        after = tuple(left - pod.gpu_milli * (g in chosen) for g, left in enumerate(state.gpu_free))
        nodes, _ = self._tables(replace(state, cpu_free=state.cpu_free - pod.cpu_milli, gpu_free=after), None)
        return nodes.figures(0)[1]

    def power(self, state: NodeState) -> tuple[int, int]:
        """Milliwatts of CPU and GPUs."""
        nodes, _ = self._tables(state, None)
        return nodes.figures(0)[2:]

    @staticmethod
    def names_devices(dim: str, norm: str, state: NodeState, pod: PodRequest) -> tuple[int, ...]:
        """Devices of the best dot-product group, none if the group stands for the whole node."""
        _, select = without_typical()._tables(state, pod)
        return bits(select.raw(KERNELS.index("dot_product"), DIMS.index(dim), NORMS.index(norm), 0, 0)[1])

    def _tables(
        self, state: NodeState, pod: PodRequest | None, dim: str = "merge", norm: str = "max"
    ) -> tuple[NodeTable, Selector]:
        nodes, select = self._shape(
            state.gpu_model, state.cpu_milli, state.memory_free, len(state.gpu_free), pod, dim, norm
        )
        tags = {0 if tag == "share-gpu" else int(tag.partition("-")[0]): count for tag, count in state.tags}
        nodes.load(0, state.cpu_free, state.memory_free, state.gpu_free, tags)
        return nodes, select

    @lru_cache(maxsize=1000)  # noqa: B019 - a few backends live a little longer than the test that made them
    def _shape(
        self, model: str | None, cpu: int, memory: int, gpus: int, pod: PodRequest | None, dim: str, norm: str
    ) -> tuple[NodeTable, Selector]:
        ids = ModelIds([model])
        columns = node_columns(one_node(model, cpu, memory, gpus), ids)
        nodes = NodeTable(columns, TypicalTable(fresh_target(_target(self._typical, model))))
        work = WorkTable()
        if pod is not None:
            models = ids.mask(pod.gpu_models)
            work.add_class(pod.cpu_milli, pod.memory_mib, pod.num_gpu, pod.gpu_milli, models)
        return nodes, self._selector(nodes, work, OnlinePlan((), gpu_dim=dim, gpu_norm=norm))

    def _selector(self, nodes: NodeTable, work: WorkTable, plan: OnlinePlan) -> Selector:
        return Selector(nodes, work, plan_columns(plan, 1), 0, None)


class Kept(Compiled):
    """The compiled kernels as kept scores ask them: fragmentation over groups of typical pods."""

    def _selector(self, nodes: NodeTable, work: WorkTable, plan: OnlinePlan) -> Selector:
        return indexed(nodes, work, plan)


def indexed(nodes: NodeTable, work: WorkTable, plan: OnlinePlan, memo: Memo | None = None) -> IndexedSelector:
    """A selector that keeps scores, for nodes that are all of one kind."""
    if memo is None:
        memo = Memo(nodes.width, len(plan.terms), 10**6)
    kept = {"memo": memo, "kind": np.zeros(nodes.count, np.int32), "state": np.full(nodes.count, -1, np.int32)}
    return IndexedSelector(nodes, work, plan_columns(plan, nodes.count) | kept, 0, None)


@cache
def _target(typical: TypicalPods, model: str | None) -> Columns:
    """The columns of typical pods for nodes of this model; tables write to copies of them."""
    return typical_columns(typical, ModelIds([model]))


@cache
def one_node(model: str | None, cpu: int, memory: int, gpus: int) -> Cluster:
    """A cluster of one node."""
    row = {"name": ["n"], "cpu_milli": [cpu], "memory_mib": [memory], "num_gpu": [gpus]}
    return Cluster.from_arrow(pa.table({**row, "gpu_model": pa.array([model], pa.string())}))


@cache
def without_typical() -> Compiled:
    """A back-end for scores that need no typical pods."""
    return Compiled(TypicalPods((), (), (), (), (), ()))


def bits(mask: int) -> tuple[int, ...]:
    """Positions of the bits that are set."""
    return tuple(g for g in range(64) if mask >> g & 1)


BACKENDS: dict[str, type[Backend]] = {"twin": Twin, "compiled": Compiled, "kept": Kept}
