"""What a job of an ordered run asks for, holds and remembers, and the order in which jobs are served."""

from collections.abc import Sequence
from typing import Any

class OrderedJobTable:
    """Rows of stakes; ``terms`` are (term, sign) and ``level_s`` the steps of the term LEVEL, GPU seconds."""

    def __init__(self, terms: Sequence[tuple[int, float]], level_s: Any) -> None: ...
    def speedups(self) -> list[float]:
        """What each row gains at present over its fair share."""
    def ordered(self) -> list[int]:
        """Rows in the order of the last round."""
