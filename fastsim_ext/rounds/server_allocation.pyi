"""The servers of one round: what they have left, and the GPUs and shares of every running job."""

from collections.abc import Sequence
from typing import Any

from fastsim_ext.rounds.node_presence import NodePresence

class ServerAllocation:
    """``num_gpu`` by server, ``cap__sr`` what each has of every resource, ``base`` where each GPU model begins."""

    count: int
    gpus: int
    present: int
    present_gpus: int
    def __init__(self, num_gpu: Sequence[int], cap__sr: Any, base: Sequence[int]) -> None: ...
    def follow(self, presence: NodePresence) -> None:
        """From now on absent servers have nothing."""
    def rooms(self, num_gpu: Any, need__kr: Any) -> list[int]:
        """For each gang size and need, the GPUs that the best GPU model could give to such gangs if it were empty."""
    def left(self) -> list[tuple[int, tuple[float, ...]]]:
        """By server: free GPUs, and what is left of every resource; an absent one has nothing."""
    def absent(self) -> list[bool]:
        """Whether each server is absent in this round."""
    def taken(self) -> list[tuple[int, int, int, tuple[float, ...]]]:
        """(row, server, GPUs as bits, shares) of every server part."""
    def verify(self) -> int:
        """Parts and free amounts add up to every server."""
