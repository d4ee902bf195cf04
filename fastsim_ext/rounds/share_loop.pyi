"""The loop of a run in rounds: jobs arrive, shares become priorities, the best candidates run for a round."""

from collections.abc import Sequence
from typing import Any

from fastsim_ext.rounds.candidates import CandidateSelection
from fastsim_ext.rounds.cluster_metrics import ClusterMetrics
from fastsim_ext.rounds.job_table import JobTable
from fastsim_ext.rounds.leases import Leases
from fastsim_ext.rounds.round_log import RoundLog

class ShareLoop:
    """A run; ``advance`` returns when Python must act, see ``fastsim.engine.shares.run``."""

    table: JobTable
    leases: Leases
    log: RoundLog
    selection: CandidateSelection
    metrics: ClusterMetrics | None
    now_s: float
    start_s: float
    end_s: float
    began_s: float
    wasted_gpu_s: float
    reset_s: float
    next_price_s: float
    rounds: int
    calls: int
    ended: int
    max_active: int
    job_rounds: int
    def __init__(
        self,
        gpus: Sequence[int],
        alone: Any,
        shared: Any,
        fastest: Sequence[int],
        shuffle_state: Sequence[int],
        *,
        round_s: float,
        realloc_s: float,
        restart_s: float,
        until_s: float,
        first: int,
        last: int,
        recorded: bool,
        endless: bool,
        quirks: Sequence[bool],
        metrics: ClusterMetrics | None = None,
        estimated: bool = False,
        pairs: bool,
        shuffled: bool,
        strict: bool,
        one_line: bool,
    ) -> None: ...
    def feed(
        self,
        submit: Any,
        kind: Any,
        num_gpu: Any,
        total: Any,
        weight: Any,
        deadline: Any,
        tenant: Any,
        closed: bool,
        estimated_kind: Any = None,
    ) -> None:
        """Further jobs in order of arrival; ``closed``: these are the last ones.

        ``estimated_kind`` is each job's estimated kind when it shares GPUs; None: its own kind.
        """
    def reprice(self, price: Any, next_change_s: float) -> None:
        """Prices from now on, $/h for a GPU of each model, until they may change again."""
    def assign(self, first: Any, second: Any, share: Any) -> None:
        """The policy's answer: shares by candidate and model; ``second`` is -1 for a job by itself."""
    def advance(self, budget: int) -> int:
        """Play on, at most ``budget`` rounds; returns why it stopped."""
    def verify(self) -> int:
        """Table, leases and totals are sound."""
