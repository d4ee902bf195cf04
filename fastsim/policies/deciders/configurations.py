"""Sizes a job may have on each GPU model: whole nodes, or a power of two of the GPUs of one node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from fastsim.errors import InputError

Ints = npt.NDArray[np.int64]

MOST_GPUS = 64
"""No job gets more GPUs than this."""


@dataclass(frozen=True)
class NodeGroup:
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
    """What a job can be given, group by group, sizes rising; ``q`` counts configurations and ``g`` groups."""

    groups: tuple[NodeGroup, ...]
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


def _sizes(group: NodeGroup, most_gpus: int) -> Iterator[tuple[int, int]]:
    """Nodes and GPUs of every size."""
    most_nodes = min(group.nodes, group.max_nodes)
    if most_nodes:
        inner = [1 << doubling for doubling in range(group.gpus_per_node.bit_length())]
        yield from ((1, gpus) for gpus in inner if gpus < group.gpus_per_node)
    for nodes in range(1, most_nodes + 1):
        if nodes == 1 or nodes * group.gpus_per_node <= most_gpus:
            yield nodes, nodes * group.gpus_per_node
