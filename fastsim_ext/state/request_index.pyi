"""Distinct requests and their numbers."""

from typing import Any

class RequestIndex:
    """Numbers requests densely, in order of first appearance."""

    count: int
    def intern(self, cpu: Any, mem: Any, num_gpu: Any, milli: Any, models: Any, out: Any) -> None:
        """Class ids (int32) of the rows into ``out``; milli-CPU, MiB, devices, milli of each, number of the models."""
    def rows(self, first: int) -> bytes:
        """The requests from class ``first`` on."""
    def row(self, k: int) -> bytes:
        """The request of class ``k``."""
    def verify(self) -> int:
        """Every request is found where its hash says, once."""
