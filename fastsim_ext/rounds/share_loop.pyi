"""The loop of rounds of shares: shares become priorities, the best candidates run for a round."""

from collections.abc import Sequence
from typing import Any, Unpack

from fastsim_ext.rounds.candidates import CandidateSelection
from fastsim_ext.rounds.loop import RoundLoop, _RoundArguments

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
        realloc_s: float,
        endless: bool,
        quirks: Sequence[bool],
        pairs: bool,
        shuffled: bool,
        strict: bool,
        one_line: bool,
        estimated: bool = False,
        **rounds: Unpack[_RoundArguments],
    ) -> None: ...
    def reprice(self, price: Any, next_change_s: float) -> None:
        """Prices from now on; another price asks for another allocation."""
    def assign(self, first: Any, second: Any, share: Any) -> None:
        """The policy's answer: shares by candidate and model; ``second`` is -1 for a job by itself."""
