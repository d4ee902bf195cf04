"""The GPUs of each task in a round, and whether it keeps those of the last round."""

from collections.abc import Sequence

from fastsim_ext.rounds.node_presence import NodePresence

class Leases:
    """Tasks of this round and of the last one; ``gpus_by_model`` has the number of GPUs of each model."""

    n: int
    n_last: int
    gpus: int
    width: int
    extensions: int
    opportunities: int
    def __init__(self, gpus_by_model: Sequence[int]) -> None: ...
    def follow(self, presence: NodePresence) -> None:
        """From now on only the GPUs of nodes that are there can be taken."""
    def present_gpus(self) -> list[int]:
        """GPUs that are there, by model."""
    def busy(self) -> list[float]:
        """Busy seconds of each GPU."""
    def verify(self) -> int:
        """Every GPU has one holder at most, of its own model."""
