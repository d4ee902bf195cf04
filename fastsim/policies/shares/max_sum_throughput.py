"""Largest sum of rates over shares of the time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from fastsim.policies.registry import about, policy
from fastsim.policies.round_policy import SOLUTION, RoundRule

if TYPE_CHECKING:
    from fastsim.engine.rounds.options import Setting
    from fastsim.engine.shares.plan import SharePlan

SUM_MODES = ("perf", "packed")


@policy("max_sum_throughput")
@dataclass(frozen=True)
class MaxSumThroughput(RoundRule):
    """Make the cluster do as many steps as it can, per second or per dollar.

    maximise sum_i sum_g rate_ig * share_ig, divided by the price of g with ``per_cost``; with deadlines also
    rate_i >= left_i / time to the deadline_i, unless no allocation keeps them all.
    """

    engine: ClassVar[str] = "shares"

    mode: str = field(
        default="perf", metadata=about("perf: measured rates; packed: pairs may share GPUs", choices=SUM_MODES)
    )
    solution: str = field(default="centered", metadata=SOLUTION)
    per_cost: bool = field(default=False, metadata=about("divide each rate by the price of its GPU model"))
    deadlines: bool = field(default=False, metadata=about("keep the deadlines of jobs that have one"))

    def begin(self, setting: Setting) -> SharePlan:
        """The plan for a run in this setting."""
        from fastsim.engine.shares.plan import SharePlan
        from fastsim.policies.programs.objectives import MaxSum

        allocator = MaxSum(self.mode, self.solution, self.per_cost, self.deadlines)
        return SharePlan(allocator, self.mode == "packed", prompt=self.deadlines)
