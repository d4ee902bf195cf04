"""Which running pods a more important one may stop, and on which node that costs least."""

from fastsim_ext.online.node_constraints import DemandTable
from fastsim_ext.state.pod_membership import Roster
from fastsim_ext.state.pod_table import WorkTable

class Evictions:
    """Looks for the node on which room is made at the least cost; ties go to the smallest position."""

    def __init__(self, demand: DemandTable, work: WorkTable, roster: Roster) -> None: ...
