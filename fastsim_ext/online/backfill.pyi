"""Reservations for waiting pods, from estimated durations."""

from fastsim_ext.online.node_constraints import ConstraintTable
from fastsim_ext.state.pod_membership import PodMembership
from fastsim_ext.state.pod_table import WorkTable

class Backfill:
    """Reservations of waiting pods on the estimated states of nodes."""

    def __init__(self, constraints: ConstraintTable, work: WorkTable, membership: PodMembership) -> None: ...
