"""Pods of one kind together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fastsim.engine.online.plan import ScoreTerm
from fastsim.policies.online.weighted_sum import Summand
from fastsim.policies.registry import policy


@policy("gpu_clustering")
@dataclass(frozen=True)
class GpuClustering(Summand):
    """Put pods next to pods whose GPU request is of the same kind (shared, or the same number of whole ones).

    score = 25 * (8000 - free milli-GPU of the node) / 8000, plus 75 if pods of the same kind are the only
    ones on the node, 50 if they are among others, 25 if the node has no GPU pod. CPU-only pods: 0.
    """

    citation: ClassVar[str] = """@inproceedings{xiao2018gandiva,
  title = {Gandiva: Introspective Cluster Scheduling for Deep Learning},
  author = {Xiao, Wencong and Bhardwaj, Romil and Ramjee, Ramachandran and Sivathanu, Muthian and Kwatra, Nipun
            and Han, Zhenhua and Patel, Pratyush and Peng, Xuan and Zhao, Hanyu and Zhang, Quanlu and Yang, Fan
            and Zhou, Lidong},
  booktitle = {USENIX OSDI},
  year = {2018}
}"""

    def term(self) -> ScoreTerm:
        """The score of a node, with weight 1."""
        return ScoreTerm("gpu_clustering")
