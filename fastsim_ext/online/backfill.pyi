"""Reservations for waiting pods, from estimated durations."""

from fastsim_ext.online.node_constraints import ConstraintTable
from fastsim_ext.state.pod_membership import PodMembership
from fastsim_ext.state.pod_table import WorkTable

class Backfill:
    """Looks ahead on one node after another."""

    def __init__(self, constraints: ConstraintTable, work: WorkTable, membership: PodMembership) -> None: ...
