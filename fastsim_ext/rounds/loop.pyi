"""What all runs in rounds have in common: the order of a round, jobs to come, prices, and records of what ran.

Subclasses say how time goes on, which jobs are admitted, when the policy decides, and what runs in a round.
"""

from collections.abc import Sequence
from typing import Any, NotRequired, TypedDict, Unpack

from fastsim_ext.rounds.cluster_metrics import ClusterMetrics
from fastsim_ext.rounds.job_table import JobTable
from fastsim_ext.rounds.leases import Leases
from fastsim_ext.rounds.node_presence import NodePresence
from fastsim_ext.rounds.round_log import RoundLog

class _RoundArguments(TypedDict):
    """The arguments of every run in rounds: seconds, ids of the jobs that must end, and what is recorded."""

    round_s: float
    restart_s: float
    until_s: float
    first: int
    last: int
    recorded: bool
    metrics: NotRequired[ClusterMetrics | None]

class RoundLoop:
    """A run; ``advance`` returns when Python must act, see ``fastsim.engine.rounds.driver``."""

    table: JobTable
    leases: Leases
    log: RoundLog
    metrics: ClusterMetrics | None
    presence: NodePresence | None
    now_s: float
    next_price_s: float
    wasted_gpu_s: float
    rounds: int
    calls: int
    ended: int
    max_active: int
    job_rounds: int
    def __init__(self, table: JobTable, gpus: Sequence[int], **rounds: Unpack[_RoundArguments]) -> None: ...
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
        value: Any = None,
    ) -> None:
        """Further jobs in order of arrival, behind those that came and are not admitted; ``closed``: the last ones.

        ``estimated_kind`` is each job's estimated kind when it shares GPUs; None: its own kind. ``value`` has those of
        the columns that an order reads, MOST_TERMS for each job so far, by id; None: it reads none.
        """
    def reprice(self, price: Any, next_change_s: float) -> None:
        """Prices from now on, $/h for a GPU of each model, until they may change again."""
    def follow(self, presence: NodePresence) -> None:
        """Nodes come and go as ``presence`` has it; before the first round."""
    def advance(self, budget: int) -> int:
        """Play on, at most ``budget`` rounds; returns why it stopped."""
    def verify(self) -> int:
        """Table, leases and totals are sound."""
