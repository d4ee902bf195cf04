"""The online engine with gangs, quotas, preemption and nodes that fail."""

from typing import Any

from fastsim_ext.demand import DemandTable
from fastsim_ext.online import Online
from fastsim_ext.tenants import TenantTable

class Regulated(Online):
    """An Online that keeps the rules of a regime."""

    demand: DemandTable
    tenants: TenantTable
    def evict(self, slot: int) -> None:
        """Take a running pod off its node; it keeps its slot and departure for move()."""
    def discard(self, slot: int) -> None:
        """Take back a trial()."""
    def verify(self) -> int:
        """As Online.verify, and the tables of the rules."""
    def feed_changes(self, t: Any, node: Any, adds: Any, random: Any, last: bool) -> None:
        """The next node changes in order: seconds, position, whether it comes, whether it is a failure or repair."""
    def feed_members(self, tenant: Any, group: Any, preemptible: Any, est: Any, job: Any, gang: Any) -> None:
        """The same batch as in feed(): tenants and groups by number, seconds that are told, jobs and sizes of gangs."""
