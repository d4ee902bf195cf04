"""Reservations for waiting pods, from the durations the scheduler is told."""

from fastsim_ext.demand import DemandTable
from fastsim_ext.roster import Roster
from fastsim_ext.work import WorkTable

class Backfill:
    """Looks ahead on one node after another."""

    def __init__(self, demand: DemandTable, work: WorkTable, roster: Roster) -> None: ...
