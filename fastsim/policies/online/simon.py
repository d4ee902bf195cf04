"""The share of a node that a pod takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fastsim.engine.online.plan import ScoreTerm
from fastsim.policies.online.weighted_sum import Summand
from fastsim.policies.registry import policy


@policy("simon")
@dataclass(frozen=True)
class Simon(Summand):
    """Prefer the smallest node that can host the pod: the one where it takes the largest share.

    raw = round(100 * max over CPU and memory of request / (capacity - request)), then spread over 0..100 between
    the worst and the best feasible node (0 if all are equal). GPUs are not looked at.
    """

    citation: ClassVar[str] = """@misc{opensimulator2021,
  title = {Open-Simulator: cluster simulation for {Kubernetes}},
  author = {{Alibaba Group}},
  howpublished = {https://github.com/alibaba/open-simulator},
  year = {2021}
}"""

    def term(self) -> ScoreTerm:
        """The score of a node, with weight 1."""
        return ScoreTerm("simon", normalise="min_max_0")
