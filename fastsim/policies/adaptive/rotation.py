"""Rotation: adaptive jobs held to what their users asked for, in turns by the shares of one of Gavel's programs."""

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
    """Give every job the GPUs and the batch size it asks for, in turns, so that its share of the time comes true.

    priority[j, g] = share[j, g] / (seconds of j on g / seconds of all on g); the largest goes first, and GPUs that are
    left go to whoever fits. With round_s=360 this is Gavel as the Sia experiments ran it; with shares of finish-time
    fairness it is in the style of Themis.
    """

    adaptive: ClassVar[bool] = True
    """Its jobs train epoch by epoch: `fastsim.engine.adaptive.run` plays them."""
    held: ClassVar[bool] = True
    """Its jobs have the GPUs they ask for, or none."""

    shares: str = field(default="max_sum_throughput", metadata=about("the program that says shares", choices=PROGRAMS))

    def begin(self, setting: AdaptiveSetting) -> AdaptivePlan:
        """Rounds in which jobs take turns; nobody changes a batch size."""
        from fastsim.engine.adaptive.plan import AdaptivePlan
        from fastsim.policies.deciders.rotation_decider import RotationDecider

        steady = self.shares != "finish_time_fairness"  # what is left of jobs changes with every round
        decider = RotationDecider(setting, self._allocator(), self.shares == PROGRAMS[0], steady)
        return AdaptivePlan(decider, tuned=False)

    def _allocator(self) -> ShareAllocator:
        if self.shares == "max_sum_throughput":
            from fastsim.policies.programs.objectives import MaxSum

            return MaxSum("perf", "centered", per_cost=False, deadlines=False)
        if self.shares == "finish_time_fairness":
            from fastsim.policies.programs.finish_time import FinishTime

            return FinishTime("perf", "centered")
        from fastsim.policies.programs.objectives import MaxMin

        return MaxMin("perf", "centered")
