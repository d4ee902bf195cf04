"""Rules about the pods of a set in topology domains: how unevenly they are spread, whether a pod is apart or beside."""

from collections.abc import Sequence
from typing import Any

class SpreadTable:
    """Rules of spread by class, and pods of each set by node."""

    def add(self, cls: int, sets: Sequence[int], rules: Sequence[tuple[int, int, int, int, Any]]) -> None:
        """Numbers of the sets that pods of a class are in; rules as (set, kind, largest skew, fewest domains, domain
        of each node as int32, -1 where it is not counted)."""
