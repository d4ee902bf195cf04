"""Configurations: sizes a job may have on each GPU model, and the nodes that jobs of given sizes take.

A size is a number of whole nodes, or a power of two of the GPUs of one node. Placement goes around the ring of nodes,
largest jobs first, whole nodes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from fastsim.errors import InputError, PolicyError

Ints = npt.NDArray[np.int64]
MOST_GPUS = 64
"""No job gets more GPUs than this."""


@dataclass(frozen=True)
class NodeShape:
    """The nodes of one GPU model: how many, and GPUs on each; jobs spread over at most ``max_nodes`` of them."""

    gpu_model: str
    nodes: int
    gpus_per_node: int
    max_nodes: int = 1 << 30

    def __post_init__(self) -> None:
        if min(self.nodes, self.max_nodes) < 0 or self.gpus_per_node < 1:
            raise InputError(f"nodes of {self.gpu_model}", self, "0 or more of them, 1 GPU or more on each")

    @property
    def gpus(self) -> int:
        """GPUs of all of them."""
        return self.nodes * self.gpus_per_node


@dataclass(frozen=True)
class Configurations:
    """Sizes of a job, group by group, in rising order; ``q`` counts configurations and ``g`` groups."""

    groups: tuple[NodeShape, ...]
    most_gpus: int = MOST_GPUS

    @cached_property
    def _rows(self) -> Ints:
        rows = [(g, *size) for g, group in enumerate(self.groups) for size in _sizes(group, self.most_gpus)]
        return np.array(rows, np.int64).reshape(-1, 3)

    @property
    def group__q(self) -> Ints:
        """Group of each configuration."""
        return self._rows[:, 0]

    @property
    def nodes__q(self) -> Ints:
        """Nodes of each configuration."""
        return self._rows[:, 1]

    @property
    def gpus__q(self) -> Ints:
        """GPUs of each configuration."""
        return self._rows[:, 2]

    @cached_property
    def gpus__g(self) -> Ints:
        """GPUs of each group."""
        return np.array([group.gpus for group in self.groups], np.int64)

    @cached_property
    def spans(self) -> tuple[slice, ...]:
        """The configurations of each group."""
        ends = np.searchsorted(self.group__q, np.arange(len(self.groups) + 1)).tolist()
        return tuple(slice(start, stop) for start, stop in pairwise(ends))

    def __len__(self) -> int:
        return len(self._rows)


def _sizes(group: NodeShape, most_gpus: int) -> Iterator[tuple[int, int]]:
    """Nodes and GPUs of every size."""
    most_nodes = min(group.nodes, group.max_nodes)
    if most_nodes:
        inner = [1 << doubling for doubling in range(group.gpus_per_node.bit_length())]
        yield from ((1, gpus) for gpus in inner if gpus < group.gpus_per_node)
    for nodes in range(1, most_nodes + 1):
        if nodes == 1 or nodes * group.gpus_per_node <= most_gpus:
            yield nodes, nodes * group.gpus_per_node


def placed(sizes: Sequence[int], free: Sequence[int]) -> list[list[int]]:
    """For each job the node of each of its GPUs, given the free GPUs of each node; jobs of one size keep their order.

    A job takes as many wholly free nodes as it fills, and the rest from the next free GPUs. Each search starts where
    the last one ended.
    """
    left, count = list(free), len(free)
    if sum(sizes) > sum(left):
        raise PolicyError("placement", f"{sum(sizes)} GPUs requested", f"at most the {sum(left)} free ones")
    whole = max(left, default=0)
    nodes__j: list[list[int]] = [[] for _ in sizes]
    at = 0
    for job in sorted(range(len(sizes)), key=lambda job: -sizes[job]):
        nodes, at = _whole_nodes(left, sizes[job] // whole if whole else 0, whole, at)
        nodes__j[job] = [node for node in nodes for _ in range(whole)]
        while len(nodes__j[job]) < sizes[job]:
            taken = min(left[at], sizes[job] - len(nodes__j[job]))
            nodes__j[job] += [at] * taken
            left[at] -= taken
            at = (at + 1) % count
    return nodes__j


def _whole_nodes(left: list[int], wanted: int, whole: int, at: int) -> tuple[list[int], int]:
    """Up to ``wanted`` free nodes from ``at`` on, and the node after the last one examined."""
    nodes: list[int] = []
    for _ in range(len(left)):
        if len(nodes) == wanted:
            break
        if left[at] == whole:
            nodes.append(at)
            left[at] = 0
        at = (at + 1) % len(left)
    return nodes, at
