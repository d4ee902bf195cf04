"""The random baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fastsim.engine.online.plan import ScoreTerm
from fastsim.policies.online.weighted_sum import Summand
from fastsim.policies.registry import policy


@policy("random")
@dataclass(frozen=True)
class Random(Summand):
    """Take any node that can host the pod, all equally likely.

    score = 100 for one feasible node drawn from the run's seed, 0 for the others; the GPU is drawn too.
    The draw of a pod depends on the seed and on how many pods came before, on nothing else.
    """

    citation: ClassVar[str] = ""

    def term(self) -> ScoreTerm:
        """The score of a node, with weight 1."""
        return ScoreTerm("random")

    def own_gpu_pick(self) -> str:
        """Any device that fits, equally likely."""
        return "random"
