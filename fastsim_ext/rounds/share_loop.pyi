"""The loop of rounds of shares: shares become priorities, the best candidates run for a round."""

from collections.abc import Sequence
from typing import Any

from fastsim_ext.rounds.candidates import CandidateSelection
from fastsim_ext.rounds.cluster_metrics import ClusterMetrics
from fastsim_ext.rounds.loop import RoundLoop

class ShareLoop(RoundLoop):
    """A run in rounds of shares, see ``fastsim.engine.shares.run``."""

    selection: CandidateSelection
    start_s: float
    end_s: float
    began_s: float
    reset_s: float
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
        pairs: bool,
        shuffled: bool,
        strict: bool,
        one_line: bool,
        estimated: bool = False,
        metrics: ClusterMetrics | None = None,
    ) -> None: ...
    def reprice(self, price: Any, next_change_s: float) -> None:
        """Prices from now on; another price asks for another allocation."""
    def assign(self, first: Any, second: Any, share: Any) -> None:
        """The policy's answer: shares by candidate and model; ``second`` is -1 for a job by itself."""
