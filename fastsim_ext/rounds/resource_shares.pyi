"""CPU, memory and storage of a server that a job gets beside its GPUs."""

from typing import Any

from fastsim_ext.rounds.job_table import JobTable
from fastsim_ext.rounds.ordered_jobs import OrderedJobTable
from fastsim_ext.rounds.server_allocation import ServerAllocation

class ResourceShares:
    """Fills ``allocation``, one job after the other."""

    reclaims: int
    demotions: int
    def __init__(
        self,
        table: JobTable,
        ordered_jobs: OrderedJobTable,
        allocation: ServerAllocation,
        step_s__kg: Any,
        packed__k: Any,
        mechanism: int,
        raises: bool,
        sweeping: bool,
    ) -> None: ...
