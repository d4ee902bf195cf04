"""What rounds look like to the metrics: allocation, fragmentation and power of the cluster."""

from typing import Any

AREAS: tuple[str, ...]

class Gauge:
    """Running totals; a row every ``sample_s`` seconds if ``recorded``."""

    finished: int
    dropped: int
    arrived_gpu: int
    def __init__(
        self, node_of_gpu: Any, shape_of_node: Any, totals__sut: Any, sample_s: float, recorded: bool
    ) -> None: ...
    def close(self, t: float, active: int) -> None:
        """The run is over at ``t`` seconds; jobs that are still active wait or run on outside of it."""
    def drained(self) -> bytes:
        """Rows since the last call, as the bytes of their records."""
    def state(self) -> tuple[bytes, bytes, dict[str, float]]:
        """(the row of now, the last one with arrived demand within the capacity, quantities over time)."""
    def verify(self) -> int:
        """Totals are the sums over all nodes."""
