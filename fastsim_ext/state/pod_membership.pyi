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

class TenantUsage:
    """Tenants by number; pods without one have a tenant of their own."""

    count: int
    def add_tenant(self, cpu_most: int, mem_most: int, gpu_most: int, weight: float) -> int:
        """A new tenant, its quota in milli-CPU, MiB and milli-GPU, and its weight."""
    def used(self, tenant: int) -> tuple[int, int, int]:
        """(milli-CPU, MiB, milli-GPU) that the tenant's running pods hold."""
