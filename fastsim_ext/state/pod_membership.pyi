"""What is known of a pod beyond its request: tenant, group, gang, what is believed of its end; and who runs where."""

from collections.abc import Mapping
from typing import Any

class PodMembership:
    """One record for every slot of the work table, a list of pods for every node, and the gangs."""

    def __init__(self, first: Any, moved: Any) -> None: ...
    def snapshot(self) -> tuple[bytes, bytes, dict[str, int]]:
        """(what is known of every slot as bytes, every gang as bytes, the ends of its lists): all restore() needs."""
    def restore(self, members: Any, gangs: Any, ends: Mapping[str, int]) -> None:
        """Take over a snapshot(); who runs where is to be told by link()."""
