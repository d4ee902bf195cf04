"""Forecast of the free amounts of every node, state by state."""

from fastsim_ext.online.node_constraints import ConstraintTable
from fastsim_ext.state.pod_membership import PodMembership
from fastsim_ext.state.pod_table import WorkTable

class FreeForecast:
    """The estimated states of every node, and the reservations that are part of them."""

    def __init__(self, constraints: ConstraintTable, work: WorkTable, membership: PodMembership) -> None: ...
