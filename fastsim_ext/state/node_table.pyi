"""Node columns and their running totals; the only writer of node state."""

from collections.abc import Mapping, Sequence
from typing import Any

class TypicalTable:
    """The target workload as columns."""

    def __init__(self, columns: Mapping[str, Any]) -> None: ...
    def group(self, columns: Mapping[str, Any]) -> None:
        """Use the columns of the same workload by device request."""

class NodeTable:
    """All nodes of a cluster; a node's position is its identity."""

    count: int
    width: int
    n_tags: int
    n_full: int

    def __init__(self, columns: Mapping[str, Any], target: TypicalTable) -> None: ...
    def count_present(self) -> None:
        """Add all present nodes to the totals."""
    def retarget(self, target: TypicalTable) -> None:
        """Measure fragmentation for another target workload from now on."""
    def totals(self) -> dict[str, Any]:
        """The running sums; units as in the pxd."""
    def load(self, n: int, cpu_left: int, mem_left: int, gpu_left: Sequence[int], tags: Mapping[int, int]) -> None:
        """Set the state of node ``n`` (GPU milli by device, pods by tag)."""
    def figures(self, n: int) -> tuple[list[int], float, int, int]:
        """(fragmentation by class in count x milli-GPU, F in milli-GPU, CPU mW, GPU mW) of one node."""
    def frag_shares(self, n: int) -> list[float]:
        """Fragmentation by class of one node in float64 milli-GPU, summed as scores are."""
    def verify(self) -> int:
        """Recompute every total and check the bounds of every node."""
