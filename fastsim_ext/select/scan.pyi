"""One pod, one decision: filter, score, normalise, weigh, pick the node, pick its devices."""

from collections.abc import Mapping
from typing import Any

from fastsim_ext.state.node_table import NodeTable
from fastsim_ext.state.pod_table import WorkTable

class NodeFilter:
    """Conditions of classes besides CPU, memory and devices."""

class Selector:
    """Executes a plan: its terms, the device pick and the tie rule (smallest position)."""

    attempts: int
    def __init__(self, nodes: NodeTable, work: WorkTable, plan: Mapping[str, Any], seed: int, scorer: Any) -> None: ...
    def raw(self, kernel: int, dim: int, norm: int, n: int, cls: int) -> tuple[int, int]:
        """(raw points, devices as bits) of one kernel on node ``n`` as it is now."""
    def pick(self, gpu_pick: int, n: int, cls: int) -> int:
        """The devices, as bits, that a pick rule takes on node ``n`` as it is now."""
    def hosts(self, cls: int) -> bool:
        """Whether any node could host the class when empty."""
    def verify(self) -> int:
        """Check the state between decisions; a plain selector has none."""
