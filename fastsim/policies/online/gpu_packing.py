"""Used devices before idle devices, used nodes before idle nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fastsim.engine.online.plan import ScoreTerm
from fastsim.policies.online.weighted_sum import Summand
from fastsim.policies.registry import policy


@policy("gpu_packing")
@dataclass(frozen=True)
class GpuPacking(Summand):
    """Fill GPUs already in use first, then idle GPUs of nodes in use, and an idle node last.

    score = max(100 - q/10, 50) if only used GPUs are needed, q being the free per cent of the GPUs taken;
    max(50 - u, 33) if u idle GPUs of a used node are needed; max(33 - n, n) on a node with n idle GPUs and
    none in use. CPU-only pods: 0.
    """

    citation: ClassVar[str] = """@inproceedings{weng2022mlaas,
  title = {{MLaaS} in the Wild: Workload Analysis and Scheduling in Large-Scale Heterogeneous {GPU} Clusters},
  author = {Weng, Qizhen and Xiao, Wencong and Yu, Yinghao and Wang, Wei and Wang, Cheng and He, Jian and Li, Yong
            and Zhang, Liping and Lin, Wei and Ding, Yu},
  booktitle = {USENIX NSDI},
  year = {2022}
}"""

    def term(self) -> ScoreTerm:
        """The score of a node, with weight 1."""
        return ScoreTerm("gpu_packing")
