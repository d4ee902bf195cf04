"""Max-min fairness over shares of the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fastsim.policies.registry import policy
from fastsim.policies.round_policy import ShareRule

if TYPE_CHECKING:
    from fastsim.engine.rounds.options import Setting
    from fastsim.engine.shares.plan import SharePlan


@policy("max_min_fairness")
@dataclass(frozen=True)
class MaxMinFairness(ShareRule):
    """Make the job that gets least, for its weight, get as much as it can.

    maximise min_i GPUs_i / weight_i * rate_i / proportional_i, where rate_i = sum over GPU models of share * rate
    there, and proportional_i is the rate of a job that spends its time on the models in proportion to their GPUs.
    """

    def begin(self, setting: Setting) -> SharePlan:
        """The plan for a run in this setting."""
        from fastsim.engine.shares.plan import SharePlan
        from fastsim.policies.programs.objectives import MaxMin

        return SharePlan(MaxMin(self.mode, self.solution), self.mode == "packed", self.visit)
