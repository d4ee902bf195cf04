"""Tenant, group, gang and run time estimate of each pod, and the pods of each node."""

from collections.abc import Mapping
from typing import Any

class PodMembership:
    """One record for every slot of the work table, a list of pods for every node, and the gangs."""

    def __init__(self, first: Any, moved: Any) -> None: ...
    def snapshot(self) -> tuple[bytes, bytes, dict[str, int]]:
        """(members as bytes, gangs as bytes, ends of the lists): all that restore() needs."""
    def restore(self, members: Any, gangs: Any, ends: Mapping[str, int]) -> None:
        """Restore a snapshot(); the running pods are then added by link()."""
