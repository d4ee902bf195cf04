"""Rules of spread: limits on how unevenly the pods of a set are spread over topology domains."""

from collections.abc import Sequence
from typing import Any

class SpreadTable:
    """Rules of spread by class, and pods of each set by node."""

    def add(self, cls: int, sets: Sequence[int], rules: Sequence[tuple[int, int, int, Any]]) -> None:
        """Numbers of the sets that pods of a class are in; rules as (set, largest skew, fewest domains, domain of each
        node as int32, -1 where it is not counted)."""
