"""Pollux's genetic search for the best allocation of a cluster: a population whose best states survive."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

States = npt.NDArray[np.int8]
Counts = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

class GeneticSearch:
    """Searches one after the other, with one stream of random numbers; a population has ``size`` states."""

    size: int
    def __init__(self, seed: int, size: int = 100) -> None: ...
    def front(
        self,
        state__pjn: States,
        base__jn: States,
        speedup__jsk: Floats,
        keeping__j: Floats,
        share__j: Floats,
        most__j: Counts,
        least__j: Counts,
        node_gpus: int,
        power: float,
        generations: int,
        apart: bool = True,
        check: Callable[[], None] | None = None,
    ) -> tuple[States, Floats, Floats]:
        """The first front after some generations: its states, their mean speedups and their utilities.

        ``state`` holds the initial states, ``base`` the present allocation. ``most`` and ``least`` limit a job's GPUs
        unless it has none; ``fitness`` defines the other terms. ``apart``: no two jobs of several nodes share a node.
        ``check`` is called between some generations, and may raise.
        """

    def stream_state(self) -> tuple[list[int], int]:
        """The stream in numpy's terms: key, and words of it that are used."""

    def restore_stream(self, key: Sequence[int], used: int) -> None:
        """Take over the state of a stream."""
