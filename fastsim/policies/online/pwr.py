"""Power-aware placement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fastsim.engine.online.plan import ScoreTerm
from fastsim.policies.online.weighted_sum import Summand
from fastsim.policies.registry import policy


@policy("pwr")
@dataclass(frozen=True)
class PWR(Summand):
    """Choose the node, and the GPU in it, whose power draw grows the least.

    raw = trunc(watts before - watts after), then spread over 0..100 between the worst and the best feasible node
    (100 if all are equal). A GPU in any use draws its full power, a CPU socket too.
    """

    citation: ClassVar[str] = """@inproceedings{lettich2025pwr,
  title = {Power- and Fragmentation-aware Online Scheduling for {GPU} Datacenters},
  author = {Lettich, Francesco and Carlini, Emanuele and Nardini, Franco Maria and Perego, Raffaele
            and Trani, Salvatore},
  booktitle = {IEEE/ACM CCGrid},
  year = {2025}
}"""

    def term(self) -> ScoreTerm:
        """The score of a node, with weight 1."""
        return ScoreTerm("pwr", normalise="min_max_100")

    def own_gpu_pick(self) -> str:
        """The device whose power grows the least."""
        return "pwr"
