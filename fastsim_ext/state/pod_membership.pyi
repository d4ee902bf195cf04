"""Tenant, group, gang and run time estimate of each pod, the pods of each node, and the usage of each tenant."""

from collections.abc import Mapping
from typing import Any

class PodMembership:
    """One record for every slot of the work table, a list of pods for every node, and the gangs."""

    def __init__(self, first: Any, moved: Any) -> None: ...
    def snapshot(self) -> tuple[bytes, bytes, dict[str, int]]:
        """(members as bytes, gangs as bytes, ends of the lists): all that restore() needs."""
    def restore(self, members: Any, gangs: Any, ends: Mapping[str, int]) -> None:
        """Restore a snapshot(); the running pods are then added by link()."""

class TenantUsage:
    """Tenants by number; pods without one have a tenant of their own."""

    count: int
    def add_tenant(self, cpu_most: int, mem_most: int, gpu_most: int, weight: float) -> int:
        """A new tenant, its quota in milli-CPU, MiB and milli-GPU, and its weight."""
    def used(self, tenant: int) -> tuple[int, int, int]:
        """(milli-CPU, MiB, milli-GPU) that the tenant's running pods hold."""
