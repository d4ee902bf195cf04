"""How much of a server a job gets beside its GPUs."""

from typing import Any

from fastsim_ext.rounds.job_table import GangTable
from fastsim_ext.rounds.ordered_jobs import StakeTable
from fastsim_ext.rounds.server_allocation import Seats

class Portions:
    """Fills ``seats``, one job after the other."""

    reclaims: int
    demotions: int
    def __init__(
        self,
        table: GangTable,
        stakes: StakeTable,
        seats: Seats,
        step_s__kg: Any,
        packed__k: Any,
        mechanism: int,
        raises: bool,
        sweeping: bool,
    ) -> None: ...
