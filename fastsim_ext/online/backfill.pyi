"""Reservations for waiting pods, from the durations the scheduler is told."""

from fastsim_ext.online.node_constraints import DemandTable
from fastsim_ext.state.pod_membership import Roster
from fastsim_ext.state.pod_table import WorkTable

class Backfill:
    """Looks ahead on one node after another."""

    def __init__(self, demand: DemandTable, work: WorkTable, roster: Roster) -> None: ...
