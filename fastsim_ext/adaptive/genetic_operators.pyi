"""Crossover, mutation and repair of allocations, as in Pollux's genetic search."""

import numpy as np
import numpy.typing as npt

States = npt.NDArray[np.int8]
Counts = npt.NDArray[np.int32]

class GeneticOperators:
    """The operators on arrays, and the stream of random numbers they share; sizes are those of one search."""

    def __init__(self, jobs: int, nodes: int, node_gpus: int, key: npt.NDArray[np.uint32], used: int) -> None: ...
    def crossed(self, first__mjn: States, second__mjn: States) -> None:
        """Exchange rows between the couples of both arrays."""

    def mutated(self, state__pjn: States, base__jn: States) -> None:
        """Change each state a little; ``base`` is what jobs have."""

    def repaired(self, state__pjn: States, most__j: Counts, least__j: Counts, apart: bool = True) -> None:
        """Make each state possible; ``most`` and ``least`` are GPUs of each job.

        ``apart``: no two jobs of several nodes share a node.
        """

    def stream_state(self) -> tuple[list[int], int]:
        """The stream in numpy's terms: key, and words of it that are used."""
