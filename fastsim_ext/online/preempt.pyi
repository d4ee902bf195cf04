"""Preemption: the pods of lower priority to stop, on the node where that costs least."""

from collections.abc import Iterable

from fastsim_ext.online.node_constraints import ConstraintTable
from fastsim_ext.state.pod_membership import PodMembership
from fastsim_ext.state.pod_table import WorkTable

class PreemptionPlan:
    """Looks for the node on which room is made at the least cost; ties go to the smallest position."""

    def __init__(self, constraints: ConstraintTable, work: WorkTable, membership: PodMembership) -> None: ...
    def add_budgets(self, cls: int, budgets: Iterable[tuple[int, int]]) -> None:
        """Disruption budgets of the pods of a class: number, and how many pods with the budget are to keep running."""
