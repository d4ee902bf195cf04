"""Fragmentation gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fastsim.engine.online.plan import ScoreTerm
from fastsim.policies.online.weighted_sum import Summand
from fastsim.policies.registry import policy


@policy("fgd")
@dataclass(frozen=True)
class FGD(Summand):
    """Choose the node, and the GPU in it, where the pod adds the least expected GPU fragmentation.

    score = trunc(100 / (1 + exp((F_after - F_before) / 1000))); F is the milli-GPU of the node that a pod drawn
    from the typical pods could not use.
    """

    citation: ClassVar[str] = """@inproceedings{weng2023fgd,
  title = {Beware of Fragmentation: Scheduling {GPU}-Sharing Workloads with Fragmentation Gradient Descent},
  author = {Weng, Qizhen and Yang, Lingyun and Yu, Yinghao and Wang, Wei and Tang, Xiaochuan and Yang, Guodong
            and Zhang, Liping},
  booktitle = {USENIX ATC},
  year = {2023}
}"""

    def term(self) -> ScoreTerm:
        """The score of a node, with weight 1."""
        return ScoreTerm("fgd")

    def own_gpu_pick(self) -> str:
        """The device that adds the least fragmentation."""
        return "fgd"
