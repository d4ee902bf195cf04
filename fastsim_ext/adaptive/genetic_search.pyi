"""Pollux's genetic search for the best allocation of a cluster: a herd that breeds, and its best ones live on."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

States = npt.NDArray[np.int8]
Counts = npt.NDArray[np.int32]
Floats = npt.NDArray[np.float64]

class Search:
    """Searches one after the other, with one stream of random numbers; ``size`` states live in a herd."""

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
    ) -> tuple[States, Floats, Floats]:
        """The first front after some generations: its states, their mean speedups and their utilities.

        The search begins with the given states, ``base`` is what jobs have; the rest is told in ``fitness``.
        """

    def stream_state(self) -> tuple[list[int], int]:
        """The stream as numpy knows it: key, and words of it that are used."""

    def go_on(self, key: Sequence[int], used: int) -> None:
        """Take over the state of a stream."""
