"""Preemption: the pods of lower priority to stop, on the node where that costs least."""

from fastsim_ext.online.node_constraints import ConstraintTable
from fastsim_ext.state.pod_membership import PodMembership
from fastsim_ext.state.pod_table import WorkTable

class PreemptionPlan:
    """Looks for the node on which room is made at the least cost; ties go to the smallest position."""

    def __init__(self, constraints: ConstraintTable, work: WorkTable, membership: PodMembership) -> None: ...
