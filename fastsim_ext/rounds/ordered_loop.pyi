"""The loop of ordered rounds: jobs are put in order, get GPUs and all that goes with them."""

from collections.abc import Sequence
from typing import Any, Unpack

from fastsim_ext.rounds.loop import RoundLoop, _RoundArguments
from fastsim_ext.rounds.node_presence import NodePresence
from fastsim_ext.rounds.ordered_jobs import OrderedJobTable
from fastsim_ext.rounds.resource_shares import ResourceShares
from fastsim_ext.rounds.server_allocation import ServerAllocation

class OrderedLoop(RoundLoop):
    """A run in ordered rounds, see ``fastsim.engine.orders.run``."""

    ordered_jobs: OrderedJobTable
    allocation: ServerAllocation
    shares: ResourceShares
    end_s: float
    done_s: float
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
        begin_s: float,
        starving_s: float,
        quirks: Sequence[bool],
        **rounds: Unpack[_RoundArguments],
    ) -> None: ...
    def follow(self, presence: NodePresence) -> None:
        """Nodes come and go as ``presence`` has it; before the first round."""
    def chosen_rows(self) -> list[int]:
        """Rows of the jobs that run in this round, in their order, for mechanism ``opt``."""
    def assign_shares(self, need__jr: Any, speedup__j: Any) -> None:
        """Set the resources and the speedup of each of these jobs."""
    def drained(self) -> bytes:
        """Records of rounds since the last call, as bytes."""
    def verify(self) -> int:
        """Tables, allocation and totals are sound."""
