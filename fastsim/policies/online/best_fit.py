"""The tightest node."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fastsim.engine.online.plan import ScoreTerm
from fastsim.policies.online.weighted_sum import Summand
from fastsim.policies.registry import policy


@policy("best_fit")
@dataclass(frozen=True)
class BestFit(Summand):
    """Choose the node that is left with the least, CPU and GPU weighing the same.

    raw = trunc(100 * (1 - 0.5 * CPU left after / 128000 - 0.5 * milli-GPU left after / 8000)), then spread over
    0..100 between the worst and the best feasible node (0 if all are equal).
    """

    citation: ClassVar[str] = """@inproceedings{hadary2020protean,
  title = {Protean: {VM} Allocation Service at Scale},
  author = {Hadary, Ori and Marshall, Luke and Menache, Ishai and Pan, Abhisek and Greeff, Esaias E. and Dion, David
            and Dorminey, Star and Joshi, Shailesh and Chen, Yang and Russinovich, Mark and Moscibroda, Thomas},
  booktitle = {USENIX OSDI},
  year = {2020}
}"""

    def term(self) -> ScoreTerm:
        """The score of a node, with weight 1."""
        return ScoreTerm("best_fit", normalise="min_max_0")
