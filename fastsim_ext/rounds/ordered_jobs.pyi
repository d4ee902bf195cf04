"""Demand, allocation and service of jobs in ordered rounds, and the order in which they are served."""

from collections.abc import Sequence
from typing import Any

class OrderedJobTable:
    """Rows of ordered jobs; ``terms`` are (term, sign) and ``level_s`` the steps of the term LEVEL, GPU seconds."""

    def __init__(self, terms: Sequence[tuple[int, float]], level_s: Any) -> None: ...
    def speedups(self) -> list[float]:
        """Present speedup of each row over its fair share."""
    def ordered(self) -> list[int]:
        """Rows in the order of the last round."""
