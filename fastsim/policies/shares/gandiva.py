"""Pairs found by trying."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fastsim.policies.registry import policy
from fastsim.policies.round_policy import RoundRule

if TYPE_CHECKING:
    from fastsim.engine.rounds.options import Setting
    from fastsim.engine.shares.plan import SharePlan


@policy("gandiva")
@dataclass(frozen=True)
class Gandiva(RoundRule):
    """Equal parts for all; if the jobs request more GPUs than there are, let jobs drawn at random share theirs.

    share[c, g] = N[g] / M / s[c], divided by max(1, sum over g), for each c of M single jobs and pairs. A pair stays
    while rate together / rate alone, summed over both jobs and all models, is at least 1 and no rate together is 0.
    """

    citation: ClassVar[str] = """@inproceedings{xiao2018gandiva,
  title = {Gandiva: Introspective Cluster Scheduling for Deep Learning},
  author = {Xiao, Wencong and Bhardwaj, Romil and Ramjee, Ramachandran and Sivathanu, Muthian and Kwatra, Nipun
            and Han, Zhenhua and Patel, Pratyush and Peng, Xuan and Zhao, Hanyu and Zhang, Quanlu and Yang, Fan
            and Zhou, Lidong},
  booktitle = {USENIX OSDI},
  year = {2018}
}"""
    engine: ClassVar[str] = "shares"

    def begin(self, setting: Setting) -> SharePlan:
        """Rounds in which pairs are candidates too."""
        from fastsim.engine.shares.plan import SharePlan
        from fastsim.policies.allocators.partners import DrawnPartners

        return SharePlan(DrawnPartners(setting.seed), pairs=True)
