"""Metrics of the cluster in rounds: allocation, fragmentation and power."""

from typing import Any

AREAS: tuple[str, ...]

class ClusterMetrics:
    """Running totals from the first arrival on. A row for each change if ``recorded``, or else one at the beginning of
    a round every ``sample_s`` seconds; the last one is that of the end."""

    finished: int
    dropped: int
    arrived: int
    arrived_gpu: int
    def __init__(
        self, node_of_gpu: Any, shape_of_node: Any, totals__sut: Any, sample_s: float, recorded: bool
    ) -> None: ...
    def close(self, t: float) -> None:
        """The run is over at ``t`` seconds."""
    def drained(self) -> bytes:
        """Rows since the last call, as the bytes of their records."""
    def state(self) -> tuple[bytes, bytes, dict[str, float]]:
        """(the row of now, the last one with arrived demand within the capacity, quantities over time)."""
    def verify(self) -> int:
        """Totals are the sums over all nodes."""
