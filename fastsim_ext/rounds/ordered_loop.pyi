"""The loop of a run in ordered rounds: jobs arrive, are put in order, get GPUs and all that goes with them."""

from collections.abc import Sequence
from typing import Any

from fastsim_ext.rounds.cluster_metrics import ClusterMetrics
from fastsim_ext.rounds.job_table import JobTable
from fastsim_ext.rounds.leases import Leases
from fastsim_ext.rounds.ordered_jobs import OrderedJobTable
from fastsim_ext.rounds.resource_shares import ResourceShares
from fastsim_ext.rounds.round_log import RoundLog
from fastsim_ext.rounds.server_allocation import ServerAllocation

class OrderedLoop:
    """A run; ``advance`` returns when Python must act, see ``fastsim.engine.orders.run``."""

    table: JobTable
    ordered_jobs: OrderedJobTable
    allocation: ServerAllocation
    shares: ResourceShares
    leases: Leases
    log: RoundLog
    metrics: ClusterMetrics | None
    now_s: float
    end_s: float
    done_s: float
    wasted_gpu_s: float
    next_price_s: float
    rounds: int
    calls: int
    ended: int
    max_active: int
    job_rounds: int
    def __init__(
        self,
        gpus: Sequence[int],
        servers: Sequence[int],
        cap__sr: Any,
        base: Sequence[int],
        need__kr: Any,
        speedup__k: Any,
        step_s__kg: Any,
        terms: Sequence[tuple[int, float]],
        level_s: Any,
        packed__k: Any,
        *,
        mechanism: int,
        narrow: bool,
        sticky: bool,
        blocking: bool,
        admit: float,
        round_s: float,
        begin_s: float,
        restart_s: float,
        until_s: float,
        starving_s: float,
        first: int,
        last: int,
        recorded: bool,
        quirks: Sequence[bool],
        metrics: ClusterMetrics | None = None,
    ) -> None: ...
    def feed(
        self, submit: Any, kind: Any, num_gpu: Any, total: Any, weight: Any, deadline: Any, tenant: Any, closed: bool
    ) -> None:
        """Further jobs in order of arrival; ``closed``: these are the last ones."""
    def reprice(self, price: Any, next_change_s: float) -> None:
        """Prices from now on, $/h for a GPU of each model, until they may change again."""
    def chosen_rows(self) -> list[int]:
        """Rows of the jobs that run in this round, in their order, for mechanism ``opt``."""
    def assign_shares(self, need__jr: Any, speedup__j: Any) -> None:
        """Set the resources and the speedup of each of these jobs."""
    def advance(self, budget: int) -> int:
        """Play on, at most ``budget`` rounds; returns why it stopped."""
    def drained(self) -> bytes:
        """Records of rounds since the last call, as bytes."""
    def verify(self) -> int:
        """Tables, allocation and totals are sound."""
