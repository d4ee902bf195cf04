"""Distinct requests and their numbers."""

from typing import Any

class RequestIndex:
    """Numbers requests densely, in order of first appearance."""

    count: int
    def intern(self, cpu: Any, mem: Any, num_gpu: Any, milli: Any, models: Any, out: Any) -> None:
        """Write class ids (int32) of the rows to ``out``; milli-CPU, MiB, devices, milli of each, model list."""
    def rows(self, first: int) -> bytes:
        """The requests from class ``first`` on."""
    def row(self, k: int) -> bytes:
        """The request of class ``k``."""
    def verify(self) -> int:
        """Check that every request is found by its hash, once."""
