"""The online engine with gangs, quotas, preemption and nodes that fail."""

from collections.abc import Mapping
from typing import Any

from fastsim_ext.online.loop import OnlineLoop
from fastsim_ext.online.node_constraints import ConstraintTable
from fastsim_ext.online.preempt import PreemptionPlan
from fastsim_ext.state.pod_membership import PodMembership
from fastsim_ext.state.tenant_usage import TenantUsage

class RulesLoop(OnlineLoop):
    """An OnlineLoop with gangs, quotas, preemption and nodes that fail."""

    constraints: ConstraintTable
    preemption: PreemptionPlan
    tenants: TenantUsage
    membership: PodMembership
    def snapshot(self) -> dict[str, Any]:
        """As OnlineLoop.snapshot, with the number of past node changes; ``membership`` has a snapshot of its own."""
    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a snapshot() of this loop or of a plain one; ``membership`` must have been restored before.

        The next change that is fed must be the first one after the snapshot.
        """
    def restore_members(self, members: Mapping[int, tuple[int, int, bool, bool, float]]) -> None:
        """Enter pods of a plain loop by arrival: (tenant, group, preemptible, preempts, estimated seconds)."""
    def evict(self, slot: int) -> None:
        """Take a running pod off its node; it keeps its slot and departure for move()."""
    def discard(self, slot: int) -> None:
        """Take back a trial()."""
    def verify(self) -> int:
        """As OnlineLoop.verify, and the tables of the rules."""
    def feed_changes(self, t: Any, node: Any, adds: Any, random: Any, last: bool) -> None:
        """The next node changes in order: seconds, position, whether it comes, whether it is a failure or repair."""
    def feed_members(
        self,
        tenant: Any,
        group: Any,
        preemptible: Any,
        preempts: Any,
        est: Any,
        job: Any,
        gang: Any,
        after_gang: Any,
        value: Any,
    ) -> None:
        """Further columns of the batch in feed(): tenants, groups, whether pods may be stopped and may stop others,
        estimated seconds, jobs, sizes of gangs, whether pods start after a gang of their job (None: none does), values
        of the columns that an order reads, MOST_TERMS each (None: it reads none). Before restore() the last ones are
        those of all slots."""
