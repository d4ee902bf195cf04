"""Planned: adaptive jobs at their requested size, planned some rounds ahead in the style of Shockwave."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fastsim.errors import PolicyError
from fastsim.policies.registry import about, policy
from fastsim.policies.round_policy import RoundRule

if TYPE_CHECKING:
    from fastsim.engine.adaptive.plan import AdaptivePlan, AdaptiveSetting

SHOCKWAVE = """@inproceedings{zheng2023shockwave,
  title = {Shockwave: Fair and Efficient Cluster Scheduling for Dynamic Adaptation in Machine Learning},
  author = {Zheng, Pengfei and Pan, Rui and Khan, Tarannum and Venkataraman, Shivaram and Akella, Aditya},
  booktitle = {NSDI},
  year = {2023}
}"""


@policy("planned")
@dataclass(frozen=True)
class Planned(RoundRule):
    """Plan some rounds ahead, so that every job makes progress and the last one ends early, as Shockwave does.

    maximise mean_j weight_j log(done_j + gain_j x (rounds_j - restart_j)) - makespan x longest left / longest now, with
    weight_j = max(1, expected / fair completion time of job j)^fairness; jobs have the GPUs and the batch size they
    requested.
    """

    citation: ClassVar[str] = SHOCKWAVE
    engine: ClassVar[str] = "adaptive"

    ahead: int = field(default=5, metadata=about("number of rounds of a plan"))
    makespan: float = field(default=1.0, metadata=about("weight of the end of the last job"))
    fairness: float = field(default=12.0, metadata=about("power of weights of jobs later than fair; 0: equal weights"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.ahead, bool) or not isinstance(self.ahead, int) or not 1 <= self.ahead <= 100:
            raise PolicyError(self.where("ahead"), repr(self.ahead), "a whole number from 1 to 100")
        for name in ("makespan", "fairness"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
                raise PolicyError(self.where(name), repr(value), "a number, 0 or more")

    def begin(self, setting: AdaptiveSetting) -> AdaptivePlan:
        """Rounds that follow a plan; batch sizes stay fixed."""
        from fastsim.engine.adaptive.plan import AdaptivePlan
        from fastsim.policies.deciders.planned_decider import PlannedDecider

        decider = PlannedDecider(setting, self.ahead, self.makespan, self.fairness)
        return AdaptivePlan(decider, tuned=False, held=True)
