"""What is believed to be free on every node from now on, state by state."""

from fastsim_ext.demand import DemandTable
from fastsim_ext.roster import Roster
from fastsim_ext.work import WorkTable

class Outlook:
    """The believed states of every node, and the promises that are part of them."""

    def __init__(self, demand: DemandTable, work: WorkTable, roster: Roster) -> None: ...
