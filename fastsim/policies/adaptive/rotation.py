"""Rotation: adaptive jobs at their requested size take turns by the shares of one of Gavel's programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fastsim.policies.registry import about, policy
from fastsim.policies.round_policy import RoundRule

if TYPE_CHECKING:
    from fastsim.engine.adaptive.plan import AdaptivePlan, AdaptiveSetting
    from fastsim.engine.shares.plan import ShareAllocator

PROGRAMS = ("max_sum_throughput", "max_min_fairness", "finish_time_fairness")


@policy("rotation")
@dataclass(frozen=True)
class Rotation(RoundRule):
    """Give jobs the GPUs and the batch size they requested, in turns, so that each gets its share of the time.

    priority[j, g] = share[j, g] / (seconds of j on g / seconds of all on g); the largest goes first, and GPUs that are
    left go to any job that fits. With round_s=360 this is Gavel as the Sia experiments ran it; with shares of
    finish-time fairness it is in the style of Themis.
    """

    engine: ClassVar[str] = "adaptive"

    shares: str = field(default="max_sum_throughput", metadata=about("the program of the shares", choices=PROGRAMS))

    def begin(self, setting: AdaptiveSetting) -> AdaptivePlan:
        """Rounds in which jobs take turns; batch sizes stay fixed."""
        from fastsim.engine.adaptive.plan import AdaptivePlan
        from fastsim.policies.deciders.rotation_decider import RotationDecider

        steady = self.shares != "finish_time_fairness"  # remaining work changes with every round
        decider = RotationDecider(setting, self._allocator(), self.shares == PROGRAMS[0], steady)
        return AdaptivePlan(decider, tuned=False, held=True)

    def _allocator(self) -> ShareAllocator:
        if self.shares == "max_sum_throughput":
            from fastsim.policies.programs.objectives import MaxSum

            return MaxSum("perf", "centered", per_cost=False, deadlines=False)
        if self.shares == "finish_time_fairness":
            from fastsim.policies.programs.finish_time import FinishTime

            return FinishTime("perf", "centered")
        from fastsim.policies.programs.objectives import MaxMin

        return MaxMin("perf", "centered")
